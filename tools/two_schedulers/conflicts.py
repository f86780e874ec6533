"""What two schedulers did to nodes of which each has room for so many pods: pure, of what the audit
log and the scheduler's log tell."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

# Of the scheduler's log with -v=2: month, day and time, and the pod that it saw on a node.
_SEEN = re.compile(
    r"^I(\d{4} \d\d:\d\d:\d\d\.\d{6}) .*\"Add event for scheduled pod\" pod=\"([^\"]*)\"",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Bound:
    """A binding that was accepted; `at` is when its answer was complete."""

    pod: str  # namespace/name
    node: str
    user: str
    at: float


@dataclass(frozen=True, slots=True)
class Conflicts:
    """`excess` counts the pods that a kubelet would not take, by who bound them: on each node
    those that came when it was full."""

    bound: int
    overcommitted_nodes: int
    excess: Counter[str]


def conflicts(bindings: Iterable[Bound], room: int) -> Conflicts:
    on_node: dict[str, list[Bound]] = defaultdict(list)
    for each in sorted(bindings, key=lambda each: each.at):
        on_node[each.node].append(each)
    beyond = {node: there[room:] for node, there in on_node.items()}
    return Conflicts(
        bound=sum(map(len, on_node.values())),
        overcommitted_nodes=sum(1 for pods in beyond.values() if pods),
        excess=Counter(each.user for pods in beyond.values() for each in pods),
    )


def seen_at(log: str, year: int) -> dict[str, float]:
    """When each pod was first seen on a node, in seconds since the epoch; the log is in UTC."""
    found: dict[str, float] = {}
    for moment, pod in _SEEN.findall(log):
        at = datetime.strptime(f"{year} {moment}", "%Y %m%d %H:%M:%S.%f").replace(tzinfo=UTC)
        found.setdefault(pod, at.timestamp())
    return found


def delays(bindings: Iterable[Bound], seen: Mapping[str, float]) -> list[float]:
    """Seconds from each binding's answer until it was seen; below 0 where that was before."""
    return sorted(seen[each.pod] - each.at for each in bindings if each.pod in seen)


def percentile(values: Sequence[float], share: float) -> float:
    """Of values in order."""
    return values[min(len(values) - 1, int(share * len(values)))]
