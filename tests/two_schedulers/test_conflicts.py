"""What two schedulers did to each other, of what logs tell."""

import pytest

from two_schedulers.conflicts import Bound, conflicts, delays, percentile, seen_at

LOG = """\
I1118 01:07:59.143201    1324 telling.py:47] "Delete event for unscheduled pod" pod="default/a"
I1118 01:07:59.143250    1324 telling.py:48] "Add event for scheduled pod" pod="default/a"
I1118 01:08:00.000000    1324 telling.py:48] "Add event for unscheduled pod" pod="default/b"
I1118 01:08:01.500000    1324 telling.py:48] "Add event for scheduled pod" pod="default/b"
I1118 01:08:02.500000    1324 telling.py:48] "Add event for scheduled pod" pod="default/b"
"""
AT = 1794964079.0  # 2026-11-18 01:07:59 UTC


def bound(*each: tuple[str, str, float]) -> list[Bound]:
    return [
        Bound(pod=f"default/{number}", node=node, user=user, at=at)
        for number, (node, user, at) in enumerate(each)
    ]


@pytest.mark.parametrize(
    ("bindings", "overcommitted", "excess"),
    [
        pytest.param([("a", "x", 1), ("a", "y", 2), ("b", "x", 3)], 0, {}, id="all have room"),
        pytest.param(
            [("a", "x", 1), ("a", "y", 2), ("a", "x", 3)], 1, {"x": 1}, id="the last is too much"
        ),
        pytest.param(
            [("a", "x", 9), ("a", "y", 2), ("a", "y", 3)],
            1,
            {"x": 1},
            id="the last is who was bound last",
        ),
        pytest.param(
            [(node, user, at) for node in "ab" for at, user in enumerate("xxyy")],
            2,
            {"y": 4},
            id="nodes count once, pods each",
        ),
    ],
)
def test_conflicts(
    bindings: list[tuple[str, str, float]], overcommitted: int, excess: dict[str, int]
) -> None:
    found = conflicts(bound(*bindings), room=2)
    assert (found.bound, found.overcommitted_nodes) == (len(bindings), overcommitted)
    assert dict(found.excess) == excess


def test_when_pods_were_first_seen_on_nodes() -> None:
    seen = seen_at(LOG, 2026)
    assert seen == pytest.approx({"default/a": AT + 0.14325, "default/b": AT + 2.5})


def test_delays_are_from_the_binding_to_the_sight_of_it_in_order() -> None:
    found = delays(
        [
            Bound("default/b", "n", "x", AT + 2.0),
            Bound("default/a", "n", "x", AT + 0.1),
            Bound("default/unseen", "n", "x", AT),
        ],
        seen_at(LOG, 2026),
    )
    assert found == pytest.approx([0.04325, 0.5], abs=1e-5)


def test_percentile() -> None:
    values = [float(number) for number in range(100)]
    assert [percentile(values, share) for share in (0.5, 0.99, 1.0)] == [50.0, 99.0, 99.0]
