"""The step `decide`."""
