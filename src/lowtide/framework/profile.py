"""A Profile: the rules that serve one schedulerName, in order, at each extension point.

Built by the registry from the configuration; read by verdicts, decide and the machine.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lowtide.framework.plugin import Plugin, PodRejection, ask, readings_of
from lowtide.objects.pod import Pod

# Each extension point of the configuration, and the method that serves it here.
METHOD_AT_POINT: Mapping[str, str] = {
    "preEnqueue": "may_enqueue",
    "queueSort": "sort_key",
    "preFilter": "pre_filter",
    "filter": "filter",
    "preScore": "score",
    "score": "score",
    "reserve": "reserve",
    "permit": "permit",
    "preBind": "pre_bind",
    "bind": "bind",
    "postBind": "post_bind",
}


@dataclass(frozen=True, slots=True)
class Weighted:
    rule: Any
    weight: int


class Profile:
    def __init__(
        self,
        scheduler_name: str,
        rules_at: Mapping[str, Sequence[Any]],
        weights: Mapping[str, int],
    ) -> None:
        self.scheduler_name = scheduler_name
        self.rules_at = {point: tuple(rules) for point, rules in rules_at.items()}
        self._acting_at = {
            point: tuple(rule for rule in self.rules_at.get(point, ()) if hasattr(rule, method))
            for point, method in METHOD_AT_POINT.items()
        }
        self.scorers = tuple(Weighted(rule, weights[rule.name]) for rule in self.at("score"))

    def at(self, point: str) -> tuple[Any, ...]:
        """The rules at this point that do something there, in order."""
        return self._acting_at[point]

    @property
    def rules(self) -> tuple[Plugin, ...]:
        """Every rule once, in the order of first appearance."""
        seen = {id(rule): rule for rules in self.rules_at.values() for rule in rules}
        return tuple(seen.values())

    @property
    def readings(self) -> tuple[Hashable, ...]:
        """What is to be measured for the rules of this profile."""
        return tuple(dict.fromkeys(r for rule in self.rules for r in readings_of(rule)))

    @property
    def rules_by_kind(self) -> dict[type, tuple[str, ...]]:
        """The object types that rules depend on besides nodes and pods, and which rules do."""
        found: dict[type, tuple[str, ...]] = {}
        for rule in self.rules:
            for kind in getattr(rule, "kinds", ()):
                found[kind] = (*found.get(kind, ()), rule.name)
        return found

    def may_enqueue(self, pod: Pod) -> tuple[str, PodRejection] | None:
        """The first rule that keeps the pod out of the queue, and why."""
        for rule in self.at("preEnqueue"):
            rejection = ask(rule, "may_enqueue", pod)
            if rejection is not None:
                return rule.name, rejection
        return None
