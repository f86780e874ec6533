"""What plugins answer with. A plugin author imports all of it from `framework/plugin.py`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from lowtide.cluster.columns import BoolArray
from lowtide.objects.pod import Pod

if TYPE_CHECKING:
    from lowtide.framework.decision import NodeRejection

MAX_SCORE = 100


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
