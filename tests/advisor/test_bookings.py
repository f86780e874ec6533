"""Bookings: what bounds them. What they mean for advice is tested with the advisor."""

from lowtide.advisor.bookings import MOST_BOOKINGS, MOST_BYTES, Bookings
from lowtide.testing import make_node, make_pod, make_state


def test_the_oldest_goes_where_there_are_too_many() -> None:
    state = make_state([make_node("a")])
    bookings = Bookings(state)
    for number in range(MOST_BOOKINGS + 2):
        bookings.book(make_pod(f"web-{number}"), "a", until=10.0)
    assert len(bookings) == state.placed_count == MOST_BOOKINGS
    assert state.placed("default/web-1") is None
    assert state.placed("default/web-2") is not None


def test_large_pods_are_fewer() -> None:
    state = make_state([make_node("a")])
    bookings = Bookings(state)
    for number in range(5):
        large = make_pod(f"web-{number}", annotations={"large": "x" * (MOST_BYTES // 3)})
        bookings.book(large, "a", until=10.0)
    assert (len(bookings), state.placed_count) == (2, 2)
    bookings.settle("default/web-4")
    bookings.expire(10.0)
    assert (len(bookings), state.placed_count) == (0, 1)


def test_a_pod_without_a_uid_is_not_booked() -> None:
    state = make_state([make_node("a")])
    Bookings(state).book(make_pod("web", on="a"), "a", until=10.0)
    assert state.placed_count == 0
