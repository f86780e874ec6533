"""Questions of another scheduler about a pod and some nodes, and the advice it gets: plain data.

The server turns requests into questions and advice into responses; `advisor` makes the advice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lowtide.advisor.asked_rows import AskedRows
from lowtide.objects.extender import NodeSeen
from lowtide.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class Asked:
    """A pod and the nodes that are left for it: their names, and their objects if the request has
    them."""

    pod: Pod
    names: Sequence[str]
    nodes: Sequence[NodeSeen] | None = None  # one per name
    rows: AskedRows | None = None  # the rows of the names, if already looked up


@dataclass(frozen=True, slots=True)
class AskedPreemption:
    """A pod and the victims that another scheduler would evict for it."""

    pod: Pod
    victims: Mapping[str, tuple[str, ...]]  # by node name: uids


@dataclass(frozen=True, slots=True)
class FilterAdvice:
    """Which nodes the plugins accept, and the reasons against the others by node name. Evicting
    pods may help on `failed` nodes, but not on `unresolvable` ones."""

    kept: Sequence[int] | None  # positions among the asked nodes; None: all of them
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)
    error: str = ""  # replaces all else if no node is left and the profile asks for an error
    neutral: str = ""  # why the plugins were not consulted; empty if they were


@dataclass(frozen=True, slots=True)
class PriorityAdvice:
    """A priority from 0 to 10 for each asked node."""

    priorities: Sequence[int]
    neutral: str = ""


@dataclass(frozen=True, slots=True)
class PreemptionAdvice:
    """The nodes on which the pod would fit without its victims."""

    kept: frozenset[str]
    neutral: str = ""


def neutral_filter(reason: str) -> FilterAdvice:
    return FilterAdvice(kept=None, neutral=reason)


def neutral_priorities(asked: Asked, reason: str) -> PriorityAdvice:
    return PriorityAdvice([0] * len(asked.names), neutral=reason)


def neutral_preemption(asked: AskedPreemption, reason: str) -> PreemptionAdvice:
    return PreemptionAdvice(frozenset(asked.victims), neutral=reason)
