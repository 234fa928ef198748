"""The step `nodes`."""
