"""From answers to links: which devices count, and which series speaks for each of them."""

import gc
import math
from collections.abc import Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any

import pytest
from tests.readings.conftest import NOW, make_series

from lowtide.readings.links import LinkFinder, Links, links_of
from lowtide.readings.matching import NodeIdentity, NodeMatcher
from lowtide.readings.series import Series

A, B = NodeIdentity("a"), NodeIdentity("b")
UP = 0x1003  # up, broadcast, multicast
MASTER, MEMBER = 0x400, 0x800


def links(
    answers: Mapping[str, Sequence[Series]],
    *,
    nodes: Sequence[NodeIdentity] = (A, B),
    asked: Sequence[str] = ("receive",),
) -> Links:
    return links_of(answers, asked, NodeMatcher(nodes, (), "auto"), len(nodes))


def of_devices(node: str = "a", **values: float) -> list[Series]:
    """Series by device; a dot of a name is written as two underscores."""
    return [
        make_series(value, node=node, device=device.replace("__", "."))
        for device, value in values.items()
    ]


def counted(found: Links) -> dict[tuple[int, str], float]:
    """What each link receives, by row and device."""
    values = found.by_direction["receive"].value.tolist()
    return dict(zip(zip(found.row.tolist(), found.device, strict=True), values, strict=True))


def devices(answers: Mapping[str, Sequence[Series]]) -> set[str]:
    return set(links(answers).device)


def test_every_device_of_every_node_is_a_link_sorted_by_row() -> None:
    receive = [*of_devices("b", eth0=3), *of_devices("a", eth1=2, eth0=1), *of_devices("c", eth0=9)]
    found = links({"receive": receive})
    assert counted(found) == {(0, "eth1"): 2.0, (0, "eth0"): 1.0, (1, "eth0"): 3.0}
    assert found.row.tolist() == [0, 0, 1]


def test_no_answer_is_no_link() -> None:
    found = links({})
    assert (counted(found), found.by_direction["receive"].is_answered.tolist()) == (
        {},
        [False, False],
    )


def test_a_device_that_one_direction_does_not_know_is_a_link_all_the_same() -> None:
    answers = {"receive": of_devices(eth0=1), "transmit": of_devices(eth0=2, eth1=3)}
    found = links(answers, asked=("receive", "transmit"))
    by_device = {
        name: dict(zip(found.device, each.value.tolist(), strict=True))
        for name, each in found.by_direction.items()
    }
    assert by_device["transmit"] == {"eth0": 2.0, "eth1": 3.0}
    assert (by_device["receive"]["eth0"], math.isnan(by_device["receive"]["eth1"])) == (1.0, True)
    assert not found.by_direction["receive"].is_unsound.any()


# Scraped twice.


@pytest.mark.parametrize(
    ("series", "want"),
    [
        pytest.param(
            [make_series(5, job="n"), make_series(5, job="m")], 5, id="counts a device once"
        ),
        pytest.param(
            [make_series(5, job="n"), make_series(9, job="m")], 9, id="takes the larger value"
        ),
        pytest.param(
            [make_series(5, job="n"), make_series(9, job="m", at=NOW - 10)],
            5,
            id="takes the fresher value before the larger",
        ),
        pytest.param(
            [make_series(5, job="n", at=NOW - 10), make_series(math.nan, job="m")],
            5,
            id="takes the sound value before the fresher",
        ),
        pytest.param(
            [make_series(5, job="n", at=NOW - 10), make_series(math.inf, job="m")],
            5,
            id="does not take an infinite value for the larger",
        ),
        pytest.param(
            [make_series(-3, job="n"), make_series(0, job="m", at=NOW - 10)],
            0,
            id="takes zero before a negative value",
        ),
    ],
)
def test_a_device_that_is_scraped_twice(series: list[Series], want: float) -> None:
    assert counted(links({"receive": series})) == {(0, "eth0"): want}


def test_each_device_is_chosen_for_by_itself() -> None:
    series = [
        make_series(1, job="n"),
        make_series(2, job="n", device="eth1"),
        make_series(4, job="m"),
        make_series(1, job="m", device="eth1"),
    ]
    assert counted(links({"receive": series})) == {(0, "eth0"): 4.0, (0, "eth1"): 2.0}


# Devices that carry one another.


@pytest.mark.parametrize(
    ("flags", "want"),
    [
        pytest.param(
            of_devices(bond0=UP | MASTER, eth0=UP | MEMBER, eth1=UP | MEMBER, eth2=UP),
            {"bond0", "eth2"},
            id="does not count members beside their bond",
        ),
        pytest.param(
            of_devices(eth0=UP | MEMBER, eth1=UP | MEMBER, eth2=UP, bond0=UP),
            {"bond0", "eth0", "eth1", "eth2"},
            id="counts members where no bond is there",
        ),
        pytest.param(
            of_devices("b", bond0=UP | MASTER) + of_devices(eth0=UP | MEMBER),
            {"bond0", "eth0", "eth1", "eth2"},
            id="counts members where only another node has a bond",
        ),
        pytest.param([], {"bond0", "eth0", "eth1", "eth2"}, id="counts all without flags"),
    ],
)
def test_a_bond(flags: list[Series], want: set[str]) -> None:
    receive = of_devices(bond0=9, eth0=4, eth1=5, eth2=1)
    assert devices({"receive": receive, "flags": flags}) == want


def test_a_bond_that_is_not_asked_for_does_not_hide_its_members() -> None:
    flags = of_devices(bond0=UP | MASTER, eth0=UP | MEMBER)
    assert devices({"receive": of_devices(eth0=4), "flags": flags}) == {"eth0"}


@pytest.mark.parametrize(
    ("numbers", "parents", "want"),
    [
        pytest.param(
            {"eth0": 2, "storage": 7},
            {"eth0": 2, "storage": 2},
            {"eth0"},
            id="does not count a VLAN beside what carries it, whatever its name",
        ),
        pytest.param(
            {"eth0": 2, "storage": 7},
            {"eth0": 2, "storage": 7},
            {"eth0", "storage"},
            id="counts a device that carries itself",
        ),
        pytest.param(
            {"eth0": 2, "storage": 7},
            {"eth0": 2, "storage": 5},
            {"eth0", "storage"},
            id="counts a VLAN where what carries it is not there",
        ),
        pytest.param(
            {"eth0": 0, "storage": 0},
            {"eth0": 0, "storage": 0},
            {"eth0", "storage"},
            id="makes nothing of numbers that are none",
        ),
        pytest.param({}, {}, {"eth0", "storage"}, id="counts all without numbers"),
        pytest.param(
            {"eth0": 2, "storage": 7},
            {},
            {"eth0", "storage"},
            id="counts all without parents",
        ),
    ],
)
def test_a_vlan_by_number(numbers: dict[str, Any], parents: dict[str, Any], want: set[str]) -> None:
    answers = {
        "receive": of_devices(eth0=9, storage=4),
        "number": of_devices(**numbers),
        "parent": of_devices(**parents),
    }
    assert devices(answers) == want


def test_a_number_means_a_device_of_the_same_node() -> None:
    answers = {
        "receive": of_devices("a", eth0=9) + of_devices("b", storage=4),
        "number": of_devices("a", eth0=2) + of_devices("b", storage=7),
        "parent": of_devices("a", eth0=2) + of_devices("b", storage=2),
    }
    assert counted(links(answers)) == {(0, "eth0"): 9.0, (1, "storage"): 4.0}


@pytest.mark.parametrize(
    ("receive", "want"),
    [
        pytest.param(of_devices(eth0=9, eth0__100=4), {"eth0"}, id="is not counted beside it"),
        pytest.param(of_devices(eth0__100=4), {"eth0.100"}, id="is counted alone"),
        pytest.param(
            of_devices(eth0__100=4) + of_devices("b", eth0=9),
            {"eth0.100", "eth0"},
            id="is counted where only another node has the device",
        ),
        pytest.param(
            of_devices(bond0=9, bond0__7=4, bond0__7__8=1), {"bond0"}, id="may be on another VLAN"
        ),
        pytest.param(
            of_devices(eth0=9, eth0__up=4), {"eth0", "eth0.up"}, id="ends with a number only"
        ),
    ],
)
def test_a_vlan_by_name(receive: list[Series], want: set[str]) -> None:
    assert devices({"receive": receive}) == want


def test_a_node_is_as_old_as_its_oldest_device_that_counts() -> None:
    receive = [
        make_series(1, device="eth0", at=NOW - 5),
        make_series(1, device="eth1", at=NOW - 9),
        make_series(1, device="eth0.7", at=NOW - 90),
    ]
    found = links({"receive": receive}).by_direction["receive"]
    assert found.at[0] == NOW - 9
    assert math.isnan(found.at[1])


# Speeds.


@pytest.mark.parametrize(
    ("speeds", "want"),
    [
        pytest.param([make_series(125e6)], 125e6, id="believes a gigabit"),
        pytest.param([make_series(50e9)], 50e9, id="believes 400 gigabits"),
        pytest.param([], None, id="knows none without speeds"),
        pytest.param([make_series(-125000)], None, id="does not believe a virtual device"),
        pytest.param([make_series(0)], None, id="does not believe zero"),
        pytest.param([make_series(math.nan)], None, id="does not believe NaN"),
        pytest.param([make_series(1e12)], None, id="does not believe a terabyte per second"),
        pytest.param(
            [make_series((2**32 - 1) * 125e3)], None, id="does not believe an all-ones number"
        ),
        pytest.param(
            [make_series(125e6, job="n"), make_series(125e6, job="m")],
            125e6,
            id="counts a doubly scraped speed once",
        ),
        pytest.param(
            [make_series(125e6, job="n"), make_series(-125000, job="m")],
            125e6,
            id="takes the believable one of two",
        ),
        pytest.param([make_series(125e6, device="eth9")], None, id="takes no other device's"),
        pytest.param([make_series(125e6, node="b")], None, id="takes no other node's"),
    ],
)
def test_a_speed(speeds: list[Series], want: float | None) -> None:
    (found,) = links({"receive": [make_series(5)], "speed": speeds}).speed.tolist()
    assert (None if math.isnan(found) else found) == want


def test_the_fastest_device_of_a_node_is_known_also_where_nothing_is_measured() -> None:
    speeds = [*of_devices("b", eth0=100, eth1=300, eth2=-125000), *of_devices("a", eth0=50)]
    found = links({"receive": [make_series(5)], "speed": speeds})
    assert (found.speed.tolist(), found.fastest.tolist()) == ([50.0], [50.0, 300.0])


# Ambiguous series.


def test_a_series_that_may_be_of_two_nodes_is_of_neither() -> None:
    nodes = [NodeIdentity("a", "", ("10.0.0.1",)), NodeIdentity("b", "", ("10.0.0.1",))]
    shared = Series({"instance": "10.0.0.1:9100", "device": "eth0"}, 7.0, NOW)
    found = links({"receive": [shared, make_series(5, node="b")]}, nodes=nodes)
    direction = found.by_direction["receive"]
    assert counted(found) == {(1, "eth0"): 5.0}
    assert direction.is_ambiguous.tolist() == [True, True]
    assert direction.is_answered.tolist() == [False, True]


def test_a_finder_goes_by_the_newest_answers_poll_after_poll() -> None:
    finder = LinkFinder()
    finder.match(NodeMatcher((A, B), (), "auto"))
    finder.take({"receive": of_devices(eth0=1), "speed": of_devices(eth0=100, bond0=200)})
    first = finder.links(("receive",), 2)
    finder.take({"receive": of_devices(bond0=5, eth0=2)})
    second = finder.links(("receive",), 2)
    flags = of_devices(bond0=UP | MASTER, eth0=UP | MEMBER)
    finder.take({"speed": of_devices(bond0=400), "flags": flags})
    third = finder.links(("receive",), 2)
    found = [(counted(each), each.speed.tolist()) for each in (first, second, third)]
    assert found == [
        ({(0, "eth0"): 1.0}, [100.0]),
        ({(0, "eth0"): 2.0, (0, "bond0"): 5.0}, [100.0, 200.0]),
        ({(0, "bond0"): 5.0}, [400.0]),
    ]


def test_targets_and_devices_that_come_and_go_do_not_add_up() -> None:
    finder = LinkFinder()
    finder.match(NodeMatcher((A, B), (), "node"))
    for poll in range(1000):
        new = make_series(poll, device=f"new-{poll}", job=f"new-{poll}")
        finder.take({"receive": [new, make_series(1.0, node="b")]})
        found = finder.links(("receive",), 2)
        assert counted(found) == {(0, f"new-{poll}"): float(poll), (1, "eth0"): 1.0}
    assert len(names_held(finder, "new-")) < 100


def names_held(holder: object, beginning: str) -> set[str]:
    """Texts that begin so, however they are held."""
    found, seen, left = set(), set(), [holder]
    while left:
        thing = left.pop()
        if id(thing) in seen or isinstance(thing, type | ModuleType | FunctionType):
            continue
        seen.add(id(thing))
        if isinstance(thing, str) and thing.startswith(beginning):
            found.add(thing)
        left += gc.get_referents(thing)
    return found


@pytest.mark.parametrize("value", [1e20, 1e300, math.inf])
def test_a_device_whose_numbers_are_too_large(value: float) -> None:
    answers = {
        "receive": of_devices(eth0=1, eth1=value),
        "flags": of_devices(eth0=value),
        "number": of_devices(eth0=value),
        "parent": of_devices(eth0=value),
    }
    found = links(answers)
    assert found.by_direction["receive"].is_unsound.tolist() == [False, True]
    assert found.device == ("eth0", "eth1")
