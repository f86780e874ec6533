"""What a plugin is: the one file that a plugin author reads.

A plugin is a class with a `name` and the method of at least one extension point below. Each point
has a Protocol, under Kubernetes' name; a class satisfies it by having the method, and inherits
nothing. `plugin: FilterPlugin = MyPlugin()` has a type checker compare the two. What a plugin may
have besides is in `PluginOptions`.

`filter` and `score` are asked once per pod about many nodes, and answer with arrays, one element
per row of the `Nodes` they are given; `filter_each` and `score_each` make such methods out of one
that judges a single node.

What a plugin reads of `nodes` is noted, and it is asked again when that changes: nothing has to be
declared. So what it answers about one node must not depend on which other nodes it is asked about.
Where an answer does depend on other nodes, it reads them by `nodes.everything`, which is the whole
table whatever was asked. `check_plugin` of lowtide.testing finds where a plugin breaks this.

A plugin reads of a pod what its signature holds: everything but name, uid, times and status. It
keeps no state of its own between pods, except for caches of pure functions of what it read. It
reads no clock and asks nobody: what it needs is handed in.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

import msgspec
import numpy as np

from lowtide.cluster.changes import LABELS, NODE, NODES, OBJECTS, OTHERS, PODS, READING, TAKEN
from lowtide.cluster.columns import BoolArray, FloatArray, IntArray
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.one_node import OneNode
from lowtide.framework.change import Change
from lowtide.objects.pod import Pod

if TYPE_CHECKING:
    from lowtide.framework.args import OlderArgs, Spelling
    from lowtide.framework.decision import NodeRejection, PluginScore

# What a plugin is asked, what it is handed, and what it answers.
__all__ = ["Plugin", "PluginOptions", "PreEnqueuePlugin", "PreFilterPlugin", "QueueSortPlugin"]
__all__ += ["FilterPlugin", "PermitPlugin", "PostFilterPlugin", "ReservePlugin", "ScorePlugin"]
__all__ += ["BindPlugin", "PostBindPlugin", "PreBindPlugin", "Scale", "filter_each", "score_each"]
__all__ += ["Binder", "Change", "Nodes", "OneNode", "Pod", "PostFilterContext", "Queued"]
__all__ += ["LARGEST_RAW", "MAX_SCORE", "BoolArray", "FloatArray", "IntArray"]
__all__ += ["LABELS", "NODE", "NODES", "OBJECTS", "OTHERS", "PODS", "READING", "TAKEN"]
__all__ += ["Allow", "BindOutcome", "Eviction", "PluginError", "PodRejection", "PostFiltered"]
__all__ += ["Reject", "Rejection", "Reserved", "Wait"]

Scale = Literal["highest_best", "lowest_best"] | None


# What plugins answer with.

MAX_SCORE = 100
# Larger raw scores would overflow when they are multiplied by MAX_SCORE: those are scaled without
# their lowest bits.
LARGEST_RAW = 2**56


class PluginError(Exception):
    """A plugin broke its contract: a bug in the plugin, named after it."""

    def __init__(self, text: str, *, plugin_name: str = "") -> None:
        super().__init__(text)
        self.plugin_name = plugin_name


class Rejection(msgspec.Struct, frozen=True):
    """The nodes a filter rejects for one reason; whether evicting pods there could help.

    A rejection that gives way counts only while there is another node: when every node is rejected,
    and some for such reasons alone, the pod goes to one of those once it has waited that long."""

    mask: BoolArray
    reason: str
    eviction_helps: bool = False
    gives_way_after: float | None = None  # seconds; 0: at once; None: never


@dataclass(frozen=True, slots=True)
class PodRejection:
    """The pod is rejected on every node."""

    reason: str
    eviction_helps: bool = False


@dataclass(frozen=True, slots=True)
class Eviction:
    """Pods that have to go from a node for another one to fit there, the most important first."""

    node_name: str
    victims: tuple[Pod, ...]
    budget_violations: int  # how many of them a PodDisruptionBudget would rather keep


@dataclass(frozen=True, slots=True)
class PostFiltered:
    """What one plugin can do for a pod that fits nowhere; the next one is asked unless there is an
    `eviction` or an error. Reasons are joined to what the pod's condition and Event say."""

    reason: str = ""
    is_error: bool = False
    nominated_node_name: str | None = None  # "": a nomination is taken back; None: it stays
    eviction: Eviction | None = None
    candidates: tuple[Eviction, ...] = ()  # this eviction and the others that would do
    tied_nodes: tuple[str, ...] = ()  # of those candidates that are as good as this one
    still_rejected: "Mapping[str, NodeRejection]" = field(default_factory=dict)  # tried in vain
    logged_before: str = ""  # of an eviction: what plugins said that could do nothing


@dataclass(frozen=True, slots=True)
class Reserved:
    """What `reserve` has done for a pod.

    `objects` are objects of its `kinds` as they are to be from now on: every plugin sees them so
    until the watch says more, or the pod is not bound; of what several pods share, the last is
    taken. `memory` is handed to the same plugin's `permit`, `unreserve`, `pre_bind`, `bind` and
    `post_bind` for this pod, as the keyword `memory`: Kubernetes' CycleState."""

    objects: Iterable[object] = ()
    memory: object = None  # None: nothing to remember


@dataclass(frozen=True, slots=True)
class Allow:
    also: frozenset[str] = frozenset()  # uids of waiting pods that the plugin lets go with this one


@dataclass(frozen=True, slots=True)
class Reject:
    reason: str
    also: frozenset[str] = frozenset()  # uids of waiting pods that it rejects with this one


@dataclass(frozen=True, slots=True)
class Wait:
    """The pod is rejected when the plugin has not let it go after so long, 15 minutes at most."""

    seconds: float


@dataclass(frozen=True, slots=True)
class BindOutcome:
    """How a binding ended. `error` is None when the pod is bound to the node. `is_gone` says that
    nothing is left to bind: the pod was deleted, or has another node."""

    error: str | None = None
    is_gone: bool = False


class Plugin(Protocol):
    @property
    def name(self) -> str: ...


# The extension points, in the order in which a pod comes to them.


class PreEnqueuePlugin(Plugin, Protocol):
    def may_enqueue(self, pod: Pod, /) -> PodRejection | None:
        """Why the pod may not enter the queue; None where it may."""


class Queued(Protocol):
    """What the queue says of a waiting pod."""

    @property
    def pod(self) -> Pod: ...
    @property
    def queued_at(self) -> float: ...


class QueueSortPlugin(Plugin, Protocol):
    def sort_key(self, queued: Queued, /) -> Any:
        """Pods are taken in the order of these keys, the lowest first."""


class PreFilterPlugin(Plugin, Protocol):
    def pre_filter(self, pod: Pod, nodes: Nodes, /) -> PodRejection | frozenset[str] | None:
        """Rejects the pod, or names the only nodes to search. It always sees all nodes."""


class FilterPlugin(Plugin, Protocol):
    def filter(self, pod: Pod, nodes: Nodes, /) -> Iterable[Rejection]:
        """Which nodes are rejected, and why; nothing yielded = every node is fine."""


class PostFilterPlugin(Plugin, Protocol):
    def post_filter(self, pod: Pod, nodes: Nodes, rejected: "PostFilterContext", /) -> PostFiltered:
        """No node was left: what can be done about it. `rejected` knows where and why."""


class ScorePlugin(Plugin, Protocol):
    def score(self, pod: Pod, nodes: Nodes, /) -> IntArray | None:
        """Raw scores of every row, 0 to 100 unless `scale` or `normalize` say otherwise; None = no
        opinion. `nodes.feasible` says what the filters left."""


class ReservePlugin(Plugin, Protocol):
    def reserve(self, pod: Pod, node_name: str, nodes: Nodes, /) -> PodRejection | Reserved | None:
        """The node was chosen, and `nodes` counts the pod there. `Reserved` says which objects are
        changed for it, and what to remember until the pod is bound."""


class PermitPlugin(Plugin, Protocol):
    def permit(self, pod: Pod, node_name: str, nodes: Nodes, /) -> Allow | Reject | Wait:
        """`nodes` counts the pod on its node. A pod that waits stays assumed there until the
        plugin's answer for it (`also`, of another pod's answer), or too long."""


class PreBindPlugin(Plugin, Protocol):
    async def pre_bind(self, pod: Pod, node_name: str, /) -> str | None:
        """Why the pod cannot be bound, to be tried again; None where it can."""


class BindPlugin(Plugin, Protocol):
    async def bind(self, pod: Pod, node_name: str, /) -> BindOutcome | None:
        """How the binding ended; None where the next plugin is to bind the pod."""


class PostBindPlugin(Plugin, Protocol):
    async def post_bind(self, pod: Pod, node_name: str, /) -> None:
        """The pod is bound, whatever becomes of this."""


class PluginOptions(Protocol):
    """What a plugin may have besides, each for itself; no plugin has all of it.

    `permit`, `unreserve`, `pre_bind`, `bind` and `post_bind` also take an optional keyword `memory`
    where the plugin's `reserve` returns `Reserved(memory=...)`: they are handed it for that pod."""

    # What it is made of.
    args: type[msgspec.Struct]  # its `<Name>Args`, decoded strictly; handed to the constructor
    needs: Mapping[str, type]  # by parameter of the constructor: what the application supplies
    kinds: Collection[type]  # other object types to watch for it, read by `nodes.objects(type)`
    readings: Iterable[Hashable]  # what is measured for it, such as a PrometheusQuery; arrives as
    # `nodes.reading(request)`

    @staticmethod
    def older_args(raw: dict[str, Any], spelling: "Spelling", /) -> "OlderArgs | None":
        """Args of earlier versions put into today's."""

    # Which pods it is asked about, and when again.
    # NODE | TAKEN | LABELS | READING (of one node), NODES (any node's object), OTHERS (the pods of
    # other nodes), OBJECTS (of its kinds): the changes that make a pod that it rejected worth
    # another try. Default: whatever it read to reject the pod.
    retry_on: int

    def may_help(self, pod: Pod, change: Change, /) -> bool:
        """Whether such a change can make it accept a pod that it rejected; never False where it
        can."""

    def concerns(self, pod: Pod, /) -> bool:
        """False where it has nothing to say of pods of this signature, before filtering, in
        filtering and in scoring: it is not asked then."""

    # With `post_filter`.
    def choose(self, evictions: Sequence[Eviction], turn: int, /) -> PostFiltered:
        """Of its candidates, those that extenders left."""

    # With `score`. Without `scale`, raw scores lie in 0..100 already.
    scale: Scale
    skips_by_pre_score: bool  # whether it has no opinion only where it is enabled at preScore too,
    # as some of kube-scheduler's; elsewhere it then scores zeros

    def normalize(self, pod: Pod, nodes: Nodes, raw: IntArray, /) -> IntArray:
        """Instead of `scale`; asked about all nodes, and only where one is feasible."""

    # With `reserve`.
    def unreserve(self, pod: Pod, node_name: str, /) -> None:
        """The pod is not bound: `reserve` is to be undone, also where it was not reached."""

    # What it writes into the log; whole lines.
    tells_readings: bool  # whether to log each reading, briefly

    def in_words(
        self, scores: "Mapping[str, PluginScore]", nodes: Nodes, /, *, brief: bool = False
    ) -> Iterable[str]:
        """About the scores of these nodes; `nodes` as they were scored."""

    def filter_in_words(self, pod: Pod, nodes: Nodes, /) -> Iterable[str]:
        """About the verdict on each node."""


# What plugins are handed.


class PostFilterContext(Protocol):
    """Where the pod was rejected, and whether it would fit hypothetically; `post_filter` is given
    it.

    In thought too, a node is asked about with the pods that are nominated to it and matter as
    much or more."""

    @property
    def turn(self) -> int:
        """Grows with each decision: instead of chance."""

    @property
    def gives_way_after(self) -> float:
        """Seconds of waiting in all after which some rejection has given way and a node is left."""

    @property
    def eviction_may_help(self) -> BoolArray:
        """By row: whether the first plugin that rejects the node does so because of its pods."""

    def was_reached(self, plugin_name: str) -> bool:
        """Whether this plugin was asked by `pre_filter`; after a rejection for good no other is."""

    def on(self, nodes: Nodes) -> "Mapping[int, NodeRejection]":
        """By position: why the pod does not fit there."""

    def fits(self, nodes: Nodes) -> BoolArray:
        """By position: whether it fits. Only plugins that read pods or readings are asked."""


class Binder(Protocol):
    """Binds a pod to a node in the cluster; DefaultBinder needs one, and VolumeBinding.

    It answers when it knows: where no answer came, it reads the pod again first.
    """

    async def bind(self, pod: Pod, node_name: str) -> BindOutcome: ...

    async def bind_volumes(self, pod: Pod, node_name: str, timeout_seconds: float) -> str | None:
        """Writes the volumes and claims that were reserved for the pod, and waits until its claims
        are bound; tells what went wrong."""


# Plugins that judge one node at a time, in plain Python.

FilterOne = Callable[[Any, Pod, OneNode], str | None]
FilterAll = Callable[[Any, Pod, Nodes], Iterable[Rejection]]
ScoreOne = Callable[[Any, Pod, OneNode], int]
ScoreAll = Callable[[Any, Pod, Nodes], IntArray]


@overload
def filter_each(judge: FilterOne) -> FilterAll: ...
@overload
def filter_each(*, eviction_helps: bool) -> Callable[[FilterOne], FilterAll]: ...
def filter_each(judge: Any = None, *, eviction_helps: bool = False) -> Any:
    """Lifts a filter that judges one node: it returns why it rejects the node, or None."""

    def lift(judge: FilterOne) -> FilterAll:
        @wraps(judge)
        def filter_all(self: Any, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
            positions_by_reason: dict[str, list[int]] = {}
            for position in range(len(nodes)):
                reason = judge(self, pod, nodes.one(position))
                if reason is not None:
                    positions_by_reason.setdefault(reason, []).append(position)
            for reason, positions in positions_by_reason.items():
                mask = np.zeros(len(nodes), np.bool_)
                mask[positions] = True
                yield Rejection(mask, reason, eviction_helps)

        return filter_all

    return lift if judge is None else lift(judge)


def score_each(judge: ScoreOne) -> ScoreAll:
    """Lifts a score that judges one node."""

    @wraps(judge)
    def score_all(self: Any, pod: Pod, nodes: Nodes) -> IntArray:
        scores = [judge(self, pod, nodes.one(position)) for position in range(len(nodes))]
        for position, value in enumerate(scores):
            if not isinstance(value, int) or value.bit_length() > 63:
                raise PluginError(
                    f"{self.name} scored node {nodes.names[position]} {value!r}; "
                    "a score is a whole number of at most 63 bits"
                )
        return np.array(scores, np.int64)

    return score_all
