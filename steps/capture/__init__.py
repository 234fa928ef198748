"""The step `capture`."""
