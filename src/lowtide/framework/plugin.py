"""The plugin API: extension points, what plugins are given, and what they return.

A plugin is a class with a `name` and a method of at least one extension point. Each extension
point is a Protocol below, named as in Kubernetes. A class needs the method only; it inherits
nothing. `plugin: FilterPlugin = MyPlugin()` has a type checker compare the two. `PluginOptions`
lists everything else that a plugin may define. Names of other methods start with an underscore.

`filter` and `score` get one pod and many nodes. They return arrays with one element per node, in
the order of `nodes.names`. `filter_each` and `score_each` lift a method that judges one node.

`Nodes` is the table of nodes: one row per node, a column per fact. Its most used members are

    len(nodes), nodes.names, nodes.position_of(name)   the nodes asked about
    nodes.node(position), nodes.pods(position)         one node; the pods on it, assumed ones too
    nodes.allocatable("cpu"), nodes.requested("cpu")   cpu in millicores, all else in whole units
    nodes.pod_count, nodes.unschedulable               one element per node
    nodes.label_matches(LabelRequirement("disk", "In", ["ssd"]))   where node labels match
    nodes.pods_matching(PodSelection.from_requirements(...))       how many such pods on each node
    nodes.objects(kind), nodes.reading(request)        see `kinds` and `readings` of PluginOptions
    nodes.feasible                                     in `score`: the nodes that passed all filters
    nodes.everything                                   the whole table, whichever nodes are asked

The scheduler records what a plugin reads from `nodes`. It keeps the answer, and asks again when
some of that has changed. Three rules follow; `lowtide.testing.check_plugin` finds violations:

- The answer for a node must not depend on which other nodes are asked about in the same call. A
  plugin that compares nodes reads the others from `nodes.everything`.
- The answer must be the same for all pods with one signature: pods that differ only in name, uid,
  times and status.
- A plugin keeps no state between calls, except caches of pure functions. It reads no clock and does
  no I/O; only `pre_bind`, `bind` and `post_bind` may. `Reserved.memory` carries data from `reserve`
  to the later extension points of the same pod.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

import msgspec
import numpy as np

from lowtide.cluster.changes import LABELS, NODE, NODES, OTHERS, PODS, READING, TAKEN
from lowtide.cluster.columns import BoolArray, FloatArray, IntArray
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.one_node import OneNode
from lowtide.cluster.pod_selection import PodSelection
from lowtide.framework.change import OBJECTS, Change
from lowtide.objects.meta import LabelRequirement
from lowtide.objects.pod import Pod

if TYPE_CHECKING:
    from lowtide.framework.decision import NodeRejection

__all__ = ["Plugin", "PluginOptions", "PreEnqueuePlugin", "PreFilterPlugin", "QueueSortPlugin"]
__all__ += ["FilterPlugin", "PermitPlugin", "PostFilterPlugin", "ReservePlugin", "ScorePlugin"]
__all__ += ["BindPlugin", "PostBindPlugin", "PreBindPlugin", "Scale", "filter_each", "score_each"]
__all__ += ["Binder", "Change", "Nodes", "OneNode", "Pod", "PostFilterContext", "Queued"]
__all__ += ["LARGEST_RAW", "MAX_SCORE", "BoolArray", "FloatArray", "IntArray"]
__all__ += ["LABELS", "NODE", "NODES", "OBJECTS", "OTHERS", "PODS", "READING", "TAKEN"]
__all__ += ["Allow", "BindOutcome", "Eviction", "PluginError", "PodRejection", "PostFiltered"]
__all__ += ["LabelRequirement", "PodSelection", "Reject", "Rejection", "Reserved", "Wait"]

Scale = Literal["highest_best", "lowest_best"] | None


# What plugins return.

MAX_SCORE = 100
# Larger raw scores lose their lowest bits when they are scaled, so that nothing overflows.
LARGEST_RAW = 2**56


class PluginError(Exception):
    """A bug in a plugin: it raised an error, or returned something that it must not return."""

    def __init__(self, text: str, *, plugin_name: str = "") -> None:
        super().__init__(text)
        self.plugin_name = plugin_name


class Rejection(msgspec.Struct, frozen=True):
    """The nodes that a filter rejects for one reason."""

    mask: BoolArray  # one element per node: True where it is rejected
    reason: str  # shown as "0/5 nodes are available: 2 <reason>, ..."
    eviction_helps: bool = False  # whether preemption may try to evict pods from these nodes
    # When every node is rejected, the pod may go to one that only such rejections apply to, once it
    # has waited for so many seconds. 0: at once; None: never.
    gives_way_after: float | None = None


@dataclass(frozen=True, slots=True)
class PodRejection:
    """The pod is rejected on every node."""

    reason: str
    eviction_helps: bool = False


@dataclass(frozen=True, slots=True)
class Eviction:
    """The pods to evict from a node so that another pod fits there."""

    node_name: str
    victims: tuple[Pod, ...]  # the most important first
    budget_violations: int  # how many evictions violate a PodDisruptionBudget


@dataclass(frozen=True, slots=True)
class PostFiltered:
    """What a plugin can do for a pod that fits on no node. Without an `eviction` and without an
    error, the next plugin is asked."""

    reason: str = ""  # added to the pod's condition and Event
    is_error: bool = False
    nominated_node_name: str | None = None  # "" clears the pod's nomination; None keeps it
    eviction: Eviction | None = None
    # This eviction and the others that would do. Where extenders reject or change some of them, the
    # one of the rest that does the least harm is chosen, as in kube-scheduler.
    candidates: tuple[Eviction, ...] = ()
    # For explanations: the candidates as good as this eviction; where evicting does not help.
    tied_nodes: tuple[str, ...] = ()
    still_rejected: "Mapping[str, NodeRejection]" = field(default_factory=dict)  # by node name


@dataclass(frozen=True, slots=True)
class Reserved:
    """What `reserve` assumes and remembers for a pod."""

    # Objects of the plugin's `kinds`, as they will be. All plugins see them so until the watch
    # delivers a newer one, or until the pod's binding fails. If pods share one, the last one wins.
    objects: Iterable[object] = ()
    # Passed to later methods of the same plugin for this pod; see ReservePlugin. None: nothing.
    memory: object = None


@dataclass(frozen=True, slots=True)
class Allow:
    also: frozenset[str] = frozenset()  # uids of waiting pods that the plugin allows too


@dataclass(frozen=True, slots=True)
class Reject:
    reason: str
    also: frozenset[str] = frozenset()  # uids of waiting pods that the plugin rejects too


@dataclass(frozen=True, slots=True)
class Wait:
    """The pod waits on its node. It is rejected if no answer for another pod allows it in time."""

    seconds: float  # 900 at most


@dataclass(frozen=True, slots=True)
class BindOutcome:
    """How a binding ended."""

    error: str | None = None  # None: the pod is bound to the node
    is_gone: bool = False  # nothing is left to bind: the pod was deleted, or is on another node


class Plugin(Protocol):
    @property
    def name(self) -> str: ...


# The extension points, in the order of a pod's scheduling cycle.


class PreEnqueuePlugin(Plugin, Protocol):
    def may_enqueue(self, pod: Pod, /) -> PodRejection | None:
        """Returns why the pod must not enter the queue, or None."""


class Queued(Protocol):
    """A pod in the queue."""

    @property
    def pod(self) -> Pod: ...
    @property
    def queued_at(self) -> float: ...  # seconds on the scheduler's clock


class QueueSortPlugin(Plugin, Protocol):
    def sort_key(self, queued: Queued, /) -> Any:
        """The pod with the lowest key is scheduled first."""


class PreFilterPlugin(Plugin, Protocol):
    def pre_filter(self, pod: Pod, nodes: Nodes, /) -> PodRejection | frozenset[str] | None:
        """Returns why the pod fits on no node, or the names of the only nodes to consider, or None.
        `nodes` has every node."""


class FilterPlugin(Plugin, Protocol):
    def filter(self, pod: Pod, nodes: Nodes, /) -> Iterable[Rejection]:
        """Yields the rejected nodes, once per reason. A node in none of the masks is accepted."""


class PostFilterPlugin(Plugin, Protocol):
    def post_filter(self, pod: Pod, nodes: Nodes, rejected: "PostFilterContext", /) -> PostFiltered:
        """Asked when the filters left no node. `rejected` knows why each node was rejected."""


class ScorePlugin(Plugin, Protocol):
    def score(self, pod: Pod, nodes: Nodes, /) -> IntArray | None:
        """Returns an int64 array with the raw score of each node, also of those that are not
        feasible, or None for no opinion. Without `scale` and `normalize`, scores are 0 to 100."""


class ReservePlugin(Plugin, Protocol):
    """With `Reserved(memory=x)`, the plugin's `permit`, `unreserve`, `pre_bind`, `bind` and
    `post_bind` are called for this pod with the keyword `memory=x`, as with Kubernetes' CycleState.
    Give that parameter a default: `def permit(self, pod, node_name, nodes, *, memory=None)`."""

    def reserve(self, pod: Pod, node_name: str, nodes: Nodes, /) -> PodRejection | Reserved | None:
        """Called when the node is chosen. `nodes` has every node, and counts the pod on its own."""


class PermitPlugin(Plugin, Protocol):
    def permit(self, pod: Pod, node_name: str, nodes: Nodes, /) -> Allow | Reject | Wait:
        """Called after `reserve`. `nodes` has every node, and counts this pod and all waiting pods
        on theirs. A pod waits until this plugin's answer for another pod has its uid in `also`."""


class PreBindPlugin(Plugin, Protocol):
    async def pre_bind(self, pod: Pod, node_name: str, /) -> str | None:
        """Returns why the pod cannot be bound now, or None. It is tried again later."""


class BindPlugin(Plugin, Protocol):
    async def bind(self, pod: Pod, node_name: str, /) -> BindOutcome | None:
        """Returns how the binding ended, or None to leave it to the next plugin."""


class PostBindPlugin(Plugin, Protocol):
    async def post_bind(self, pod: Pod, node_name: str, /) -> None:
        """Called when the pod is bound. An error is logged and changes nothing."""


class PluginOptions(Protocol):
    """What a plugin may define besides its extension points. Each member is optional."""

    # The type of its `pluginConfig` args, decoded strictly and passed to the constructor as `args`.
    # Its method `problems()`, if it has one, yields (field, text) for each wrong value.
    args: type[msgspec.Struct]
    needs: Mapping[str, type]  # constructor parameter -> a Protocol to supply, such as Binder
    kinds: Collection[type]  # other object types to watch; `nodes.objects(kind)` reads them
    # What to measure, such as a PrometheusQuery (lowtide.readings.prometheus_query).
    # `nodes.reading(request)` maps each field to an array with one element per node: no fields
    # before the first answer, NaN for unknown nodes.
    readings: Iterable[Hashable]

    # The changes after which a pod that this plugin rejected is tried again. Of one node: NODE (its
    # object), TAKEN (what its pods take), LABELS (of its pods), PODS (both), READING. Of any node:
    # NODES, OTHERS (pods). OBJECTS: of its kinds. Default: whatever it read to reject the pod.
    retry_on: int

    def may_help(self, pod: Pod, change: Change, /) -> bool:
        """Whether such a change can make the plugin accept a pod that it rejected. When in doubt,
        return True."""

    def concerns(self, pod: Pod, /) -> bool:
        """Returns False for pods that `pre_filter` and `filter` never reject and `score` has no
        opinion on. The plugin is not asked about them."""

    # How raw scores become 0 to 100: raw * 100 // (the highest of a feasible node) for
    # `highest_best`, 100 minus that for `lowest_best`. None: they are 0 to 100 already.
    scale: Scale

    def normalize(self, pod: Pod, nodes: Nodes, raw: IntArray, /) -> IntArray:
        """Instead of `scale`: returns the scores of all nodes, 0 to 100. Called with every node,
        and only if at least one is feasible."""

    def unreserve(self, pod: Pod, node_name: str, /) -> None:
        """Undoes `reserve` when the pod is not bound. It is also called for plugins whose `reserve`
        was not reached."""


# What plugins are given.


class PostFilterContext(Protocol):
    """Why the pod was rejected, and whether it would fit on hypothetical nodes, such as
    `nodes.without(...)`. Pods of at least its priority that are nominated to a node count there."""

    @property
    def turn(self) -> int:
        """Grows with each decision. Choose among equals by it, not at random."""

    @property
    def gives_way_after(self) -> float:
        """Seconds that the pod must have waited in all until a rejection gives way somewhere;
        infinite where none does."""

    @property
    def eviction_may_help(self) -> BoolArray:
        """One element per node: whether the first plugin that rejects it says that eviction may
        help."""

    def was_reached(self, plugin_name: str) -> bool:
        """Whether this plugin's pre-filter ran. None runs after a rejection that eviction cannot
        help with."""

    def on(self, nodes: Nodes) -> "Mapping[int, NodeRejection]":
        """Why the pod does not fit, by position in `nodes`."""

    def fits(self, nodes: Nodes) -> BoolArray:
        """One element per node: whether the pod fits. Asks only plugins that read pods or
        readings."""


class Binder(Protocol):
    """Writes bindings to the API server. A plugin that binds has it in its `needs`."""

    async def bind(self, pod: Pod, node_name: str) -> BindOutcome:
        """Binds the pod. If the server gives no answer, reads the pod to learn the outcome."""

    async def bind_volumes(self, pod: Pod, node_name: str, timeout_seconds: float) -> str | None:
        """Writes the volumes and claims that are reserved for the pod, and waits until the claims
        are bound. Returns what went wrong, or None."""


# Plugins that judge one node at a time.

FilterOne = Callable[[Any, Pod, OneNode], str | None]
FilterAll = Callable[[Any, Pod, Nodes], Iterable[Rejection]]
ScoreOne = Callable[[Any, Pod, OneNode], int]
ScoreAll = Callable[[Any, Pod, Nodes], IntArray]


@overload
def filter_each(judge: FilterOne) -> FilterAll: ...
@overload
def filter_each(*, eviction_helps: bool) -> Callable[[FilterOne], FilterAll]: ...
def filter_each(judge: Any = None, *, eviction_helps: bool = False) -> Any:
    """Makes `filter` from a method `(self, pod, node: OneNode)` that returns why the node is
    rejected, or None."""

    def lift(judge: FilterOne) -> FilterAll:
        @wraps(judge)
        def filter_all(self: Any, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
            positions_by_reason: dict[str, list[int]] = {}
            for position in range(len(nodes)):
                reason = judge(self, pod, nodes.one(position))
                if reason is not None and not isinstance(reason, str):
                    raise PluginError(
                        f"{self.name} answers with {reason!r} about node {nodes.names[position]}; "
                        "it must return a reason as a string, or None"
                    )
                if reason is not None:
                    positions_by_reason.setdefault(reason, []).append(position)
            for reason, positions in positions_by_reason.items():
                mask = np.zeros(len(nodes), np.bool_)
                mask[positions] = True
                yield Rejection(mask, reason, eviction_helps)

        return filter_all

    return lift if judge is None else lift(judge)


def score_each(judge: ScoreOne) -> ScoreAll:
    """Makes `score` from a method `(self, pod, node: OneNode)` that returns a raw score."""

    @wraps(judge)
    def score_all(self: Any, pod: Pod, nodes: Nodes) -> IntArray:
        scores = [judge(self, pod, nodes.one(position)) for position in range(len(nodes))]
        for position, value in enumerate(scores):
            if not isinstance(value, int | np.integer) or int(value).bit_length() > 63:
                raise PluginError(
                    f"{self.name} scored node {nodes.names[position]} {value!r}; "
                    "a score is a whole number of at most 63 bits"
                )
        return np.array(scores, np.int64)

    return score_all
