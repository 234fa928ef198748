"""The step `survey`."""
