"""Profile: the plugins that serve one schedulerName, in order, at each extension point.

Built by the registry from the configuration; read by verdicts, decide and the machine.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lowtide.cluster.changes import OBJECTS
from lowtide.framework.asking import ask, readings_of
from lowtide.framework.change import Change, wakes_on
from lowtide.framework.evaluation import PluginsAt
from lowtide.framework.plugin import Plugin, PluginError, PodRejection, Scale
from lowtide.objects.pod import Pod
from lowtide.objects.quantity import QuantityError

# Each extension point of the configuration, and the method that serves it here.
METHOD_AT_POINT: Mapping[str, str] = {
    "preEnqueue": "may_enqueue",
    "queueSort": "sort_key",
    "preFilter": "pre_filter",
    "filter": "filter",
    "postFilter": "post_filter",
    "preScore": "score",
    "score": "score",
    "reserve": "reserve",
    "permit": "permit",
    "preBind": "pre_bind",
    "bind": "bind",
    "postBind": "post_bind",
}


NO_PLUGIN = ""  # instead of the name of the plugin that rejects a pod

# Where a plugin can reject a pod.
_REJECTING_POINTS = ("preEnqueue", "preFilter", "filter", "reserve", "permit")


@dataclass(frozen=True, slots=True)
class Weighted:
    """A score plugin, and what is known of how it scores before it is asked."""

    plugin: Any
    weight: int
    zero_if_skipped: bool = False  # where it has no opinion, it scores zeros
    scale: Scale = field(init=False)
    has_normalize: bool = field(init=False)

    def __post_init__(self) -> None:
        known = {
            "scale": getattr(self.plugin, "scale", None),
            "has_normalize": hasattr(self.plugin, "normalize"),
        }
        for name, value in known.items():
            object.__setattr__(self, name, value)  # as it is frozen


class Concerned(NamedTuple):
    """The rules that have a word on a shape of pods, where a Verdict asks them."""

    pre_filters: PluginsAt
    filters: PluginsAt
    scores: PluginsAt
    scorers: tuple[Weighted, ...]


@dataclass(frozen=True, slots=True)
class _Waking:
    """What can change the mind of a rule that refused a pod."""

    rule: Any
    occasions: int | None  # None: what it touched
    kinds: frozenset[type]
    has_hint: bool


# Of a name that is no rule's, such as that of extenders, nobody knows.
_ANYTHING = ~0


class Profile:
    def __init__(
        self,
        scheduler_name: str,
        rules_at: Mapping[str, Sequence[Any]],
        weights: Mapping[str, int],
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.scheduler_name = scheduler_name
        self.clock = clock  # for each Asking of a turn
        self.rules_at = {point: tuple(rules) for point, rules in rules_at.items()}
        self._weights = weights
        self._acting_at = {
            point: tuple(rule for rule in self.rules_at.get(point, ()) if hasattr(rule, method))
            for point, method in METHOD_AT_POINT.items()
        }
        asked_before = self.rules_at.get("preScore", ())
        self.scorers = tuple(
            Weighted(
                rule,
                weights[rule.name],
                zero_if_skipped=getattr(rule, "skips_by_pre_score", False)
                and rule not in asked_before,
            )
            for rule in self.at("score")
        )
        self._having_concerns = tuple(rule for rule in self.rules if hasattr(rule, "concerns"))
        self._concerned: dict[tuple[bool, ...], Concerned] = {}
        # Budgets, say, change all the time, and only choose among victims.
        self.kinds_that_wake = frozenset(
            kind
            for point in _REJECTING_POINTS
            for rule in self.at(point)
            for kind in getattr(rule, "kinds", ())
        )
        self._waking = {rule.name: _waking(rule) for rule in self.rules}

    def without(self, rule_names: Collection[str]) -> "Profile":
        """The same but for these rules."""
        left = {
            point: [rule for rule in rules if rule.name not in rule_names]
            for point, rules in self.rules_at.items()
        }
        return Profile(self.scheduler_name, left, self._weights, self.clock)

    def timed_by(self, clock: Callable[[], float]) -> "Profile":
        """The same, which knows how long each rule takes."""
        return Profile(self.scheduler_name, self.rules_at, self._weights, clock)

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

    def concerned_by(self, pod: Pod) -> Concerned:
        """Pods of one shape concern the same, and most shapes do."""
        key = tuple([bool(ask(rule, "concerns", pod)) for rule in self._having_concerns])
        found = self._concerned.get(key)
        if found is None:
            others = {
                id(rule)
                for rule, is_concerned in zip(self._having_concerns, key, strict=True)
                if not is_concerned
            }
            found = self._concerned[key] = self._all_but(others)
        return found

    def _all_but(self, others: Collection[int]) -> Concerned:
        def left(point: str) -> PluginsAt:
            return PluginsAt([rule for rule in self.at(point) if id(rule) not in others])

        scorers = tuple(
            each for each in self.scorers if each.zero_if_skipped or id(each.plugin) not in others
        )
        scores = PluginsAt([each.plugin for each in scorers])
        return Concerned(left("preFilter"), left("filter"), scores, scorers)

    def retry_on(self, rule_names: Iterable[str], touched: int) -> int:
        """Every change that can make one of these plugins accept a pod that it rejected. `touched`
        stands for those that do not say so themselves."""
        occasions = 0
        for name in rule_names:
            waking = self._waking.get(name)
            if waking is None:
                return _ANYTHING
            occasions |= wakes_on(touched) if waking.occasions is None else waking.occasions
        return occasions

    def may_help(self, pod: Pod, rule_names: Iterable[str], change: Change) -> bool:
        """Whether one of these rules, which refused the pod, may accept it after the change.
        Raises PluginError where a rule cannot say."""
        return any(self._may_change_mind(name, pod, change) for name in rule_names)

    def _may_change_mind(self, rule_name: str, pod: Pod, change: Change) -> bool:
        waking = self._waking.get(rule_name)
        if waking is None:
            return True
        if waking.occasions is not None and not waking.occasions & change.what:
            return False
        if change.what & OBJECTS and type(change.thing) not in waking.kinds:
            return False
        return not waking.has_hint or bool(ask(waking.rule, "may_help", pod, change))

    def may_enqueue(self, pod: Pod) -> tuple[str, PodRejection] | None:
        """The first plugin that keeps the pod out of the queue, and why."""
        for rule in self._acting_at["preEnqueue"]:
            rejection = ask(rule, "may_enqueue", pod)
            if rejection is not None:
                return rule.name, rejection
        return None

    def gate(self, pod: Pod) -> tuple[str, PodRejection] | None:
        """The same, where a gate that cannot be read stays closed."""
        try:
            return self.may_enqueue(pod)
        except (PluginError, QuantityError) as error:
            return NO_PLUGIN, PodRejection(str(error))


def rules_by_kind(profiles: Iterable[Profile]) -> dict[type, tuple[str, ...]]:
    """The object types that rules of these profiles depend on, and which rules do, each once."""
    found: dict[type, tuple[str, ...]] = {}
    for profile in profiles:
        for kind, names in profile.rules_by_kind.items():
            found[kind] = tuple(dict.fromkeys((*found.get(kind, ()), *names)))
    return found


def _waking(rule: Any) -> _Waking:
    kinds = frozenset(getattr(rule, "kinds", ()))
    return _Waking(rule, getattr(rule, "retry_on", None), kinds, hasattr(rule, "may_help"))
