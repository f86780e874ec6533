"""`check_plugin` checks that the answers of a filter or score plugin may be kept, and do not depend
on which nodes are asked about together. It uses random clusters, the same for the same seed."""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from lowtide.cluster.columns import BoolArray
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.state import ClusterState
from lowtide.framework.asking import ask, readings_of
from lowtide.framework.profile import Profile
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod, PodStatus
from lowtide.readings.prometheus_query import PrometheusQuery
from lowtide.testing.builders import make_node, make_pod, make_values
from lowtide.testing.placing import is_concerned, make_profile

_MOST_NODES: Final = 7
_MOST_PODS: Final = 12
_EVENTS: Final = 12
_ACCEPTED: Final = "no rejection"

_NODES: Final = (
    make_node(labels={"zone": "a", "disk": "ssd"}),
    make_node(labels={"zone": "b"}, cpu="2", memory="4Gi"),
    make_node(labels={"zone": "c", "disk": "hdd"}, cpu="16", memory="64Gi", pods=3),
    make_node(taints=[{"key": "gpu", "effect": "NoSchedule"}], gpu=1),
    make_node(unschedulable=True),
)
_PODS: Final = (
    make_pod("plain", cpu="500m", memory="1Gi"),
    make_pod("labelled", labels={"app": "a"}, cpu="100m"),
    make_pod("large", labels={"app": "b"}, cpu="3", memory="6Gi", priority=5),
    make_pod("selective", node_selector={"zone": "a"}),
    make_pod("tolerant", tolerations=[{"operator": "Exists"}], host_ports=[80]),
)


def check_plugin(
    plugin: Any,
    pods: Sequence[Pod] = (),
    nodes: Sequence[Node] = (),
    *,
    objects: Sequence[Any] = (),
    clusters: int = 40,
    seed: int = 0,
) -> None:
    """Raises AssertionError if the plugin's answers about a node differ that must be the same:

    - whichever other nodes are asked about in the same call;
    - for pods that differ only in name, uid, times and status;
    - kept from an earlier call, or asked for now.

    Give it pods and nodes with the labels, annotations and so on that the plugin reads. They are
    mixed with plain ones, under other names. `objects` of its kinds are added and removed. The
    PrometheusQueries in its `readings` have random values."""
    profile = make_profile([plugin])
    if not any(profile.plugins_for_point(point) for point in ("preFilter", "filter", "score")):
        raise ValueError(f"{plugin.name} has no pre_filter, filter or score to check")
    for number in range(clusters):
        draw = random.Random(f"{seed}/{number}")
        cluster = _RandomCluster(draw, [*_PODS, *pods, *pods], [*_NODES, *nodes, *nodes], objects)
        _Check(plugin, profile, cluster.state, draw).check_cluster(cluster, [*pods, *_PODS])


class _RandomCluster:
    def __init__(
        self,
        draw: random.Random,
        pods: Sequence[Pod],
        nodes: Sequence[Node],
        objects: Sequence[Any],
    ) -> None:
        self.state = ClusterState()
        self._draw = draw
        self._pods = pods
        self._nodes = nodes
        self._objects = objects
        self._placed: set[str] = set()
        for _ in range(draw.randint(2, _MOST_NODES)):
            self._node_comes_or_changes()
        for _ in range(draw.randint(0, _MOST_PODS)):
            self._pod_comes_or_changes()

    def change(self, requests: Sequence[Any]) -> None:
        events = [
            self._node_comes_or_changes,
            self._node_goes,
            self._pod_comes_or_changes,
            self._pod_comes_or_changes,
            self._pod_goes,
        ]
        if self._objects:
            events.append(self._object_comes_or_goes)
        if requests:
            events.append(lambda: self._is_measured(self._draw.choice(requests)))
        self._draw.choice(events)()

    def _node_comes_or_changes(self) -> None:
        name, like = f"node-{self._draw.randrange(_MOST_NODES)}", self._draw.choice(self._nodes)
        labels = {**like.labels, "kubernetes.io/hostname": name}
        self.state.update_node(
            replace(like, metadata=replace(like.metadata, name=name, labels=labels))
        )

    def _node_goes(self) -> None:
        if self.state.count > 2:
            self.state.remove_node(self.state.node_at(self._draw.randrange(self.state.count)).name)

    def _pod_comes_or_changes(self) -> None:
        """If the pod exists, its labels and annotations change."""
        name, like = f"pod-{self._draw.randrange(_MOST_PODS)}", self._draw.choice(self._pods)
        before = self.state.placed(name)
        node_name = self.state.node_at(self._draw.randrange(self.state.count)).name
        spec = replace(like.spec, node_name=node_name) if before is None else before.pod.spec
        meta = replace(like.metadata, name=name, uid=name)
        self.state.place(replace(like, metadata=meta, spec=spec))
        self._placed.add(name)

    def _pod_goes(self) -> None:
        if self._placed:
            uid = self._draw.choice(sorted(self._placed))
            self._placed.discard(uid)
            self.state.remove_pod(uid)

    def _object_comes_or_goes(self) -> None:
        thing = self._draw.choice(self._objects)
        if self._draw.random() < 0.6:
            self.state.put_object(thing)
        else:
            self.state.remove_object(thing)

    def _is_measured(self, request: Any) -> None:
        names = [name for name in self.state.names if self._draw.random() < 0.8]
        values = {name: self._draw.choice([0.0, 0.2, 0.5, 1.0, 40.0]) for name in names}
        self.state.publish(request, make_values(values))


class _Check:
    def __init__(
        self, plugin: Any, profile: Profile, state: ClusterState, draw: random.Random
    ) -> None:
        self._plugin = plugin
        self._profile = profile
        self._state = state
        self._draw = draw
        self._kept = VerdictCache(profile, state)

    def check_cluster(self, cluster: _RandomCluster, pods: Sequence[Pod]) -> None:
        queries = [each for each in readings_of(self._plugin) if isinstance(each, PrometheusQuery)]
        for _ in range(_EVENTS):
            cluster.change(queries)
            pod = self._draw.choice(pods)
            kept = _answers_of(self._kept, pod)  # PluginError if an answer has a wrong type
            if is_concerned(self._plugin, pod):
                some = self._draw.choices([True, False], k=self._state.count)
                feasible = np.array(some, np.bool_)
                whole = self._asked(pod, self._state.nodes(), feasible)
                self._check_parts(pod, whole, feasible)
                self._check_signature(pod, whole, feasible)
            self._check_kept(pod, kept)

    def _check_parts(self, pod: Pod, whole: "_Answers", feasible: BoolArray) -> None:
        table, count = self._state.nodes(), self._state.count
        permuted = self._draw.sample(range(count), count)
        half = self._draw.randint(1, count)
        for part in (*([at] for at in permuted), permuted[:half], permuted[half:], permuted):
            if part:
                found = self._asked(pod, table.take(np.array(part, np.intp)), feasible)
                how = _among([table.names[at] for at in part], count)
                for method, name, one, other in _differences(whole, found):
                    raise AssertionError(
                        f"{self._plugin.name}.{method} answers about node {name} and pod "
                        f"{pod.name}: {one} when it is asked about all {count} nodes, and {other} "
                        f"when it is asked about {how}; the answer about a node must not depend on "
                        "which others it is asked about: read other nodes from `nodes.everything`"
                    )

    def _check_signature(self, pod: Pod, whole: "_Answers", feasible: BoolArray) -> None:
        found = self._asked(_of_same_signature(pod), self._state.nodes(), feasible)
        for method, name, one, other in _differences(whole, found):
            raise AssertionError(
                f"{self._plugin.name}.{method} answers about node {name} and pod {pod.name}: "
                f"{one}, and {other} for a pod that differs only in name, uid, times and status; "
                "the answer must be the same for all pods of one signature: do not read these"
            )

    def _check_kept(self, pod: Pod, kept: "_Answers") -> None:
        fresh = _answers_of(VerdictCache(self._profile, self._state), pod)
        for method, name, one, other in _differences(fresh, kept):
            raise AssertionError(
                f"{self._plugin.name}.{method} answers about node {name} and pod {pod.name}: {one} "
                f"when it is asked now, and {other} when it was asked before, and nothing that it "
                "read from `nodes` has changed since; read everything from `nodes` and `pod`, and "
                "keep no state"
            )

    def _asked(self, pod: Pod, nodes: Nodes, feasible: BoolArray) -> "_Answers":
        found: _Answers = {}
        if self._profile.plugins_for_point("preFilter"):
            answer = ask(self._plugin, "pre_filter", pod, nodes.everything)
            found["pre_filter"] = dict.fromkeys(nodes.names, repr(answer))
        if self._profile.plugins_for_point("filter"):
            reasons: dict[str, list[str]] = {name: [] for name in nodes.names}
            for each in ask(self._plugin, "filter", pod, nodes):
                for at in np.flatnonzero(each.mask):
                    reasons[nodes.names[at]].append(each.reason)
            found["filter"] = {
                name: repr(", ".join(sorted(each))) if each else _ACCEPTED
                for name, each in reasons.items()
            }
        if self._profile.plugins_for_point("score"):
            raw = ask(self._plugin, "score", pod, nodes.with_feasible(feasible))
            values = [None] * len(nodes) if raw is None else raw.tolist()
            found["score"] = dict(zip(nodes.names, map(repr, values), strict=True))
        return found


# By method and node, as text.
_Answers = dict[str, dict[str, str]]


def _answers_of(verdicts: VerdictCache, pod: Pod) -> _Answers:
    """The answers as kept. Scores are those of feasible nodes only, after weighting."""
    verdict = verdicts.verdict_on(pod)
    feasible, scores = verdict.feasible, verdict.rank().tolist()
    found: _Answers = {"pre_filter": {}, "filter": {}, "score": {}}
    for row, name in enumerate(verdicts.state.names):
        rejection = verdict.rejection_at(row)
        found["pre_filter"][name] = repr(verdict.pod_rejection or verdict.narrowed_to)
        found["filter"][name] = repr(", ".join(rejection.reasons)) if rejection else _ACCEPTED
        found["score"][name] = repr(scores[row]) if feasible[row] else "no score"
    return found


def _differences(
    wanted: _Answers, found: Mapping[str, Mapping[str, str]]
) -> Iterator[tuple[str, str, str, str]]:
    """The method, the node and both answers."""
    for method, by_node in found.items():
        for name, answer in by_node.items():
            if answer != wanted[method][name]:
                yield method, name, wanted[method][name], answer


def _among(names: Sequence[str], count: int) -> str:
    if len(names) == 1:
        return "it alone"
    return f"{', '.join(names)}" if len(names) < count else f"them in the order {', '.join(names)}"


def _of_same_signature(pod: Pod) -> Pod:
    meta = replace(
        pod.metadata,
        name="another",
        uid="another",
        resource_version="another",
        creation_timestamp="2026-01-01T00:00:30Z",
        deletion_timestamp="2026-01-01T00:00:40Z",
    )
    status = PodStatus(phase="Running", start_time="2026-01-01T00:00:20Z")
    return replace(pod, metadata=meta, status=status)
