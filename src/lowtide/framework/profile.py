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
    """The plugins that have a word on a pod signature, where a Verdict asks them."""

    pre_filters: PluginsAt
    filters: PluginsAt
    scores: PluginsAt
    scorers: tuple[Weighted, ...]


@dataclass(frozen=True, slots=True)
class _Waking:
    """What can change the mind of a plugin that rejected a pod."""

    plugin: Any
    occasions: int | None  # None: what it touched
    kinds: frozenset[type]
    has_hint: bool


# Of a name that is no plugin's, such as that of extenders, nobody knows.
_ANYTHING = ~0


class Profile:
    def __init__(
        self,
        scheduler_name: str,
        plugins_at: Mapping[str, Sequence[Any]],
        weights: Mapping[str, int],
        clock: Callable[[], float] | None = None,
        *,
        zero_if_skipped: Collection[str] = (),
    ) -> None:
        """`zero_if_skipped` names score plugins that score 0 where they have no opinion."""
        self.scheduler_name = scheduler_name
        self.clock = clock  # for each Asking of a turn
        self.plugins_at = {point: tuple(plugins) for point, plugins in plugins_at.items()}
        self._weights = weights
        self._acting_at = {
            point: tuple(
                plugin for plugin in self.plugins_at.get(point, ()) if hasattr(plugin, method)
            )
            for point, method in METHOD_AT_POINT.items()
        }
        self._zero_if_skipped = frozenset(zero_if_skipped)
        self.scorers = tuple(
            Weighted(plugin, weights[plugin.name], plugin.name in self._zero_if_skipped)
            for plugin in self.plugins_for_point("score")
        )
        self._having_concerns = tuple(
            plugin for plugin in self.plugins if hasattr(plugin, "concerns")
        )
        self._concerned: dict[tuple[bool, ...], Concerned] = {}
        # Budgets, say, change all the time, and only choose among victims.
        self.kinds_that_wake = frozenset(
            kind
            for point in _REJECTING_POINTS
            for plugin in self.plugins_for_point(point)
            for kind in getattr(plugin, "kinds", ())
        )
        self._waking = {plugin.name: _waking(plugin) for plugin in self.plugins}

    def without(self, plugin_names: Collection[str]) -> "Profile":
        """The same but for these plugins."""
        left = {
            point: [plugin for plugin in plugins if plugin.name not in plugin_names]
            for point, plugins in self.plugins_at.items()
        }
        return self._with(left, self.clock)

    def timed_by(self, clock: Callable[[], float]) -> "Profile":
        """The same, which knows how long each plugin takes."""
        return self._with(self.plugins_at, clock)

    def _with(
        self, plugins_at: Mapping[str, Sequence[Any]], clock: Callable[[], float] | None
    ) -> "Profile":
        return Profile(
            self.scheduler_name,
            plugins_at,
            self._weights,
            clock,
            zero_if_skipped=self._zero_if_skipped,
        )

    def plugins_for_point(self, point: str) -> tuple[Any, ...]:
        """The plugins at this point that do something there, in order."""
        return self._acting_at[point]

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """Every plugin once, in the order of first appearance."""
        seen = {id(plugin): plugin for plugins in self.plugins_at.values() for plugin in plugins}
        return tuple(seen.values())

    @property
    def readings(self) -> tuple[Hashable, ...]:
        """What is to be measured for the plugins of this profile."""
        return tuple(dict.fromkeys(r for plugin in self.plugins for r in readings_of(plugin)))

    @property
    def plugins_by_kind(self) -> dict[type, tuple[str, ...]]:
        """The object types that plugins depend on besides nodes and pods, and which plugins do."""
        found: dict[type, tuple[str, ...]] = {}
        for plugin in self.plugins:
            for kind in getattr(plugin, "kinds", ()):
                found[kind] = (*found.get(kind, ()), plugin.name)
        return found

    def concerned_by(self, pod: Pod) -> Concerned:
        """Pods of one signature concern the same, and most signatures do."""
        key = tuple([bool(ask(plugin, "concerns", pod)) for plugin in self._having_concerns])
        found = self._concerned.get(key)
        if found is None:
            others = {
                id(plugin)
                for plugin, is_concerned in zip(self._having_concerns, key, strict=True)
                if not is_concerned
            }
            found = self._concerned[key] = self._all_but(others)
        return found

    def _all_but(self, others: Collection[int]) -> Concerned:
        def left(point: str) -> PluginsAt:
            return PluginsAt(
                [plugin for plugin in self.plugins_for_point(point) if id(plugin) not in others]
            )

        scorers = tuple(
            each for each in self.scorers if each.zero_if_skipped or id(each.plugin) not in others
        )
        scores = PluginsAt([each.plugin for each in scorers])
        return Concerned(left("preFilter"), left("filter"), scores, scorers)

    def retry_on(self, plugin_names: Iterable[str], touched: int) -> int:
        """Every change that can make one of these plugins accept a pod that it rejected. `touched`
        stands for those that do not say so themselves."""
        occasions = 0
        for name in plugin_names:
            waking = self._waking.get(name)
            if waking is None:
                return _ANYTHING
            occasions |= wakes_on(touched) if waking.occasions is None else waking.occasions
        return occasions

    def may_help(self, pod: Pod, plugin_names: Iterable[str], change: Change) -> bool:
        """Whether one of these plugins, which rejected the pod, may accept it after the change.
        Raises PluginError where a plugin cannot say."""
        return any(self._may_change_mind(name, pod, change) for name in plugin_names)

    def _may_change_mind(self, plugin_name: str, pod: Pod, change: Change) -> bool:
        waking = self._waking.get(plugin_name)
        if waking is None:
            return True
        if waking.occasions is not None and not waking.occasions & change.what:
            return False
        if change.what & OBJECTS and type(change.thing) not in waking.kinds:
            return False
        return not waking.has_hint or bool(ask(waking.plugin, "may_help", pod, change))

    def may_enqueue(self, pod: Pod) -> tuple[str, PodRejection] | None:
        """The first plugin that keeps the pod out of the queue, and why."""
        for plugin in self._acting_at["preEnqueue"]:
            rejection = ask(plugin, "may_enqueue", pod)
            if isinstance(rejection, PodRejection):
                return plugin.name, rejection
            if rejection is not None:
                raise PluginError(
                    f"{plugin.name}.may_enqueue answers with {rejection!r}; it must be a "
                    "PodRejection or None",
                    plugin_name=plugin.name,
                )
        return None

    def gate(self, pod: Pod) -> tuple[str, PodRejection] | None:
        """The same, where a gate that cannot be read stays closed."""
        try:
            return self.may_enqueue(pod)
        except (PluginError, QuantityError) as error:
            return NO_PLUGIN, PodRejection(str(error))


def plugins_by_kind(profiles: Iterable[Profile]) -> dict[type, tuple[str, ...]]:
    """The object types that plugins of these profiles depend on, and which plugins do, each
    once."""
    found: dict[type, tuple[str, ...]] = {}
    for profile in profiles:
        for kind, names in profile.plugins_by_kind.items():
            found[kind] = tuple(dict.fromkeys((*found.get(kind, ()), *names)))
    return found


def _waking(plugin: Any) -> _Waking:
    kinds = frozenset(getattr(plugin, "kinds", ()))
    return _Waking(plugin, getattr(plugin, "retry_on", None), kinds, hasattr(plugin, "may_help"))
