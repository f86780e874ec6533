"""Which node a series is taken for, by every label that set-ups use."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pytest

from lowtide.readings.matching import NodeIdentity, NodeMatcher, host_of
from lowtide.readings.request import MatchLabel
from lowtide.readings.series import Series

NODES = (
    NodeIdentity("node-a", "host-a", ("10.0.0.1", "fd00::1")),
    NodeIdentity("node-b", "host-b", ("10.0.0.2", "fd00:0:0::2")),
    NodeIdentity("node-c", "node-c.example", ("10.0.0.3",)),
)


@dataclass(frozen=True)
class Match:
    """Where series went, by the names of nodes."""

    by_node: dict[str, list[Series]]
    unmatched: list[Series]
    ambiguous: frozenset[str]


def match_series(
    series: Sequence[Series],
    identities: Sequence[NodeIdentity],
    uname: Iterable[Series],
    label: MatchLabel,
) -> Match:
    matcher = NodeMatcher(identities, uname, label)
    candidates = list(zip(series, matcher.candidates(series), strict=True))
    by_node: dict[str, list[Series]] = {}
    for one, rows in candidates:
        if len(rows) == 1:
            by_node.setdefault(identities[rows[0]].name, []).append(one)
    ambiguous = {row for _, rows in candidates if len(rows) > 1 for row in rows}
    return Match(
        by_node,
        unmatched=[one for one, rows in candidates if not rows],
        ambiguous=frozenset(identities[row].name for row in ambiguous),
    )


def make_series(**labels: str) -> Series:
    return Series(labels, 5.0, 100.0)


@pytest.mark.parametrize(
    ("labels", "want"),
    [
        pytest.param({"node": "node-a"}, "node-a", id="takes the label node"),
        pytest.param({"kubernetes_node": "node-b"}, "node-b", id="takes kubernetes_node"),
        pytest.param(
            {"node": "node-a", "kubernetes_node": "node-b", "instance": "10.0.0.3:9100"},
            "node-a",
            id="prefers node to every other label",
        ),
        pytest.param(
            {"node": "elsewhere", "kubernetes_node": "node-b"},
            "node-b",
            id="goes on when the label node names no node",
        ),
        pytest.param({"nodename": "host-c"}, None, id="knows no node by an unknown nodename"),
        pytest.param({"nodename": "host-b"}, "node-b", id="takes nodename as the hostname"),
        pytest.param({"nodename": "NODE-B"}, "node-b", id="takes nodename whatever its case"),
        pytest.param({"instance": "node-a"}, "node-a", id="takes instance as the name"),
        pytest.param({"instance": "node-a:9100"}, "node-a", id="takes instance as name and port"),
        pytest.param(
            {"instance": "node-c.example:9100"}, "node-c", id="takes instance as the hostname"
        ),
        pytest.param({"instance": "10.0.0.2"}, "node-b", id="takes instance as an IP"),
        pytest.param({"instance": "10.0.0.2:9100"}, "node-b", id="takes instance as IP and port"),
        pytest.param({"instance": "[fd00::1]:9100"}, "node-a", id="takes an IPv6 and port"),
        pytest.param({"instance": "fd00:0:0:0::1"}, "node-a", id="takes another IPv6 spelling"),
        pytest.param({"instance": "[FD00::2]"}, "node-b", id="takes a Node's IPv6 in any spelling"),
        pytest.param({"instance": "10.0.0.9:9100"}, None, id="does not know a stranger's IP"),
        pytest.param({"instance": ""}, None, id="does not take an empty instance for a node"),
        pytest.param({}, None, id="does not know a series without labels"),
    ],
)
def test_auto(labels: dict[str, str], want: str | None) -> None:
    one = make_series(**labels)
    found = match_series([one], NODES, [], "auto")
    if want is None:
        assert found == Match({}, [one], frozenset())
    else:
        assert found == Match({want: [one]}, [], frozenset())


@pytest.mark.parametrize(
    ("label", "want"),
    [
        pytest.param("node", "node-a", id="looks only at node"),
        pytest.param("kubernetes_node", "node-b", id="looks only at kubernetes_node"),
        pytest.param("nodename", "node-c", id="looks only at nodename"),
        pytest.param("instance", "node-b", id="looks only at instance"),
    ],
)
def test_one_label(label: MatchLabel, want: str) -> None:
    one = make_series(
        node="node-a", kubernetes_node="node-b", nodename="node-c", instance="10.0.0.2:9100"
    )
    assert match_series([one], NODES, [], label) == Match({want: [one]}, [], frozenset())
    stranger = make_series(pod="node-a")
    assert match_series([stranger], NODES, [], label) == Match({}, [stranger], frozenset())


@pytest.mark.parametrize(
    ("uname", "labels", "want"),
    [
        pytest.param(
            [{"instance": "x:1", "job": "n", "nodename": "host-a"}],
            {"instance": "x:1", "job": "n"},
            "node-a",
            id="joins node_uname_info on instance and job",
        ),
        pytest.param(
            [
                {"instance": "x:1", "job": "n", "nodename": "host-a"},
                {"instance": "x:1", "job": "m", "nodename": "host-b"},
            ],
            {"instance": "x:1", "job": "m"},
            "node-b",
            id="tells two jobs with one instance apart",
        ),
        pytest.param(
            [{"instance": "x:1", "job": "n", "nodename": "host-a"}],
            {"instance": "x:1", "job": "other"},
            "node-a",
            id="joins on the instance alone when no job agrees",
        ),
        pytest.param(
            [{"instance": "y:1", "job": "n", "nodename": "host-a"}],
            {"instance": "x:1", "job": "n"},
            None,
            id="does not join another instance",
        ),
    ],
)
def test_uname(uname: list[dict[str, str]], labels: dict[str, str], want: str | None) -> None:
    one = make_series(**labels)
    info = [make_series(**each) for each in uname]
    wanted = Match({want: [one]} if want else {}, [] if want else [one], frozenset())
    assert match_series([one], NODES, info, "nodename") == wanted
    assert match_series([one], NODES, info, "auto") == wanted


@pytest.mark.parametrize(
    ("identities", "labels", "want"),
    [
        pytest.param(
            (NodeIdentity("a", "", ("10.0.0.1",)), NodeIdentity("b", "", ("10.0.0.1",))),
            {"instance": "10.0.0.1:9100"},
            {"a", "b"},
            id="does not choose between two nodes with one address",
        ),
        pytest.param(
            (NodeIdentity("a", "same"), NodeIdentity("b", "same")),
            {"nodename": "same"},
            {"a", "b"},
            id="does not choose between two nodes with one hostname",
        ),
        pytest.param(
            (NodeIdentity("a", "b"), NodeIdentity("b", "c")),
            {"instance": "b:9100"},
            {"a", "b"},
            id="does not choose between one's name and another's hostname",
        ),
        pytest.param(
            NODES,
            {"nodename": "host-a", "instance": "10.0.0.2:9100"},
            {"node-a", "node-b"},
            id="does not choose when nodename and instance contradict each other",
        ),
    ],
)
def test_ambiguous(
    identities: tuple[NodeIdentity, ...], labels: dict[str, str], want: set[str]
) -> None:
    found = match_series([make_series(**labels)], identities, [], "auto")
    assert found == Match({}, [], frozenset(want))


def test_nodename_settles_what_a_shared_address_leaves_open() -> None:
    identities = (NodeIdentity("a", "", ("10.0.0.1",)), NodeIdentity("b", "", ("10.0.0.1",)))
    one = make_series(nodename="b", instance="10.0.0.1:9101")
    assert match_series([one], identities, [], "auto") == Match({"b": [one]}, [], frozenset())


def test_the_order_of_series_is_kept() -> None:
    first, second = (
        make_series(node="node-a", device="eth1"),
        make_series(node="node-a", device="eth0"),
    )
    assert match_series([first, second], NODES, [], "auto").by_node == {"node-a": [first, second]}


@pytest.mark.parametrize(
    ("instance", "want"),
    [
        pytest.param("[::1]:9100", "::1", id="takes brackets and port off"),
        pytest.param("[::1", "::1", id="survives a missing bracket"),
        pytest.param("not:an:address", "not:an:address", id="keeps what is no address"),
        pytest.param("Host:9100", "host", id="takes a name in lower case"),
    ],
)
def test_host_of(instance: str, want: str) -> None:
    assert host_of(instance) == want


@pytest.mark.timeout(60)  # where each is compared with all, it takes minutes
def test_many_series_that_name_all_nodes_at_one_instance_are_taken_in_time() -> None:
    identities = [NodeIdentity(f"n{number}") for number in range(5000)]
    uname = [
        Series({"instance": "x", "job": "j", "nodename": f"n{number % 5000}"}, 1.0, 0.0)
        for number in range(200_000)
    ]
    matcher = NodeMatcher(identities, uname, "nodename")
    candidates = matcher.candidates([Series({"instance": "x", "job": "j"}, 1.0, 0.0)])
    assert candidates == [tuple(range(5000))]
