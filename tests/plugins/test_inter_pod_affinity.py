"""InterPodAffinity: near whom a pod must or may be, away from whom, and who wants it away."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from lowtide.cluster.nodes import Nodes
from lowtide.cluster.state import ClusterState
from lowtide.framework.plugin import PodRejection
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.objects.kinds import Namespace
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.plugins.inter_pod_affinity import InterPodAffinity, InterPodAffinityArgs
from lowtide.scheduler.decide import decide
from lowtide.testing import make_node, make_pod, make_profile, make_state, rejections, scores

NOT_NEAR = "node(s) didn't match pod affinity rules"
TOO_NEAR = "node(s) didn't match pod anti-affinity rules"
UNWANTED = "node(s) didn't satisfy existing pods anti-affinity rules"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
HOSTNAME = "kubernetes.io/hostname"
DB = {"matchLabels": {"app": "db"}}
WEB = {"matchLabels": {"app": "web"}}


def plugin(**args: Any) -> InterPodAffinity:
    return InterPodAffinity(msgspec.convert(args, InterPodAffinityArgs))


def four_nodes() -> list[Node]:
    """Two in zone x, one in zone y, one without a zone."""
    zones = {"a": "x", "b": "x", "c": "y", "bare": None}
    return [
        make_node(name, labels={} if zone is None else {"zone": zone})
        for name, zone in zones.items()
    ]


def term(selector: Any = DB, key: str = "zone", **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": selector, **more}


def weighted(weight: int, **more: Any) -> dict[str, Any]:
    return {"weight": weight, "podAffinityTerm": term(**more)}


def web(
    name: str = "web",
    *,
    on: str = "",
    near: Sequence[Any] = (),
    away: Sequence[Any] = (),
    rather: Sequence[Any] = (),
    rather_not: Sequence[Any] = (),
    app: str = "web",
    **more: Any,
) -> Pod:
    affinity = {
        "podAffinity": {REQUIRED: list(near), PREFERRED: list(rather)},
        "podAntiAffinity": {REQUIRED: list(away), PREFERRED: list(rather_not)},
    }
    return make_pod(name, on=on, labels={"app": app}, spec={"affinity": affinity}, **more)


def db(name: str = "db", on: str = "a", **more: Any) -> Pod:
    return make_pod(name, on=on, labels={"app": "db"}, **more)


def namespace(name: str, **labels: str) -> Namespace:
    return msgspec.convert({"metadata": {"name": name, "labels": labels}}, Namespace)


def rejected(pod: Pod, *pods: Pod, nodes: Sequence[Node] | None = None) -> dict[str, list[str]]:
    return rejections(plugin(), pod, make_state(four_nodes() if nodes is None else nodes, pods))


def rejected_on(face: Nodes, pod: Pod) -> dict[str, tuple[str, bool]]:
    """The reason, and whether evicting could help, of each node that is rejected."""
    return {
        face.names[at]: (rejection.reason, rejection.eviction_helps)
        for rejection in plugin().filter(pod, face)
        for at in np.flatnonzero(rejection.mask)
    }


def everywhere_but(*names: str, reason: str) -> dict[str, list[str]]:
    return {name: [reason] for name in ("a", "b", "c", "bare") if name not in names}


# What the pod requires.


@pytest.mark.parametrize(
    ("near", "pods", "accepted"),
    [
        pytest.param(
            [term()], [db()], ["a", "b"], id="accepts the zone of a pod that the affinity matches"
        ),
        pytest.param(
            [term(key=HOSTNAME)],
            [db()],
            ["a"],
            id="accepts only the node of a matching pod with the hostname key",
        ),
        pytest.param([term()], [], [], id="rejects every node if no pod matches"),
        pytest.param(
            [term()],
            [db(on="bare")],
            [],
            id="ignores a matching pod on a node without the topology label",
        ),
        pytest.param([term()], [db(deleted=True)], ["a", "b"], id="counts terminating pods"),
        pytest.param(
            [term(), term(WEB)],
            [db(), web("other", on="a")],
            [],
            id="needs one pod that matches all terms, not one pod per term",
        ),
        pytest.param(
            [term(), term({"matchLabels": {"tier": "1"}}, HOSTNAME)],
            [
                db(),
                make_pod("both", on="c", labels={"app": "db", "tier": "1"}),
            ],
            ["c"],
            id="needs such a pod in the domain of each term",
        ),
        pytest.param(
            [term(WEB)],
            [db()],
            ["a", "b", "c"],
            id="accepts any node for the first pod of its own group",
        ),
        pytest.param(
            [term(WEB)],
            [web("other", on="bare")],
            ["a", "b", "c"],
            id="treats the pod as first if the others are on nodes without the label",
        ),
        pytest.param(
            [term(WEB)],
            [web("other", on="c")],
            ["c"],
            id="does not treat a later pod of the group as first",
        ),
        pytest.param(
            [term(WEB), term()],
            [],
            [],
            id="does not treat a pod as first of a group it does not match",
        ),
        pytest.param([term(None)], [db()], [], id="matches no pod without a selector"),
        pytest.param([term({})], [db()], ["a", "b"], id="matches every pod by an empty selector"),
    ],
)
def test_required_affinity(near: Sequence[Any], pods: Sequence[Pod], accepted: list[str]) -> None:
    assert rejected(web(near=near), *pods) == everywhere_but(*accepted, reason=NOT_NEAR)


@pytest.mark.parametrize(
    ("away", "pods", "left_out"),
    [
        pytest.param([term()], [db()], ["a", "b"], id="rejects the zone of a matching pod"),
        pytest.param(
            [term(key=HOSTNAME)],
            [db()],
            ["a"],
            id="rejects only the node of a matching pod with the hostname key",
        ),
        pytest.param(
            [term()],
            [db(on="bare")],
            [],
            id="ignores a matching pod on a node without the topology label",
        ),
        pytest.param([term()], [db(deleted=True)], ["a", "b"], id="counts terminating pods"),
        pytest.param(
            [term(), term(WEB, HOSTNAME)],
            [db(on="c"), web("other", on="bare")],
            ["c", "bare"],
            id="applies each term on its own",
        ),
        pytest.param([term(None)], [db()], [], id="matches no pod without a selector"),
    ],
)
def test_required_anti_affinity(
    away: Sequence[Any], pods: Sequence[Pod], left_out: list[str]
) -> None:
    assert rejected(web(away=away), *pods) == {name: [TOO_NEAR] for name in left_out}


@pytest.mark.parametrize(
    ("pods", "left_out"),
    [
        pytest.param(
            [db(), web("one", on="a", away=[term(WEB)])],
            ["a", "b"],
            id="rejects the zone of the existing pod",
        ),
        pytest.param(
            [web("one", on="c", away=[term(WEB, HOSTNAME)])],
            ["c"],
            id="rejects only the node of the existing pod with the hostname key",
        ),
        pytest.param(
            [web("one", on="bare", away=[term(WEB)])],
            [],
            id="rejects no node without the topology label",
        ),
        pytest.param(
            [web("one", on="a", away=[term()])], [], id="ignores a term that does not match the pod"
        ),
        pytest.param(
            [web("one", on="a", away=[term(WEB)], namespace="other")],
            [],
            id="ignores a pod of another namespace by default",
        ),
        pytest.param(
            [web("one", on="a", away=[term(WEB, namespaces=["default"])], namespace="other")],
            ["a", "b"],
            id="applies a term in the namespaces that it lists",
        ),
        pytest.param(
            [web("one", on="a", near=[term(WEB)])], [], id="ignores the affinity of existing pods"
        ),
        pytest.param(
            [
                web("one", on="a", away=[term(WEB, HOSTNAME)]),
                web("two", on="c", away=[term(WEB), term(WEB, HOSTNAME)]),
            ],
            ["a", "c"],
            id="applies the terms of several existing pods",
        ),
    ],
)
def test_a_pod_that_is_there_keeps_others_away(pods: Sequence[Pod], left_out: list[str]) -> None:
    assert rejected(make_pod(labels={"app": "web"}), *pods) == {
        name: [UNWANTED] for name in left_out
    }


def test_the_first_reason_counts() -> None:
    pod = web(near=[term()], away=[term(WEB, HOSTNAME)])
    others = [db(), web("one", on="a", away=[term(WEB)]), web("two", on="c", away=[term(WEB)])]
    face = make_state(four_nodes(), others).nodes()
    assert rejected_on(face, pod) == {
        "a": (TOO_NEAR, True),
        "b": (UNWANTED, True),
        "c": (NOT_NEAR, False),
        "bare": (NOT_NEAR, False),
    }


# Namespaces.


@pytest.mark.parametrize(
    ("more", "accepted"),
    [
        pytest.param({}, [], id="searches the pod's own namespace"),
        pytest.param({"namespaces": ["blue"]}, ["a", "b"], id="searches listed namespaces"),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"team": "y"}}},
            ["c"],
            id="searches namespaces with a label",
        ),
        pytest.param(
            {"namespaces": ["blue"], "namespaceSelector": {"matchLabels": {"team": "y"}}},
            ["a", "b", "c"],
            id="searches both listed and selected namespaces",
        ),
        pytest.param(
            {"namespaceSelector": {}},
            ["a", "b", "c"],
            id="searches every namespace by an empty selector",
        ),
        pytest.param(
            {
                "namespaceSelector": {
                    "matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]
                }
            },
            ["a", "b", "c"],
            id="searches every namespace by a selector that matches a namespace without labels",
        ),
    ],
)
def test_the_pod(more: Mapping[str, Any], accepted: list[str]) -> None:
    state = make_state(
        four_nodes(), [db("one", "a", namespace="blue"), db("two", "c", namespace="red")]
    )
    state.put_object(namespace("blue", team="x"))
    state.put_object(namespace("red", team="y"))
    pod = web(near=[term(**more)])
    assert rejections(plugin(), pod, state) == everywhere_but(*accepted, reason=NOT_NEAR)


@pytest.mark.parametrize(
    ("selector", "is_rejected"),
    [
        pytest.param(
            {"matchLabels": {"team": "x"}},
            True,
            id="applies the term in a namespace with the label",
        ),
        pytest.param(
            {"matchLabels": {"team": "y"}},
            False,
            id="does not apply the term in a namespace without the label",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]},
            False,
            id="uses the namespace's labels even if having none would match",
        ),
        pytest.param({}, True, id="applies the term in every namespace by an empty selector"),
    ],
)
def test_a_pod_that_is_there(selector: Mapping[str, Any], is_rejected: bool) -> None:
    other = web("one", on="c", away=[term(WEB, namespaceSelector=selector)], namespace="red")
    state = make_state(four_nodes(), [other])
    state.put_object(namespace("blue", team="x"))
    pod = make_pod(namespace="blue", labels={"app": "web"})
    want = {"c": [UNWANTED]} if is_rejected else {}
    assert rejections(plugin(), pod, state) == want


def test_a_pod_that_matches_all_terms_is_in_the_namespaces_of_all() -> None:
    pods = [db("one", "a", namespace="blue"), db("two", "c", namespace="red")]
    blue, both = term(namespaces=["blue"]), term(namespaces=["blue", "red"])
    assert rejected(web(near=[both, blue]), *pods) == everywhere_but("a", "b", reason=NOT_NEAR)
    assert rejected(web(near=[blue, term(namespaces=["red"])]), *pods) == everywhere_but(
        reason=NOT_NEAR
    )


def test_a_namespace_that_comes_makes_kept_verdicts_stale() -> None:
    state = make_state(four_nodes(), [db("one", "c", namespace="red")])
    verdicts = VerdictCache(make_profile([plugin()]), state)
    pod = web(near=[term(namespaceSelector={"matchLabels": {"team": "y"}})])
    assert decide(pod, verdicts, turn=0).node_name is None
    red = namespace("red", team="y")
    state.put_object(red)
    assert decide(pod, verdicts, turn=0).node_name == "c"


# Pods hypothetically.


def test_a_promised_pod_counts_on_its_own_node_alone() -> None:
    face = make_state(four_nodes(), [web("far", on="c")]).nodes()
    promised = face.with_pods({0: [web("next", away=[term(WEB)])]})
    pod = web(away=[term(WEB, HOSTNAME)])
    assert rejected_on(promised, pod) == {"a": (TOO_NEAR, True), "c": (TOO_NEAR, True)}
    wanted = web(near=[term(WEB)], app="db")
    assert rejected_on(promised, wanted) == {"b": (NOT_NEAR, False), "bare": (NOT_NEAR, False)}


def test_what_a_promised_pod_wants_counts_where_the_plugin_is_concerned() -> None:
    face = make_state(four_nodes(), [web("far", on="c", away=[term(WEB)])]).nodes()
    promised = face.with_pods({0: [web("next", away=[term(WEB)])]})
    plain = make_pod(labels={"app": "web"})
    assert rejected_on(promised, plain) == {"a": (UNWANTED, True), "c": (UNWANTED, True)}


def test_what_a_promised_pod_wants_is_not_asked_where_nothing_else_concerns_the_pod() -> None:
    """kube-scheduler has skipped the plugin by then."""
    face = make_state(four_nodes(), [web("far", on="bare", away=[term(WEB)])]).nodes()
    promised = face.with_pods({0: [web("next", away=[term(WEB)])]})
    assert rejected_on(promised, make_pod(labels={"app": "web"})) == {}


def test_a_promised_pod_reaches_nobody_on_a_node_without_the_label() -> None:
    face = make_state(four_nodes(), [web("far", on="c", away=[term(WEB)])]).nodes()
    promised = face.with_pods({3: [web("next", away=[term(WEB)])]})
    assert rejected_on(promised, make_pod(labels={"app": "web"})) == {"c": (UNWANTED, True)}
    assert rejected_on(promised, web(away=[term(WEB)])) == {"c": (TOO_NEAR, True)}


def test_a_victim_is_gone_from_its_own_node_alone() -> None:
    others = [web("one", on="a", away=[term(WEB)]), db(on="a")]
    face = make_state(four_nodes(), others).nodes()
    assert rejected_on(face.without({0: ["default/one"]}), make_pod(labels={"app": "web"})) == {
        "b": (UNWANTED, True)
    }
    assert rejected_on(face.without({0: ["default/db"]}), web(app="x", away=[term()])) == {
        "b": (TOO_NEAR, True)
    }
    assert rejected_on(face.without({0: ["default/db"]}), web(app="x", near=[term()])) == {
        "a": (NOT_NEAR, False),
        "c": (NOT_NEAR, False),
        "bare": (NOT_NEAR, False),
    }


def test_without_the_last_of_its_group_a_pod_is_the_first_there() -> None:
    face = make_state(four_nodes(), [web("one", on="a")]).nodes()
    pod = web(near=[term(WEB), term(WEB, HOSTNAME)])
    elsewhere = dict.fromkeys(("b", "c", "bare"), (NOT_NEAR, False))
    assert rejected_on(face, pod) == elsewhere
    assert rejected_on(face.without({0: ["default/one"]}), pod) == elsewhere


# Scores.


def scored(pod: Pod, *pods: Pod, **args: Any) -> dict[str, int] | None:
    return scores(plugin(**args), pod, make_state(four_nodes(), pods))


def of_nodes(a: int = 0, b: int = 0, c: int = 0, bare: int = 0) -> dict[str, int]:
    return {"a": a, "b": b, "c": c, "bare": bare}


@pytest.mark.parametrize(
    ("pod", "pods", "want"),
    [
        pytest.param(
            web(rather=[weighted(10)]),
            [db(), db("db-2", "b"), db("db-3", "c"), db("db-4", "bare")],
            of_nodes(a=20, b=20, c=10),  # 2 pods in x, 1 in y, 10 each
            id="adds the weight for each pod in the domain",
        ),
        pytest.param(
            web(rather_not=[weighted(10), weighted(3, key=HOSTNAME)]),
            [db()],
            of_nodes(a=-13, b=-10),
            id="subtracts the weight for each pod of a preferred anti-affinity",
        ),
        pytest.param(
            make_pod(labels={"app": "web"}),
            [
                web("one", on="a", rather=[weighted(7, selector=WEB)]),
                web("two", on="c", rather_not=[weighted(5, selector=WEB)]),
            ],
            of_nodes(a=7, b=7, c=-5),
            id="counts the preferences of existing pods",
        ),
        pytest.param(
            make_pod(labels={"app": "web"}),
            [web("one", on="a", near=[term(WEB), term(WEB, HOSTNAME)])],
            of_nodes(a=2, b=1),  # 1 for each required term
            id="counts the required affinity of existing pods with weight 1",
        ),
        pytest.param(
            make_pod(labels={"app": "web"}),
            [web("one", on="a", away=[term(WEB)])],
            None,
            id="ignores the required anti-affinity of existing pods",
        ),
        pytest.param(
            web(rather=[weighted(10)], rather_not=[weighted(10)]),
            [db()],
            of_nodes(),
            id="has an opinion even if preferences cancel out",
        ),
        pytest.param(
            web(rather=[weighted(10)]), [], None, id="has no opinion without matching pods"
        ),
        pytest.param(
            web(rather=[weighted(10)]),
            [db(on="bare")],
            None,
            id="has no opinion if matching pods are on nodes without the label",
        ),
        pytest.param(
            make_pod(), [db(), web("one", on="a")], None, id="has no opinion without terms"
        ),
        pytest.param(
            web(rather=[weighted(10**30)] * 3),
            [db()],
            of_nodes(a=3 * (2**31 - 1), b=3 * (2**31 - 1)),
            id="caps a weight at the largest 32-bit integer",
        ),
    ],
)
def test_the_score(pod: Pod, pods: Sequence[Pod], want: dict[str, int] | None) -> None:
    assert scored(pod, *pods) == want


@pytest.mark.parametrize(
    ("args", "want"),
    [
        pytest.param(
            {"hardPodAffinityWeight": 40}, of_nodes(a=43, b=43), id="uses the weight from its args"
        ),
        pytest.param(
            {"hardPodAffinityWeight": 0},
            of_nodes(a=3, b=3),
            id="ignores required affinity with weight 0",
        ),
        pytest.param(
            {"ignorePreferredTermsOfExistingPods": True},
            None,
            id="ignores the preferences of existing pods if configured",
        ),
    ],
)
def test_by_args_the_plugin(args: Mapping[str, Any], want: dict[str, int] | None) -> None:
    other = web("one", on="a", near=[term(WEB)], rather=[weighted(3, selector=WEB)])
    assert scored(make_pod(labels={"app": "web"}), other, **args) == want


def test_a_hard_weight_of_0_is_no_opinion() -> None:
    other = web("one", on="a", near=[term(WEB)])
    assert scored(make_pod(labels={"app": "web"}), other, hardPodAffinityWeight=0) is None


def test_others_are_not_ignored_by_a_pod_with_preferences_of_its_own() -> None:
    other = web("one", on="a", rather=[weighted(3, selector=WEB)])
    pod = web(rather=[weighted(10, key=HOSTNAME)])
    ignoring = {"ignorePreferredTermsOfExistingPods": True}
    assert scored(pod, other, db(on="c"), **ignoring) == of_nodes(a=3, b=3, c=10)


@pytest.mark.parametrize(
    ("raw", "feasible", "want"),
    [
        pytest.param([10, 0, -5], [1, 1, 1], [100, 33, 0], id="normalizes to 0 to 100"),
        # (0 - -5) / 15 * 100 = 33.3
        pytest.param([10, 0, -5], [1, 1, 0], [100, 0], id="normalizes by the feasible nodes only"),
        pytest.param([-7, -7, -7], [1, 1, 1], [0, 0, 0], id="scores 0 if all are equal"),
        pytest.param([0, 29, 100], [1, 1, 1], [0, 28, 100], id="rounds as kube-scheduler does"),
        # 29 / 100 * 100 = 28.999...
    ],
)
def test_normalized(raw: list[int], feasible: list[int], want: list[int]) -> None:
    mask = np.array(feasible, np.bool_)
    nodes = make_state(four_nodes()[: len(raw)]).nodes().with_feasible(mask)
    normalized = plugin().normalize(make_pod(), nodes, np.array(raw, np.int64))
    assert normalized[mask].tolist() == want


# Bad input.


def test_a_pod_whose_terms_make_no_sense_is_rejected_with_the_field() -> None:
    bad = {"matchExpressions": [{"key": "app", "operator": "Near"}]}
    nodes = make_state(four_nodes()).nodes()
    at = f"{REQUIRED}[0].labelSelector.matchExpressions[0].operator"
    problem = '"Near" is not a valid label selector operator'
    near = f"requiredAffinityTerms: spec.affinity.podAffinity.{at}: {problem}"
    away = f"requiredAntiAffinityTerms: spec.affinity.podAntiAffinity.{at}: {problem}"
    one, both = web(near=[term(bad)]), web(near=[term(bad)], away=[term(bad)])
    assert plugin().pre_filter(one, nodes) == PodRejection(f"parsing pod: {near}")
    assert plugin().pre_filter(both, nodes) == PodRejection(f"parsing pod: [{near}, {away}]")
    assert plugin().pre_filter(web(near=[term()]), nodes) is None


def test_a_bad_term_of_a_pod_that_is_there_hurts_nobody() -> None:
    bad = {"matchExpressions": [{"key": "app", "operator": "In", "values": []}]}
    other = web("one", on="a", away=[term(bad), term(WEB)], rather=[weighted(2, selector=WEB)])
    state: ClusterState = make_state(four_nodes(), [other])
    pod = make_pod(labels={"app": "web"})
    assert rejections(plugin(), pod, state) == {}
    assert scores(plugin(), pod, state) == of_nodes(a=2, b=2)


@pytest.mark.parametrize(
    ("weight", "problems"),
    [
        pytest.param(0, [], id="accepts a weight of 0"),
        pytest.param(100, [], id="accepts a weight of 100"),
        pytest.param(
            101,
            [("hardPodAffinityWeight", "Invalid value: 101: not in valid range [0, 100]")],
            id="rejects a weight of 101",
        ),
        pytest.param(
            -1,
            [("hardPodAffinityWeight", "Invalid value: -1: not in valid range [0, 100]")],
            id="rejects a weight of -1",
        ),
    ],
)
def test_args(weight: int, problems: list[tuple[str, str]]) -> None:
    assert list(InterPodAffinityArgs(hard_pod_affinity_weight=weight).problems()) == problems
