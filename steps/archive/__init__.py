"""The step `archive`."""
