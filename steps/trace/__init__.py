"""The step `trace`."""
