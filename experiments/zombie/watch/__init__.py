"""The step `watch` of the termination experiment."""
