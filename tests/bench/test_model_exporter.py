"""What the model of many exporters counts."""

from lowtide.testing import ManualClock
from model_exporter import Counters, Link, World


def test_counts_the_background_and_the_pods_while_they_run() -> None:
    world = World(links={"a": Link(1000, 10), "b": Link(1000, 0)}, pods={"one": 5, "two": 3})
    clock = ManualClock()
    counters = Counters(world, clock)

    clock.advance(seconds=10)
    assert (counters.bytes_of("a"), counters.bytes_of("b")) == (100, 0)

    counters.place("one", "a")
    counters.place("two", "b")
    clock.advance(seconds=2)
    assert (counters.bytes_of("a"), counters.bytes_of("b")) == (130, 6)

    counters.place("one", "a")  # seen again
    counters.forget_all_but({"one"})
    clock.advance(seconds=1)
    assert (counters.bytes_of("a"), counters.bytes_of("b")) == (145, 6)

    counters.remove("one")
    clock.advance(seconds=1)
    assert (counters.bytes_of("a"), counters.bytes_of("b")) == (155, 6)
