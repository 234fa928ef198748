"""Tests; a folder with shared builders is a package."""
