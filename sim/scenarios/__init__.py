"""Worlds with a story, built through the simulated API itself."""
