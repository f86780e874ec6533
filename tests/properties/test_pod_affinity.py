"""InterPodAffinity agrees with its plain twin, on any cluster and on any face of it."""

from typing import Any

import msgspec
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.properties.pod_affinity_twin import PlainInterPodAffinity

from lowtide.cluster.nodes import Nodes
from lowtide.objects.kinds import Namespace
from lowtide.objects.pod import Pod
from lowtide.plugins.inter_pod_affinity import InterPodAffinity, InterPodAffinityArgs
from lowtide.testing import make_node, make_pod, make_state

STEADY = settings(
    max_examples=400,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
NAMES = [f"n{number}" for number in range(5)]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

apps = st.fixed_dictionaries({}, optional={"app": st.sampled_from(["web", "db"])})
selectors = st.sampled_from(
    [
        {"matchLabels": {"app": "web"}},
        {"matchLabels": {"app": "web"}},
        {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
        {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]},
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]},
        {},
        None,
    ]
)
namespace_selectors = st.sampled_from(
    [
        {},
        {"matchLabels": {"team": "x"}},
        {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]},
    ]
)
terms = st.fixed_dictionaries(
    {
        "topologyKey": st.sampled_from(["zone", "kubernetes.io/hostname"]),
        "labelSelector": selectors,
    },
    optional={
        "namespaces": st.sampled_from([["default"], ["other"], ["default", "other"]]),
        "namespaceSelector": namespace_selectors,
    },
)
preferred = st.builds(
    lambda weight, term: {"weight": weight, "podAffinityTerm": term}, st.integers(1, 9), terms
)
asked = st.fixed_dictionaries(
    {},
    optional={
        REQUIRED: st.lists(terms, min_size=1, max_size=2),
        PREFERRED: st.lists(preferred, min_size=1, max_size=2),
    },
)
affinities = st.fixed_dictionaries({}, optional={"podAffinity": asked, "podAntiAffinity": asked})
spaces = st.sampled_from(["default", "default", "other"])
pending = st.builds(
    lambda affinity, **known: make_pod("pending", spec={"affinity": affinity}, **known),
    affinities,
    labels=apps,
    namespace=spaces,
)


def running(draw: st.DrawFn, name: str) -> Pod:
    return make_pod(
        name,
        namespace=draw(spaces),
        on=draw(st.sampled_from(NAMES)),
        labels=draw(apps),
        deleted=draw(st.booleans()),
        spec={"affinity": draw(affinities)} if draw(st.booleans()) else {},
    )


@st.composite
def faces(draw: st.DrawFn) -> Nodes:
    """A table: of all nodes, or with pods added to and taken from some rows hypothetically."""
    zones = st.fixed_dictionaries({}, optional={"zone": st.sampled_from(["x", "y"])})
    count = draw(st.integers(0, len(NAMES)))
    nodes = [make_node(name, labels=draw(zones)) for name in NAMES[:count]]
    pods = [running(draw, f"p{number}") for number in range(draw(st.integers(0, 6)))]
    state = make_state(nodes, pods)
    for name, team in (("default", "x"), ("other", "y")):
        if draw(st.booleans()):
            state.put_object(
                msgspec.convert({"metadata": {"name": name, "labels": {"team": team}}}, Namespace)
            )
    face = state.nodes()
    for at in draw(st.lists(st.sampled_from(range(count)), unique=True)) if nodes else ():
        if draw(st.booleans()):
            face = face.with_pods({at: [running(draw, f"new-{at}")]})
        if draw(st.booleans()):
            face = face.without({at: [pod.uid for pod in pods[:3]]})
    return face


def rejections(plugin: Any, pod: Pod, nodes: Nodes) -> list[tuple[str, str, bool]]:
    return sorted(
        (nodes.names[at], rejection.reason, rejection.eviction_helps)
        for rejection in plugin.filter(pod, nodes)
        for at in np.flatnonzero(rejection.mask)
    )


@STEADY
@given(pod=pending, nodes=faces())
def test_filters_agree(pod: Pod, nodes: Nodes) -> None:
    plugin, twin = InterPodAffinity(InterPodAffinityArgs()), PlainInterPodAffinity(1, False)
    assert rejections(plugin, pod, nodes) == rejections(twin, pod, nodes)


@STEADY
@given(
    pod=pending,
    nodes=faces(),
    hard_weight=st.sampled_from([0, 1, 50]),
    is_ignoring=st.booleans(),
    data=st.data(),
)
def test_scores_agree(
    pod: Pod, nodes: Nodes, hard_weight: int, is_ignoring: bool, data: st.DataObject
) -> None:
    plugin = InterPodAffinity(InterPodAffinityArgs(hard_weight, is_ignoring))
    twin = PlainInterPodAffinity(hard_weight, is_ignoring)
    nodes = nodes.everything
    flags = st.lists(st.booleans(), min_size=len(nodes), max_size=len(nodes))
    feasible = np.array(data.draw(flags), np.bool_)
    nodes = nodes.with_feasible(feasible)
    raw, plain = plugin.score(pod, nodes), twin.score(pod, nodes)
    if raw is None or plain is None:
        assert raw is plain
        return
    assert raw.tolist() == plain.tolist()
    if feasible.any():
        normalized = plugin.normalize(pod, nodes, raw)[feasible].tolist()
        assert normalized == twin.normalize(plain[feasible].tolist())


@STEADY
@given(pod=pending, nodes=faces(), data=st.data())
def test_judging_some_rows_is_taking_rows_of_judging_all(
    pod: Pod, nodes: Nodes, data: st.DataObject
) -> None:
    plugin = InterPodAffinity(InterPodAffinityArgs())
    every_position = st.sampled_from(range(len(nodes))) if len(nodes) else st.nothing()
    positions = np.array(data.draw(st.lists(every_position, unique=True)), np.intp)
    some, kept = nodes.take(positions), {nodes.names[at] for at in positions}
    of_all = [each for each in rejections(plugin, pod, nodes) if each[0] in kept]
    assert rejections(plugin, pod, some) == of_all
    raw = plugin.score(pod, nodes)
    taken = plugin.score(pod, some)
    if raw is None or taken is None:
        assert raw is taken
    else:
        assert taken.tolist() == raw[positions].tolist()
