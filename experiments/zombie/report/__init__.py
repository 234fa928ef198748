"""The step `report` of the termination experiment."""
