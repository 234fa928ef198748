"""The clock of a real run."""

from datetime import UTC, datetime

from steps.adapters.clock import SystemClock


def test_now_is_aware_in_utc_and_moves_on() -> None:
    clock = SystemClock()
    before = clock.now()
    clock.sleep(-1)
    clock.sleep(0.01)
    assert before.tzinfo is UTC
    assert 0.01 <= (clock.now() - before).total_seconds() < 60
    assert abs((datetime.now(UTC) - before).total_seconds()) < 60
