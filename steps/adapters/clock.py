"""The one place that reads the wall clock and sleeps."""

import time
from datetime import UTC, datetime


class SystemClock:
    """The Clock of a real run."""

    def now(self) -> datetime:
        """The present, aware, in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Wait; a negative span is none."""
        time.sleep(max(0.0, seconds))
