"""A pod that could be placed is never left parked: whatever happens, those that the plugins' hints
did not wake are still rejected. Hints that are wrong are planted to see them caught.

Walks are drawn by a seed, not by hypothesis: what matters here is many dense steps."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import msgspec
import pytest
from tests.properties.test_incremental import (
    APART,
    SIGNATURES,
    WANTS,
    all_plugins,
    renamed,
    wanting,
)
from tests.properties.volume_objects import THINGS

from lowtide.framework.change import Change
from lowtide.framework.plugin import BindOutcome, OneNode, filter_each
from lowtide.objects.events import Added, Deleted, Listed, Modified
from lowtide.objects.kinds import Namespace
from lowtide.objects.meta import ObjectMeta
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.objects.storage import (
    CSIDriver,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from lowtide.plugins.inter_pod_affinity import InterPodAffinity
from lowtide.plugins.node_affinity import NodeAffinity
from lowtide.plugins.node_declared_features import NodeDeclaredFeatures
from lowtide.plugins.node_ports import NodePorts
from lowtide.plugins.node_resources_fit import NodeResourcesFit
from lowtide.plugins.node_unschedulable import NodeUnschedulable
from lowtide.plugins.node_volume_limits import NodeVolumeLimits
from lowtide.plugins.pod_topology_spread import PodTopologySpread
from lowtide.plugins.priority_sort import PrioritySort
from lowtide.plugins.taint_toleration import TaintToleration
from lowtide.plugins.volume_binding import VolumeBinding
from lowtide.plugins.volume_restrictions import VolumeRestrictions
from lowtide.plugins.volume_zone import VolumeZone
from lowtide.scheduler.actions import Bind, Evict
from lowtide.scheduler.decide import decide
from lowtide.scheduler.events import BindingEnded, Event, EvictionEnded, Turn
from lowtide.scheduler.machine import Machine
from lowtide.scheduler.pods import Stage
from lowtide.testing import make_node, make_pod, make_profile

NOW = 1000.0
_MOST_TURNS = 40

# Plugins of that test that say nothing of retries, or fail now and then.
_WITHOUT_HINTS = ("FewPodsElsewhere", "CommonZone")
_NOT_HERE = ("Moody", "CountsFeasible", "NetworkTraffic")


def plugins() -> list[Any]:
    return [PrioritySort(), *(each for each in all_plugins() if each.name not in _NOT_HERE)]


def plugins_with_hints() -> list[Any]:
    return [each for each in plugins() if each.name not in _WITHOUT_HINTS]


def elsewhere(kind: str, app: str) -> dict[str, Any]:
    """The same in namespaces that are selected by their labels."""
    spec = wanting(kind, app, "zone")
    (term,) = spec["affinity"][kind]["requiredDuringSchedulingIgnoredDuringExecution"]
    term["namespaceSelector"] = {"matchLabels": {"team": "red"}}
    return spec


PENDING = [
    *SIGNATURES,
    make_pod("follows-reds", spec=elsewhere("podAffinity", "a")),
    make_pod("flees-reds", labels={"app": "b"}, spec=elsewhere("podAntiAffinity", "a")),
    make_pod(
        "needs-domains",
        labels={"app": "a"},
        spec={
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "minDomains": 2,
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"app": "a"}},
                }
            ]
        },
    ),
    make_pod("picky", node_selector={"disk": "ssd"}, cpu="2"),
    make_pod("two-ports", host_ports=[80, 443]),
    make_pod("apart-and-large", cpu="4", labels={"app": "a"}, spec=APART),
]
NAMESPACES = [
    Namespace(ObjectMeta(name=name, labels=labels))
    for name in ("default", "other")
    for labels in ({}, {"team": "red"})
]


# So few nodes that they change more often than they come.
NAMES = ["node-0", "node-1"]
STEPS = 60


def some_node(chance: Random) -> Node:
    zone = chance.choice(["a", "a", "b"])
    return make_node(
        chance.choice(NAMES),
        cpu=chance.choice(["1", "4"]),
        pods=chance.choice([2, 110]),
        labels={
            **({"zone": zone} if chance.random() < 0.9 else {}),
            **({"topology.kubernetes.io/zone": zone} if chance.random() < 0.5 else {}),
            **({"disk": "ssd"} if chance.random() < 0.5 else {}),
        },
        taints=[{"key": "gpu", "effect": "NoSchedule"}] if chance.random() < 0.2 else [],
        unschedulable=chance.random() < 0.2,
        declared_features=chance.choice([[], ["RestartAllContainersOnContainerExits"]]),
    )


def some_pod(chance: Random) -> Pod:
    """On a node, by somebody else."""
    name = chance.choice([f"pod-{number}" for number in range(9)])
    return make_pod(
        name,
        namespace=chance.choice(["default", "default", "other"]),
        on=chance.choice([*NAMES, *NAMES, "unknown"]),
        cpu=chance.choice(["100m", "2"]),
        host_ports=chance.choice([(), (80,), (80, 443)]),
        labels=chance.choice([{}, {"app": "a"}, {"app": "b"}]),
        deleted=chance.random() < 0.2,
        spec=WANTS.get(name, {}),
    )


class Walk:
    def __init__(self, seed: int, plugins: Sequence[Any], pending: Sequence[Pod]) -> None:
        self._chance = Random(seed)
        self._pending = pending
        profile = make_profile(plugins)
        self._machine = Machine({"lowtide": profile})
        self._kinds = {kind for plugin in profile.plugins for kind in getattr(plugin, "kinds", ())}
        self._things = [each for each in (*THINGS, *NAMESPACES) if type(each) in self._kinds]
        self._nodes: dict[str, Node] = {}
        self._bound: dict[str, Pod] = {}
        self._known: dict[tuple[type, str], Any] = {}

    def run(self) -> int:
        """How often a parked pod was found to be rejected."""
        self._give(*(Listed(name) for name in ("Node", "Pod", *(k.__name__ for k in self._kinds))))
        for _ in range(self._chance.randrange(10)):
            self._object_comes_or_changes()
        self._node_comes_or_changes()
        steps = [
            self._node_comes_or_changes,
            self._node_goes,
            self._pod_is_bound_or_changes,
            self._pod_is_bound_or_changes,
            self._pod_goes,
            self._pod_goes,
            self._pod_is_made_or_changes,
            self._pod_is_made_or_changes,
            self._pod_is_given_up,
            self._pods_have_their_turns,
            *([self._object_comes_or_changes] * 3 + [self._object_goes] if self._things else []),
        ]
        return sum(self._check_after(self._chance.choice(steps)) for _ in range(STEPS))

    def _check_after(self, step: Callable[[], None]) -> int:
        step()
        count = 0
        for queued in self._machine.queue:
            if queued.stage is Stage.UNSCHEDULABLE:
                decision = decide(queued.pod, self._machine._verdicts["lowtide"], turn=0)
                rejected_by = sorted(queued.rejected_by)
                assert decision.node_name is None, (
                    f"{queued.pod.key}, rejected by {rejected_by}, is left parked by "
                    f"{step.__name__}"
                )
                count += 1
        return count

    # What happens.

    def _node_comes_or_changes(self) -> None:
        node = some_node(self._chance)
        self._nodes[node.name] = node
        self._give(Modified(node))

    def _node_goes(self) -> None:
        if self._nodes:
            self._give(Deleted(self._nodes.pop(self._chance.choice(sorted(self._nodes)))))

    def _pod_is_bound_or_changes(self) -> None:
        self._bind(some_pod(self._chance))

    def _pod_goes(self) -> None:
        if self._bound:
            self._give(Deleted(self._bound.pop(self._chance.choice(sorted(self._bound)))))

    def _object_comes_or_changes(self) -> None:
        if self._things:
            thing = self._chance.choice(self._things)
            self._known[type(thing), thing.metadata.name] = thing
            self._give(Modified(thing))

    def _object_goes(self) -> None:
        if self._known:
            self._give(Deleted(self._known.pop(self._chance.choice(sorted(self._known, key=str)))))

    def _pod_is_made_or_changes(self) -> None:
        name = f"waiting-{self._chance.randrange(6)}"
        pod = renamed(self._chance.choice(self._pending), name, self._chance.choice([0, 0, 5]))
        if pod.uid not in self._bound:
            node_name = self._chance.choice(["", "", "", *NAMES])
            status = msgspec.structs.replace(pod.status, nominated_node_name=node_name)
            self._give(Added(msgspec.structs.replace(pod, status=status)))
            self._pods_have_their_turns()

    def _pod_is_given_up(self) -> None:
        name = f"waiting-{self._chance.randrange(6)}"
        self._bound.pop(name, None)
        self._give(Deleted(renamed(PENDING[0], name)))

    def _pods_have_their_turns(self) -> None:
        for _ in range(_MOST_TURNS):
            if not self._machine.has_work(NOW):
                return
            for action in self._give(Turn()):
                self._do(action)

    def _do(self, action: Any) -> None:
        match action:
            case Bind(pod, node_name) if self._chance.random() < 0.9:
                spec = msgspec.structs.replace(pod.spec, node_name=node_name)
                self._bind(msgspec.structs.replace(pod, spec=spec))
                self._give(BindingEnded(pod.uid, BindOutcome()))
            case Bind(pod):
                self._give(BindingEnded(pod.uid, BindOutcome(error="no leader")))
            case Evict(pod, victims=victims):
                self._give(EvictionEnded(pod.uid, evicted=victims))
                for victim in victims:
                    self._bound.pop(victim.uid, None)
                    self._give(Deleted(victim))

    def _bind(self, pod: Pod) -> None:
        self._bound[pod.uid] = pod
        self._give(Modified(pod))

    def _give(self, *events: Event) -> list[Any]:
        return [action for event in events for action in self._machine.step(event, NOW)]


def test_no_pod_that_could_be_placed_is_left_parked() -> None:
    assert sum(Walk(seed, plugins_with_hints(), PENDING).run() for seed in range(60)) > 1000


class NeedsCompany:
    """Rejects nodes without a pod of the app `a`; says nothing of retries, as the other two."""

    name = "NeedsCompany"

    @filter_each
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        is_there = any(other.labels.get("app") == "a" for other in node.pods)
        return None if is_there or "app" in pod.labels else "no company"


def test_no_pod_is_left_parked_by_a_plugin_that_retries_on_what_it_touched() -> None:
    chosen = [each for each in plugins() if each.name in (*_WITHOUT_HINTS, PrioritySort.name)]
    walks = [Walk(seed, [*chosen, NeedsCompany()], PENDING).run() for seed in range(60)]
    assert sum(walks) > 300


@pytest.mark.long
def test_no_pod_that_could_be_placed_is_left_parked_in_long_walks() -> None:
    for seed in range(1000, 4000):
        Walk(seed, plugins_with_hints(), PENDING).run()


@pytest.mark.parametrize(
    "name", [plugin.name for plugin in plugins_with_hints() if hasattr(plugin, "may_help")]
)
def test_no_pod_is_left_parked_by_one_plugin_alone(name: str) -> None:
    for seed in range(20):
        plugins = [
            plugin for plugin in plugins_with_hints() if plugin.name in (name, PrioritySort.name)
        ]
        kind = next(type(plugin) for plugin in plugins if plugin.name == name)
        Walk(seed, plugins, concerned_by(kind)).run()


# Hints that are wrong.


def deaf(kind: type[Any], to: Callable[[Change], bool]) -> Callable[[], list[Any]]:
    """That plugin alone, with a hint that says of some changes that they cannot help."""

    def make() -> list[Any]:
        (wrong,) = (each for each in all_plugins() if isinstance(each, kind))
        hint = wrong.may_help
        wrong.may_help = lambda pod, change: not to(change) and hint(pod, change)
        return [PrioritySort(), wrong]

    return make


def anything(change: Change) -> bool:
    return True


def coming(change: Change) -> bool:
    return change.before is None


def going(change: Change) -> bool:
    return change.after is None


def changing(change: Change) -> bool:
    return change.before is not None and change.after is not None


def of(kind: type[Any]) -> Callable[[Change], bool]:
    return lambda change: isinstance(change.thing, kind)


STORES = {"stores", "stores-alone", "stores-both"}
# The pods that some plugins are about, so that wrong hints are met soon.
CONCERNED: dict[type[Any], set[str]] = {
    NodeAffinity: {"zone-a", "picky"},
    NodePorts: {"port", "two-ports"},
    NodeDeclaredFeatures: {"restarts"},
    VolumeRestrictions: STORES,
    NodeVolumeLimits: STORES,
    VolumeBinding: STORES,
    VolumeZone: STORES,
    PodTopologySpread: {"even", "needs-domains"},
    InterPodAffinity: {"apart", "together", "follower", "follows-reds", "flees-reds", "plain"},
}


def concerned_by(kind: type[Any]) -> list[Pod]:
    return [pod for pod in PENDING if pod.name in CONCERNED.get(kind, {pod.name})]


@pytest.mark.parametrize(
    ("kind", "to"),
    [
        pytest.param(NodeUnschedulable, coming, id="NodeUnschedulable that ignores added nodes"),
        pytest.param(NodeUnschedulable, changing, id="NodeUnschedulable that ignores uncordoning"),
        pytest.param(TaintToleration, coming, id="TaintToleration that ignores added nodes"),
        pytest.param(TaintToleration, changing, id="TaintToleration that ignores removed taints"),
        pytest.param(NodeAffinity, coming, id="NodeAffinity that ignores added nodes"),
        pytest.param(NodeAffinity, changing, id="NodeAffinity that ignores labels"),
        pytest.param(NodePorts, coming, id="NodePorts that ignores added nodes"),
        pytest.param(NodePorts, going, id="NodePorts that ignores removed pods"),
        pytest.param(NodeResourcesFit, coming, id="NodeResourcesFit that ignores added nodes"),
        pytest.param(NodeResourcesFit, going, id="NodeResourcesFit that ignores removed pods"),
        pytest.param(NodeResourcesFit, of(Node), id="NodeResourcesFit that ignores nodes"),
        pytest.param(
            NodeResourcesFit, changing, id="NodeResourcesFit that ignores changed pods and nodes"
        ),
        pytest.param(
            NodeDeclaredFeatures, anything, id="NodeDeclaredFeatures that ignores everything"
        ),
        pytest.param(VolumeRestrictions, of(Node), id="VolumeRestrictions that ignores nodes"),
        pytest.param(VolumeRestrictions, of(Pod), id="VolumeRestrictions that ignores pods"),
        pytest.param(
            VolumeRestrictions,
            of(PersistentVolumeClaim),
            id="VolumeRestrictions that ignores claims",
        ),
        pytest.param(NodeVolumeLimits, of(Pod), id="NodeVolumeLimits that ignores pods"),
        pytest.param(NodeVolumeLimits, of(CSINode), id="NodeVolumeLimits that ignores limits"),
        pytest.param(
            NodeVolumeLimits, of(VolumeAttachment), id="NodeVolumeLimits that ignores attachments"
        ),
        pytest.param(
            NodeVolumeLimits, of(PersistentVolumeClaim), id="NodeVolumeLimits that ignores claims"
        ),
        pytest.param(VolumeBinding, of(Node), id="VolumeBinding that ignores nodes"),
        pytest.param(
            VolumeBinding, of(PersistentVolumeClaim), id="VolumeBinding that ignores claims"
        ),
        pytest.param(VolumeBinding, of(PersistentVolume), id="VolumeBinding that ignores volumes"),
        pytest.param(VolumeBinding, of(StorageClass), id="VolumeBinding that ignores classes"),
        pytest.param(VolumeBinding, of(CSIDriver), id="VolumeBinding that ignores drivers"),
        pytest.param(VolumeZone, of(Node), id="VolumeZone that ignores nodes"),
        pytest.param(VolumeZone, of(PersistentVolumeClaim), id="VolumeZone that ignores claims"),
        pytest.param(VolumeZone, of(PersistentVolume), id="VolumeZone that ignores volumes"),
        pytest.param(VolumeZone, of(StorageClass), id="VolumeZone that ignores classes"),
        pytest.param(PodTopologySpread, of(Node), id="PodTopologySpread that ignores nodes"),
        pytest.param(PodTopologySpread, of(Pod), id="PodTopologySpread that ignores pods"),
        pytest.param(InterPodAffinity, of(Node), id="InterPodAffinity that ignores nodes"),
        pytest.param(InterPodAffinity, coming, id="InterPodAffinity that ignores added pods"),
        pytest.param(InterPodAffinity, going, id="InterPodAffinity that ignores removed pods"),
        pytest.param(InterPodAffinity, changing, id="InterPodAffinity that ignores labels"),
        pytest.param(
            InterPodAffinity, of(Namespace), id="InterPodAffinity that ignores namespaces"
        ),
    ],
)
def test_catches(kind: type[Any], to: Callable[[Change], bool]) -> None:
    with pytest.raises(AssertionError, match="is left parked"):
        walk_until_it_fails(deaf(kind, to), concerned_by(kind))


def walk_until_it_fails(make_plugins: Callable[[], list[Any]], pending: Sequence[Pod]) -> None:
    for seed in range(1000):
        Walk(seed, make_plugins(), pending).run()
