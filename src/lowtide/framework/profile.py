"""A Profile: the plugins of one scheduler name, in order, at each extension point.

The registry makes it from the configuration; verdicts, `decide` and the machine read it."""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lowtide.framework.asking import ask, readings_of
from lowtide.framework.change import OBJECTS, Change, wakes_on
from lowtide.framework.evaluation import PluginsAt
from lowtide.framework.plugin import Plugin, PluginError, PodRejection, Scale
from lowtide.objects.pod import Pod
from lowtide.objects.quantity import QuantityError

# Extension points as configurations name them, and the plugin method called there.
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

_ANYTHING = ~0  # every change


@dataclass(frozen=True, slots=True)
class Weighted:
    """A score plugin and its weight."""

    plugin: Any
    weight: int
    zero_if_skipped: bool = False  # whether it scores 0 where it has no opinion

    @property
    def scale(self) -> Scale:
        scale: Scale = getattr(self.plugin, "scale", None)
        return scale

    @property
    def has_normalize(self) -> bool:
        return hasattr(self.plugin, "normalize")


class Concerned(NamedTuple):
    """The plugins that a pod signature concerns, as a Verdict asks them."""

    pre_filters: PluginsAt
    filters: PluginsAt
    scores: PluginsAt
    scorers: tuple[Weighted, ...]


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
        """`zero_if_skipped` names score plugins that score 0 where they have no opinion. With a
        clock, every Asking measures how long the plugins take."""
        self.scheduler_name = scheduler_name
        self.clock = clock
        self.plugins_at = {point: tuple(plugins) for point, plugins in plugins_at.items()}
        self._weights = weights
        self._zero_if_skipped = frozenset(zero_if_skipped)
        self._acting_at = {
            point: tuple(
                plugin for plugin in self.plugins_at.get(point, ()) if hasattr(plugin, method)
            )
            for point, method in METHOD_AT_POINT.items()
        }
        self.scorers = tuple(
            Weighted(plugin, weights[plugin.name], plugin.name in self._zero_if_skipped)
            for plugin in self.plugins_for_point("score")
        )
        self._having_concerns = tuple(
            plugin for plugin in self.plugins if hasattr(plugin, "concerns")
        )
        self._concerned: dict[tuple[bool, ...], Concerned] = {}
        # Others, such as PodDisruptionBudgets, change often, and only matter to the choice of
        # victims.
        self.kinds_that_wake = frozenset(
            kind
            for point in _REJECTING_POINTS
            for plugin in self.plugins_for_point(point)
            for kind in getattr(plugin, "kinds", ())
        )
        self._by_name = {plugin.name: plugin for plugin in self.plugins}

    def without(self, plugin_names: Collection[str]) -> "Profile":
        """This profile without these plugins."""
        left = {
            point: [plugin for plugin in plugins if plugin.name not in plugin_names]
            for point, plugins in self.plugins_at.items()
        }
        return self._with(left, self.clock)

    def timed_by(self, clock: Callable[[], float]) -> "Profile":
        """This profile with a clock, which measures how long each plugin takes."""
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
        """The plugins at this point that have its method, in order."""
        return self._acting_at[point]

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """Every plugin once, in the order of first appearance."""
        seen = {id(plugin): plugin for plugins in self.plugins_at.values() for plugin in plugins}
        return tuple(seen.values())

    @property
    def readings(self) -> tuple[Hashable, ...]:
        """What to measure for the plugins of this profile."""
        return tuple(dict.fromkeys(r for plugin in self.plugins for r in readings_of(plugin)))

    def concerned_by(self, pod: Pod) -> Concerned:
        """The plugins to ask about pods of this signature. Most signatures have the same ones."""
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
        """The changes after which one of these plugins may accept a pod that it rejected. `touched`
        is what those without a `retry_on` read."""
        changes = 0
        for name in plugin_names:
            if name not in self._by_name:  # such as an extender
                return _ANYTHING
            wanted = getattr(self._by_name[name], "retry_on", None)
            changes |= wakes_on(touched) if wanted is None else wanted
        return changes

    def may_help(self, pod: Pod, plugin_names: Iterable[str], change: Change) -> bool:
        """Whether one of these plugins, which rejected the pod, may accept it after the change.
        PluginError where a plugin fails to answer."""
        return any(self._may_accept(name, pod, change) for name in plugin_names)

    def _may_accept(self, plugin_name: str, pod: Pod, change: Change) -> bool:
        plugin = self._by_name.get(plugin_name)
        if plugin is None:
            return True
        if not getattr(plugin, "retry_on", _ANYTHING) & change.what:
            return False
        if change.what & OBJECTS and type(change.thing) not in getattr(plugin, "kinds", ()):
            return False
        return not hasattr(plugin, "may_help") or bool(ask(plugin, "may_help", pod, change))

    def may_enqueue(self, pod: Pod) -> tuple[str, PodRejection] | None:
        """The first plugin that keeps the pod out of the queue, and its reason."""
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
        """The same, except that an error also keeps the pod out."""
        try:
            return self.may_enqueue(pod)
        except (PluginError, QuantityError) as error:
            return NO_PLUGIN, PodRejection(str(error))


def plugins_by_kind(profiles: Iterable[Profile]) -> dict[type, tuple[str, ...]]:
    """The object types that plugins read besides nodes and pods, and the names of the plugins."""
    found: dict[type, dict[str, None]] = {}
    for profile in profiles:
        for plugin in profile.plugins:
            for kind in getattr(plugin, "kinds", ()):
                found.setdefault(kind, {})[plugin.name] = None
    return {kind: tuple(names) for kind, names in found.items()}
