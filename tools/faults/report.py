"""What the suite tells of each fault, and the figures of all of them at the end."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from faults.auditor import MOST_ON_THE_WIRE

_NOTHING_OF = (
    "double_bindings",
    "lost_pods",
    "lost_events",
    "lost_conditions",
    "overcommitted_nodes",
    "violations",
)
_AT_MOST = {
    "bindings_of_former_leaders": MOST_ON_THE_WIRE,
    "longest_recovery_seconds": 30.0,
    "leader_killed_to_next_binding_seconds": 18.0,
    "leader_terminated_to_next_binding_seconds": 3.0,
}


@dataclass(frozen=True, slots=True)
class Injected:
    """One fault: when it began and ended, and when the next pod was bound after that."""

    name: str
    began_at: float
    ended_at: float
    next_bound_at: float | None

    @property
    def recovery_seconds(self) -> float | None:
        return None if self.next_bound_at is None else self.next_bound_at - self.ended_at


@dataclass(slots=True)
class Figures:
    """The last line that the suite prints."""

    faults: int = 0
    pods: int = 0
    double_bindings: int = 0
    lost_pods: int = 0
    lost_events: int = 0
    lost_conditions: int = 0
    overcommitted_nodes: int = 0
    violations: int = 0
    bindings_of_former_leaders: int = 0
    missing_events_after_kill: int = 0
    longest_leaderless_seconds: float = 0.0
    longest_recovery_seconds: float = 0.0
    leader_killed_to_next_binding_seconds: float = 0.0
    leader_terminated_to_next_binding_seconds: float = 0.0
    left_out: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            name: round(value, 2) if isinstance(value, float) else value
            for name, value in asdict(self).items()
        }

    def problems(self) -> Iterator[str]:
        for name in _NOTHING_OF:
            if getattr(self, name):
                yield f"{name} is {getattr(self, name)}; it should be 0"
        for name, most in _AT_MOST.items():
            if getattr(self, name) > most:
                yield f"{name} is {round(getattr(self, name), 1):g}; it should be at most {most:g}"
