"""What another scheduler asks about a pod and some nodes, and what it is advised: plain data.

The server makes questions of requests and answers of advice; `advisor` works the advice out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lowtide.advisor.asked_rows import AskedRows
from lowtide.objects.extender import NodeSeen
from lowtide.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class Asked:
    """A pod, and the nodes that are left for it: by name, or as the request has them too."""

    pod: Pod
    names: Sequence[str]
    nodes: Sequence[NodeSeen] | None = None  # one for each name
    rows: AskedRows | None = None  # of the names, where they were looked up already


@dataclass(frozen=True, slots=True)
class AskedPreemption:
    """By node: the uids of the pods that would have to go."""

    pod: Pod
    victims: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class FilterAdvice:
    """Which nodes the plugins leave, and why not the others; `unresolvable` ones evicting pods
    cannot help."""

    kept: Sequence[int] | None  # positions of the asked nodes; None: all of them
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)
    error: str = ""  # instead of all of this, where nothing is left and the profile wants it so
    neutral: str = ""  # why the plugins have no say in it; empty where they have


@dataclass(frozen=True, slots=True)
class PriorityAdvice:
    """0 to 10 for each of the asked nodes."""

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
