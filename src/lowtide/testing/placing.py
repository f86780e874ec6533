"""Asks one or several plugins, without a cluster and without a configuration file."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from lowtide.cluster.reading import Reading
from lowtide.cluster.state import ClusterState
from lowtide.framework.contract import broken_contract, broken_options
from lowtide.framework.decision import Decision
from lowtide.framework.plugin import PluginError
from lowtide.framework.profile import METHOD_AT_POINT, Profile
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.scheduler.decide import decide
from lowtide.testing.builders import make_state


def make_profile(
    plugins: Sequence[Any], weights: Mapping[str, int] | None = None, name: str = "lowtide"
) -> Profile:
    """A profile with each plugin at every extension point that it has a method for. PluginError
    where one breaks the contract of `framework/plugin.py`."""
    for plugin in plugins:
        _check_contract(plugin)
    return Profile(
        name,
        {
            point: [plugin for plugin in plugins if hasattr(plugin, method)]
            for point, method in METHOD_AT_POINT.items()
        },
        {plugin.name: (weights or {}).get(plugin.name, 1) for plugin in plugins},
    )


def _check_contract(plugin: Any) -> None:
    if isinstance(plugin, type):
        raise PluginError(f"{plugin.__name__} is a class; give an instance of it")
    if not isinstance(getattr(plugin, "name", None), str):
        raise PluginError(f"a plugin of the class {type(plugin).__name__} has no `name`")
    broken = broken_contract(type(plugin)) or broken_options(plugin)
    if broken is not None:
        text = f"plugin {plugin.name} breaks the contract: {broken}"
        raise PluginError(text, plugin_name=plugin.name)


def place(
    plugins: Sequence[Any],
    pod: Pod,
    nodes: Iterable[Node],
    pods: Iterable[Pod] = (),
    turn: int = 0,
    *,
    readings: Mapping[Any, Reading] | None = None,
) -> Decision:
    """The decision of these plugins about the pod, with every rejection and score. `pods` are on
    their nodes already."""
    state = make_state(nodes, pods, readings)
    return decide(pod, VerdictCache(make_profile(plugins), state), turn=turn, full=True)


def is_concerned(plugin: Any, pod: Pod) -> bool:
    """Whether the plugin is asked about pods of this signature."""
    return not hasattr(plugin, "concerns") or plugin.concerns(pod)


def rejections(plugin: Any, pod: Pod, state: ClusterState) -> dict[str, list[str]]:
    """The reasons of one filter by rejected node."""
    nodes = state.nodes()
    found: dict[str, list[str]] = {}
    for rejection in plugin.filter(pod, nodes) if is_concerned(plugin, pod) else ():
        for position in np.flatnonzero(rejection.mask):
            found.setdefault(nodes.names[position], []).append(rejection.reason)
    return found


def scores(plugin: Any, pod: Pod, state: ClusterState) -> dict[str, int] | None:
    """The raw scores of one plugin by node; None if it has no opinion."""
    if not is_concerned(plugin, pod):
        return None
    nodes = state.nodes().with_feasible(np.ones(state.count, np.bool_))
    raw = plugin.score(pod, nodes)
    return None if raw is None else dict(zip(nodes.names, raw.tolist(), strict=True))
