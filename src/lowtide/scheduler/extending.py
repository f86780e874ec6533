"""The dialogue with extenders during a decision. Pure: each generator yields a question and
continues when it is sent the answer.

`decide` runs the dialogue; `live` sends the questions to the extenders."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from lowtide.config.types import Extender
from lowtide.framework.decision import NodeRejection
from lowtide.framework.plugin import Eviction
from lowtide.objects.pod import Pod

# Extenders' priorities go from 0 to 10, plugins' scores from 0 to 100.
POINTS_PER_PRIORITY = 10
MOST_POINTS = 2**61  # so that the sum with all plugins' scores fits into 64 bits
EXTENDER = "Extender"  # the plugin name in rejections by any extender


@dataclass(frozen=True, slots=True)
class AskFilter:
    extender: Extender
    pod: Pod
    node_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AskPriorities:
    """Asks all extenders at once."""

    extenders: tuple[Extender, ...]
    pod: Pod
    node_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AskPreemption:
    """Asks which of these evictions the extender accepts."""

    extender: Extender
    pod: Pod
    evictions: tuple[Eviction, ...]


@dataclass(frozen=True, slots=True)
class Filtered:
    """The nodes that are left, and the reasons against the others. On `unresolvable` nodes,
    evicting pods does not help."""

    kept: tuple[str, ...]
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Priorities:
    """By extender, in the order asked, and by node; none from an extender that failed."""

    by_extender: tuple[Mapping[str, int], ...]


@dataclass(frozen=True, slots=True)
class Preempted:
    """By node: the uids of the victims, and how many disruption budgets that violates."""

    victims: Mapping[str, tuple[tuple[str, ...], int]]


@dataclass(frozen=True, slots=True)
class ExtenderFailed:
    error: str


Question = AskFilter | AskPriorities | AskPreemption
Answer = Filtered | Priorities | Preempted | ExtenderFailed

T = TypeVar("T")
ExtenderDialogue = Generator[Question, Answer, T]


class ExtenderError(Exception):
    """An extender that is not `ignorable` failed: the attempt fails."""


def is_interested(extender: Extender, pod: Pod) -> bool:
    """An extender that manages resources is asked only about pods that request one of them."""
    if not extender.managed_resources:
        return True
    managed = {resource.name for resource in extender.managed_resources}
    return any(
        managed & (container.resources.requests.keys() | container.resources.limits.keys())
        for container in (*pod.spec.containers, *pod.spec.init_containers)
    )


def in_order(extenders: tuple[Extender, ...]) -> tuple[Extender, ...]:
    """Ignorable extenders come last."""
    return tuple(sorted(extenders, key=lambda extender: extender.ignorable))


def rejected_by_extenders(
    extenders: tuple[Extender, ...], pod: Pod, node_names: tuple[str, ...]
) -> ExtenderDialogue[dict[str, NodeRejection]]:
    """Ask each extender about the nodes that the ones before it left, if any."""
    rejected: dict[str, NodeRejection] = {}
    left = node_names
    for extender in in_order(extenders):
        if not left or not extender.filter_verb or not is_interested(extender, pod):
            continue
        answer = yield AskFilter(extender, pod, left)
        if isinstance(answer, ExtenderFailed) and extender.ignorable:
            continue
        filtered = _expected(answer, Filtered)
        kept = set(filtered.kept)
        for name in left:
            if name in filtered.unresolvable:
                rejected[name] = _rejection(filtered.unresolvable[name], eviction_helps=False)
            elif name in filtered.failed:
                rejected[name] = _rejection(filtered.failed[name], eviction_helps=True)
            elif name not in kept:
                # As in kube-scheduler: no reason is given, and eviction does not help.
                rejected[name] = NodeRejection(EXTENDER, (), eviction_helps=False)
        left = tuple(name for name in left if name not in rejected)
    return rejected


def points_of_extenders(
    extenders: tuple[Extender, ...], pod: Pod, node_names: tuple[str, ...]
) -> ExtenderDialogue[dict[str, int]]:
    """What all extenders together add to each node's rank."""
    asked = tuple(each for each in extenders if each.prioritize_verb and is_interested(each, pod))
    points: dict[str, int] = {}
    if not asked:
        return points
    answer = _expected((yield AskPriorities(asked, pod, node_names)), Priorities)
    for extender, priorities in zip(asked, answer.by_extender, strict=True):
        for name, priority in priorities.items():
            added = priority * extender.weight * POINTS_PER_PRIORITY
            points[name] = points.get(name, 0) + added
    return {name: max(-MOST_POINTS, min(sum_, MOST_POINTS)) for name, sum_ in points.items()}


def agreed_by_extenders(
    extenders: tuple[Extender, ...], pod: Pod, evictions: tuple[Eviction, ...]
) -> ExtenderDialogue[tuple[Eviction, ...]]:
    """The evictions that every extender with a preempt verb accepts."""
    for extender in in_order(extenders):
        if not evictions or not extender.preempt_verb or not is_interested(extender, pod):
            continue
        answer = yield AskPreemption(extender, pod, evictions)
        try:
            left = _agreed(extender, _expected(answer, Preempted), evictions)
        except ExtenderError:
            if not extender.ignorable:
                raise
            continue
        evictions = left
    return evictions


def _agreed(
    extender: Extender, answer: Preempted, evictions: tuple[Eviction, ...]
) -> tuple[Eviction, ...]:
    by_node = {each.node_name: each for each in evictions}
    left = []
    for name, (uids, violations) in answer.victims.items():
        asked = by_node.get(name)
        victims = {victim.uid: victim for victim in asked.victims} if asked else {}
        for uid in uids:
            if uid not in victims:
                raise ExtenderError(
                    f"extender: {extender.url_prefix} claims to preempt pod (UID: {uid}) on node: "
                    f"{name}, but the pod is not found on that node"
                )
        if uids:
            left.append(Eviction(name, tuple(victims[uid] for uid in uids), violations))
        elif not extender.ignorable:
            raise ExtenderError(f'expected at least one victim pod on node "{name}"')
    return tuple(left)


def _rejection(reason: str, *, eviction_helps: bool) -> NodeRejection:
    return NodeRejection(EXTENDER, (reason,), eviction_helps)


def _expected(answer: Answer, kind: type[T]) -> T:
    if isinstance(answer, ExtenderFailed):
        raise ExtenderError(answer.error)
    if not isinstance(answer, kind):
        raise TypeError(
            f"a question to extenders got the answer {answer}; it must be a {kind.__name__}"
        )
    return answer
