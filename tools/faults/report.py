"""What the suite tells of each fault, and the figures of all of them at the end."""

from dataclasses import asdict, dataclass, field
from typing import Any


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
    """The last line that the suite prints; what is 0 has to be, the rest is measured."""

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

    @property
    def are_good(self) -> bool:
        return not any(
            (
                self.double_bindings,
                self.lost_pods,
                self.lost_events,
                self.lost_conditions,
                self.overcommitted_nodes,
                self.violations,
            )
        )
