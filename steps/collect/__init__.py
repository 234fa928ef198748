"""The step `collect`."""
