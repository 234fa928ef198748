"""The step `drive` of the termination experiment."""
