"""How long a token bucket makes its users wait."""

import pytest
from tests.kube.conftest import ManualClock

from lowtide.kube.rate_limit import RateLimit


def test_a_burst_is_free_then_each_waits_for_its_turn(clock: ManualClock) -> None:
    limit = RateLimit(per_second=10, burst=3, clock=clock)
    assert [limit.reserve_seconds() for _ in range(5)] == pytest.approx([0, 0, 0, 0.1, 0.2])


def test_tokens_come_back_with_time_but_never_above_the_burst(clock: ManualClock) -> None:
    limit = RateLimit(per_second=10, burst=2, clock=clock)
    waits = [limit.reserve_seconds() for _ in range(3)]
    clock.advance(100)
    waits += [limit.reserve_seconds() for _ in range(3)]
    assert waits == pytest.approx([0, 0, 0.1, 0, 0, 0.1])


def test_a_limit_that_lets_nothing_through_is_rejected(clock: ManualClock) -> None:
    with pytest.raises(ValueError, match="both must be above zero"):
        RateLimit(per_second=0, burst=2, clock=clock)
