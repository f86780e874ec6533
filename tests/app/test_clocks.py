"""The clock for spans: it starts at the present and is not moved with the system's."""

from lowtide.app.clocks import steady_clock
from lowtide.testing import ManualClock


def test_a_steady_clock_goes_on_when_the_wall_clock_is_set_back() -> None:
    wall, monotonic = ManualClock(1000.0), ManualClock(7.0)
    clock = steady_clock(wall, monotonic)
    seen = [clock()]
    wall.advance(-3600)
    monotonic.advance(2)
    seen.append(clock())
    assert seen == [1000.0, 1002.0]
