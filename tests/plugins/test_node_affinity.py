"""NodeAffinity: nodeSelector, required and preferred affinity, and what the configuration adds."""

from typing import Any

import msgspec
import pytest

from lowtide.framework.plugin import PodRejection
from lowtide.objects.node import Node
from lowtide.objects.pod import NodeAffinity as Affinity
from lowtide.objects.pod import Pod
from lowtide.plugins.node_affinity import NodeAffinity, NodeAffinityArgs
from lowtide.testing import make_node, make_pod, make_state, place, rejections, scores

OWN = "node(s) didn't match Pod's node affinity/selector"
ADDED = "node(s) didn't match scheduler-enforced node affinity"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

Term = dict[str, Any]


def nodes() -> list[Node]:
    return [
        make_node("a", labels={"zone": "x", "gen": "1"}),
        make_node("b", labels={"zone": "y", "gen": "5"}),
        make_node("c", labels={"gen": "new"}),
    ]


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def labelled(*expressions: dict[str, Any]) -> Term:
    return {"matchExpressions": list(expressions)}


def named(*names: str, operator: str = "In") -> Term:
    return {"matchFields": [expression("metadata.name", operator, *names)]}


def requiring(*terms: Term, **selector: str) -> Pod:
    affinity = {REQUIRED: {"nodeSelectorTerms": list(terms)}}
    return make_pod(node_selector=selector, spec={"affinity": {"nodeAffinity": affinity}})


def preferring(*terms: tuple[int, Term]) -> Pod:
    wanted = [{"weight": weight, "preference": term} for weight, term in terms]
    return make_pod(spec={"affinity": {"nodeAffinity": {PREFERRED: wanted}}})


def plugin(**added: Any) -> NodeAffinity:
    affinity = msgspec.convert(added, Affinity) if added else None
    return NodeAffinity(NodeAffinityArgs(added_affinity=affinity))


@pytest.mark.parametrize(
    ("pod", "accepted"),
    [
        pytest.param(make_pod(), "abc", id="accepts all nodes for a pod without requirements"),
        pytest.param(
            make_pod(node_selector={"zone": "x"}), "a", id="requires the nodeSelector's label"
        ),
        pytest.param(
            make_pod(node_selector={"zone": "x", "gen": "5"}),
            "",
            id="requires all labels of the nodeSelector",
        ),
        pytest.param(
            requiring(labelled(expression("zone", "In", "x", "y"))), "ab", id="understands In"
        ),
        pytest.param(
            requiring(labelled(expression("zone", "NotIn", "x"))), "bc", id="understands NotIn"
        ),
        pytest.param(
            requiring(labelled(expression("zone", "Exists"))), "ab", id="understands Exists"
        ),
        pytest.param(
            requiring(labelled(expression("zone", "DoesNotExist"))),
            "c",
            id="understands DoesNotExist",
        ),
        pytest.param(requiring(labelled(expression("gen", "Gt", "1"))), "b", id="understands Gt"),
        pytest.param(requiring(labelled(expression("gen", "Lt", "5"))), "a", id="understands Lt"),
        pytest.param(
            requiring(labelled(expression("zone", "Exists"), expression("gen", "Gt", "1"))),
            "b",
            id="requires all expressions of a term",
        ),
        pytest.param(
            requiring(
                labelled(expression("zone", "In", "x")), labelled(expression("gen", "In", "new"))
            ),
            "ac",
            id="requires one of several terms",
        ),
        pytest.param(
            requiring(labelled(expression("gen", "Exists")), zone="y"),
            "b",
            id="requires both nodeSelector and affinity",
        ),
        pytest.param(requiring(named("b")), "b", id="matches a node by metadata.name"),
        pytest.param(
            requiring(named("b", operator="NotIn")), "ac", id="understands NotIn for metadata.name"
        ),
        pytest.param(requiring(), "", id="accepts no node without a term"),
        pytest.param(requiring({}), "", id="accepts no node by an empty term"),
        pytest.param(
            requiring(named("a", "b")), "", id="accepts no node by a field with two names"
        ),
        pytest.param(
            requiring({"matchFields": [expression("metadata.uid", "In", "a")]}),
            "",
            id="accepts no node by an unknown field",
        ),
        pytest.param(
            requiring(labelled(expression("zone", "In"))),
            "",
            id="accepts no node by an invalid term",
        ),
        pytest.param(
            requiring(
                labelled(expression("gen", "Gt", "x")), labelled(expression("zone", "Exists"))
            ),
            "ab",
            id="ignores an invalid term beside a valid one",
        ),
    ],
)
def test_filter(pod: Pod, accepted: str) -> None:
    rejected = {name: [OWN] for name in "abc" if name not in accepted}
    assert rejections(plugin(), pod, make_state(nodes())) == rejected


def test_what_the_configuration_adds_is_required_first() -> None:
    added = plugin(**{REQUIRED: {"nodeSelectorTerms": [labelled(expression("zone", "Exists"))]}})
    pod = make_pod(node_selector={"zone": "x"})
    assert rejections(added, pod, make_state(nodes())) == {"b": [OWN], "c": [ADDED]}
    assert rejections(added, make_pod(), make_state(nodes())) == {"c": [ADDED]}


@pytest.mark.parametrize(
    ("pod", "answer"),
    [
        pytest.param(make_pod(), None, id="does not narrow the search without affinity"),
        pytest.param(
            make_pod(node_selector={"zone": "x"}),
            None,
            id="does not narrow the search by a nodeSelector",
        ),
        pytest.param(requiring(), None, id="does not narrow the search without a term"),
        pytest.param(
            requiring(named("a")), frozenset("a"), id="narrows the search to one node name"
        ),
        pytest.param(
            requiring(named("a", "b"), named("b", "c")),
            frozenset("abc"),
            id="narrows the search to the names of all terms",
        ),
        pytest.param(
            requiring(
                {"matchFields": [*named("a", "b")["matchFields"], *named("b")["matchFields"]]}
            ),
            frozenset("b"),
            id="narrows the search to names that all fields of a term have",
        ),
        pytest.param(
            requiring(named("a"), labelled(expression("zone", "Exists"))),
            None,
            id="does not narrow the search if one term names no nodes",
        ),
        pytest.param(
            requiring(named("a", operator="NotIn")), None, id="does not narrow the search by NotIn"
        ),
        pytest.param(
            requiring({"matchFields": [*named("a")["matchFields"], *named("b")["matchFields"]]}),
            PodRejection("pod affinity terms conflict"),
            id="rejects the pod if no name is left",
        ),
    ],
)
def test_pre_filter(pod: Pod, answer: Any) -> None:
    assert plugin().pre_filter(pod, make_state(nodes()).nodes()) == answer


@pytest.mark.parametrize(
    ("pod", "raw"),
    [
        pytest.param(make_pod(), None, id="has no opinion without preferences"),
        pytest.param(
            preferring(
                (10, labelled(expression("zone", "Exists"))),
                (3, labelled(expression("gen", "In", "1", "new"))),
            ),
            {"a": 10 + 3, "b": 10, "c": 3},
            id="adds the weights of matching terms",
        ),
        pytest.param(
            preferring((0, labelled(expression("zone", "Exists"))), (5, {})),
            {"a": 0, "b": 0, "c": 0},
            id="ignores terms without weight and empty terms",
        ),
        pytest.param(
            preferring((7, named("c"))),
            {"a": 0, "b": 0, "c": 7},
            id="matches a node by metadata.name",
        ),
    ],
)
def test_score(pod: Pod, raw: dict[str, int] | None) -> None:
    assert scores(plugin(), pod, make_state(nodes())) == raw


def test_the_configuration_adds_preferences() -> None:
    term = {"weight": 4, "preference": labelled(expression("gen", "In", "5"))}
    added = plugin(**{PREFERRED: [term]})
    pod = preferring((10, labelled(expression("zone", "Exists"))))
    state = make_state(nodes())
    assert scores(added, pod, state) == {"a": 10, "b": 10 + 4, "c": 0}
    assert scores(added, make_pod(), state) == {"a": 0, "b": 4, "c": 0}


def test_the_highest_is_best() -> None:
    pod = preferring(
        (10, labelled(expression("zone", "Exists"))), (5, labelled(expression("gen", "In", "5")))
    )
    decision = place([plugin()], pod, nodes())
    # 15*100//15, 10*100//15, 0
    assert {each.node_name: each.total for each in decision.best} == {"b": 100, "a": 66, "c": 0}


def test_weights_of_any_size_are_scaled() -> None:
    zone = labelled(expression("zone", "Exists"))
    pod = preferring((10**30, zone), (2**31 - 1, labelled(expression("gen", "In", "5"))))
    decision = place([plugin()], pod, nodes())
    # both weights count as 2**31 - 1: 2*100//2, 1*100//2, 0
    assert {each.node_name: each.total for each in decision.best} == {"b": 100, "a": 50, "c": 0}
