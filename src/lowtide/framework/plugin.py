"""What a rule is: the one file that a plugin author reads.

A rule is a class with a `name` and any of the methods below. It is asked once per pod about all
nodes, and answers with arrays, one element per row of the `Nodes` it was given; `filter_each` and
`score_each` lift a method that judges a single node. Everything but `name` is optional:

    concerns(pod) -> bool                             False where it has nothing to say of pods of
                                                      this signature, before filtering, in filtering
                                                      and in scoring: there it is not asked then
    kinds      other object types to watch for it, read by `nodes.objects(type)`
    args       a msgspec Struct: its `<Name>Args`, decoded strictly; handed to the constructor
    older_args(raw, spelling) -> OlderArgs | None     args of earlier versions put into today's
    needs      {"parameter": Protocol}: what the application hands to the constructor besides
    retry_on   NODE | TAKEN | LABELS | READING (of one node), NODES (any node's object), OTHERS (the
               pods of other nodes), OBJECTS (of its kinds): the changes that make a pod that it
               rejected worth another try (default: whatever it read to reject the pod)
    may_help(pod, change) -> bool                     whether such a Change can make it accept a pod
                                                      that it refused; never False where it can
    readings   what is to be measured for it, such as a PrometheusQuery (lowtide.readings); arrives
               as `nodes.reading(request)`

    may_enqueue(pod) -> PodRejection | None           before the pod enters the queue
    sort_key(queued) -> comparable                    which pod is taken first
    pre_filter(pod, nodes) -> PodRejection | frozenset[str] | None
                                                      refuse the pod, or name the nodes to search
    filter(pod, nodes) -> Iterable[Rejection]         nothing yielded = every node is fine
    post_filter(pod, nodes, refused) -> PostFiltered  no node was left: what can be done about it;
                                                      `refused` (Refused) knows where and why
    choose(evictions, turn) -> PostFiltered           of its candidates those that extenders left
    score(pod, nodes) -> ints | None                  raw scores of every row; None = no opinion;
                                                      `nodes.feasible` says what the filters left
    skips_by_pre_score  whether it has no opinion only where it is enabled at preScore too, as some
               of kube-scheduler's; elsewhere it then scores zeros
    scale      None (raw scores lie in 0..100 already), "highest_best", "lowest_best"
    normalize(pod, nodes, raw) -> ints                instead of `scale`; asked about all nodes, and
                                                      only where one is feasible
    in_words(scores, nodes, *, brief) -> Iterable[str]
                                                      whole log lines about {node: RuleScore};
                                                      `nodes` as they were scored
    filter_in_words(pod, nodes) -> Iterable[str]      whole log lines about each node's verdict
    tells_readings                                    whether to log each reading, briefly
    reserve(pod, node_name, nodes) -> PodRejection | Reserved | None
    unreserve(pod, node_name)                         that happened
    permit(pod, node_name, nodes) -> Allow | Reject | Wait
                                                      a pod that waits is assumed on its node until
                                                      the rule's answer for it (`also`), or too long
    async pre_bind(pod, node_name) -> str | None      why the pod cannot be bound, to be tried again
    async bind(pod, node_name), post_bind(pod, node_name)

What a plugin reads of `nodes` is noted, and it is asked again when that changes: nothing has to be
declared. So what it answers about one node must not depend on which other nodes it is asked about.
Where an answer does depend on other nodes, it reads them by `nodes.everything`, which is the whole
table whatever was asked. A pre-filter answers about the pod, and always sees all nodes.

A plugin reads of a pod what its signature holds: everything but name, uid, times and status. It
keeps no state of its own between pods, except for caches of pure functions of what it read. It
reads no clock and asks nobody: what it needs is handed in.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol, overload

import msgspec
import numpy as np

from lowtide.cluster.changes import (
    LABELS,
    NODE,
    NODES,
    OBJECTS,
    OTHERS,
    PODS,
    READING,
    TAKEN,
)
from lowtide.cluster.columns import BoolArray, FloatArray, IntArray
from lowtide.cluster.nodes import Nodes, OneNode
from lowtide.framework.change import Change
from lowtide.objects.pod import Pod
from lowtide.objects.quantity import QuantityError

if TYPE_CHECKING:
    from lowtide.framework.decision import NodeRejection

__all__ = [
    "LABELS",
    "MAX_SCORE",
    "NODE",
    "NODES",
    "OBJECTS",
    "OTHERS",
    "PODS",
    "READING",
    "TAKEN",
    "Allow",
    "BindOutcome",
    "Binder",
    "BoolArray",
    "Change",
    "Eviction",
    "FloatArray",
    "IntArray",
    "Nodes",
    "OneNode",
    "Plugin",
    "PluginError",
    "Pod",
    "PodRejection",
    "PostFiltered",
    "Refused",
    "Reject",
    "Rejection",
    "Reserved",
    "Wait",
    "ask",
    "filter_each",
    "readings_of",
    "score_each",
]

MAX_SCORE = 100


class Plugin(Protocol):
    @property
    def name(self) -> str: ...


class PluginError(Exception):
    """A rule broke its contract: a bug in the rule, named after it."""

    def __init__(self, text: str, *, rule_name: str = "") -> None:
        super().__init__(text)
        self.rule_name = rule_name


class Rejection(msgspec.Struct, frozen=True):
    """The nodes a filter refuses for one reason; whether evicting pods there could help.

    A refusal that gives way counts only while there is another node: when every node is refused,
    and some for such reasons alone, the pod goes to one of those once it has waited that long."""

    mask: BoolArray
    reason: str
    eviction_helps: bool = False
    gives_way_after: float | None = None  # seconds; 0: at once; None: never


@dataclass(frozen=True, slots=True)
class PodRejection:
    """The pod is refused on every node."""

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
    """What one rule can do for a pod that fits nowhere; the next one is asked unless there is an
    `eviction` or an error. Reasons are joined to what the pod's condition and Event say."""

    reason: str = ""
    is_error: bool = False
    nominated_node_name: str | None = None  # "": a nomination is taken back; None: it stays
    eviction: Eviction | None = None
    candidates: tuple[Eviction, ...] = ()  # this eviction and the others that would do
    tied_nodes: tuple[str, ...] = ()  # of those candidates that are as good as this one
    still_refused: "Mapping[str, NodeRejection]" = field(default_factory=dict)  # tried in vain
    said_before: str = ""  # of an eviction: what rules said that could do nothing


class Refused(Protocol):
    """Where the pod was refused, and whether it would fit in thought; `post_filter` is given it.

    In thought too, a node is asked about with the pods that are nominated to it and matter as
    much or more."""

    @property
    def turn(self) -> int:
        """Grows with each decision: instead of chance."""

    @property
    def gives_way_after(self) -> float:
        """Seconds of waiting in all after which some refusal has given way and a node is left."""

    @property
    def eviction_may_help(self) -> BoolArray:
        """By row: whether the first rule that refuses the node does so because of its pods."""

    def was_reached(self, rule_name: str) -> bool:
        """Whether this rule was asked by `pre_filter`; after a refusal for good no other is."""

    def on(self, nodes: Nodes) -> "Mapping[int, NodeRejection]":
        """By position: why the pod does not fit there."""

    def fits(self, nodes: Nodes) -> BoolArray:
        """By position: whether it fits. Only rules that read pods or readings are asked."""


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
    also: frozenset[str] = frozenset()  # uids of waiting pods that the rule lets go with this one


@dataclass(frozen=True, slots=True)
class Reject:
    reason: str
    also: frozenset[str] = frozenset()  # uids of waiting pods that it refuses with this one


@dataclass(frozen=True, slots=True)
class Wait:
    """The pod is refused when the rule has not let it go after so long, 15 minutes at most."""

    seconds: float


@dataclass(frozen=True, slots=True)
class BindOutcome:
    """How a binding ended. `error` is None when the pod is bound to the node. `is_gone` says that
    nothing is left to bind: the pod was deleted, or has another node."""

    error: str | None = None
    is_gone: bool = False


class Binder(Protocol):
    """Binds a pod to a node in the cluster; DefaultBinder needs one, and VolumeBinding.

    It answers when it knows: where no answer came, it reads the pod again first.
    """

    async def bind(self, pod: Pod, node_name: str) -> BindOutcome: ...

    async def bind_volumes(self, pod: Pod, node_name: str, timeout_seconds: float) -> str | None:
        """Writes the volumes and claims that were reserved for the pod, and waits until its claims
        are bound; tells what went wrong."""


def ask(rule: Any, method: str, *arguments: Any, **named: Any) -> Any:
    """Calls a rule's method; whatever goes wrong in it is the rule's fault, and says so. But a
    QuantityError is that of the pod or object it read: who asks has to be ready for both."""
    try:
        answer = getattr(rule, method)(*arguments, **named)
        # As good as to ask for an Iterator, and this is asked of every answer.
        return list(answer) if hasattr(answer, "__next__") else answer
    except PluginError as error:
        error.rule_name = rule.name
        raise
    except QuantityError:
        raise
    except Exception as error:
        text = f"{rule.name}.{method} failed: {error!r}"
        raise PluginError(text, rule_name=rule.name) from error


def readings_of(plugin: Plugin) -> tuple[Hashable, ...]:
    return tuple(getattr(plugin, "readings", ()))


FilterOne = Callable[[Any, Pod, OneNode], str | None]
FilterAll = Callable[[Any, Pod, Nodes], Iterable[Rejection]]
ScoreOne = Callable[[Any, Pod, OneNode], int]
ScoreAll = Callable[[Any, Pod, Nodes], IntArray]


@overload
def filter_each(judge: FilterOne) -> FilterAll: ...
@overload
def filter_each(*, eviction_helps: bool) -> Callable[[FilterOne], FilterAll]: ...
def filter_each(judge: Any = None, *, eviction_helps: bool = False) -> Any:
    """Lifts a filter that judges one node: it returns why it refuses the node, or None."""

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
