"""The step `publish`."""
