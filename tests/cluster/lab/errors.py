"""What went wrong with the test cluster, as one sentence: what, where, what to do."""

from steps.contracts.errors import ReclaimError


class LabError(ReclaimError):
    """The test cluster could not be built, started, asked or ended."""
