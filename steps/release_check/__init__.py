"""The step `release-check`."""
