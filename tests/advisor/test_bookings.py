"""Bookings: what bounds them. What they mean for advice is tested with the advisor."""

from msgspec.structs import replace

from lowtide.advisor.bookings import MOST_BOOKINGS, MOST_BYTES, Bookings
from lowtide.objects.meta import ObjectMeta
from lowtide.testing import make_node, make_pod, make_state


def test_the_oldest_goes_where_there_are_too_many() -> None:
    state = make_state([make_node("a")])
    bookings = Bookings(state)
    for number in range(MOST_BOOKINGS + 2):
        bookings.book(make_pod(f"web-{number}"), "a", until=10.0)
    assert len(bookings) == MOST_BOOKINGS
    booked = [state.ledgers.booked_on(f"default/web-{number}") for number in (1, 2)]
    assert booked == [None, "a"]


def test_large_pods_are_fewer() -> None:
    state = make_state([make_node("a")])
    bookings = Bookings(state)
    for number in range(5):
        large = make_pod(f"web-{number}", annotations={"large": "x" * (MOST_BYTES // 12)})
        bookings.book(large, "a", until=10.0)
    assert len(bookings) == 2
    bookings.drop("default/web-4")
    bookings.book(make_pod("small"), "a", until=10.0)
    assert len(bookings) == 2
    bookings.expire(10.0)
    assert len(bookings) == 0


def test_pods_of_many_small_objects_are_fewer() -> None:
    state = make_state([make_node("a")])
    bookings = Bookings(state)
    tolerations = [{}] * 20_000  # 60 kB of JSON, and some MB in memory
    for number in range(100):
        pod = make_pod(f"web-{number}", spec={"tolerations": tolerations})
        bookings.book(pod, "a", until=10.0)
    assert 10 < len(bookings) < 40


def test_a_pod_that_has_a_node_or_no_uid_is_not_booked() -> None:
    state = make_state([make_node("a")])
    bookings = Bookings(state)
    bookings.book(make_pod("web", on="a"), "a", until=10.0)
    bookings.book(replace(make_pod("web"), metadata=ObjectMeta(name="web")), "a", until=10.0)
    assert len(bookings) == 0


def test_a_pod_is_looked_at_as_if_it_was_not_booked() -> None:
    state = make_state([make_node("a")])
    bookings, pod = Bookings(state), make_pod("web")
    bookings.book(pod, "a", until=10.0)
    with bookings.without(pod):
        assert state.ledgers.booked_on(pod.uid) is None
    assert (state.ledgers.booked_on(pod.uid), len(bookings)) == ("a", 1)
    with bookings.without(make_pod("other")):
        assert state.ledgers.booked_on(pod.uid) == "a"
    bookings.expire(10.0)
    assert state.ledgers.booked_on(pod.uid) is None
