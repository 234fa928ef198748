"""The step `stop`."""
