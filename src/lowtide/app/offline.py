"""The offline modes: the same plugins on scenarios from files, without a cluster."""

import json
import math
from collections.abc import Mapping
from itertools import starmap
from typing import Any

from lowtide.app.no_binder import NoBinder
from lowtide.app.registry import requests_of
from lowtide.app.usage import publish_usage
from lowtide.cluster.state import ClusterState
from lowtide.config.errors import ConfigError
from lowtide.config.load import LoadedConfig, load_config
from lowtide.framework.plugin import Binder, PluginError
from lowtide.framework.profile import Profile
from lowtide.framework.registry import Built, Registry
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.objects.meta import ObjectMeta
from lowtide.objects.quantity import QuantityError
from lowtide.objects.requests import amounts_as_int
from lowtide.readings.capacity import CAPACITY_ANNOTATION, is_capacity_readable
from lowtide.readings.columns import published
from lowtide.readings.demand import READABLE_TRAFFIC, TRAFFIC_ANNOTATION, is_readable
from lowtide.readings.prometheus_query import PrometheusQuery, query_reading
from lowtide.readings.reading import TrafficReading
from lowtide.readings.request import TrafficRequest
from lowtide.readings.usage import UsageRequest
from lowtide.scenario.answer import answered, effective_profile, gated, rejected_unread
from lowtide.scenario.queries import query_values
from lowtide.scenario.readings import traffic_reading
from lowtide.scenario.scenario import Scenario, ScenarioError
from lowtide.scheduler.decide import decide


class Decider:
    """Answers scenarios; a scenario's own configuration wins over the one given here."""

    def __init__(self, registry: Registry, default: LoadedConfig) -> None:
        self._registry = registry
        self._default = default
        self._built_by_config: dict[str, Built] = {}
        self._warnings: list[str] = []
        self._unreadable: dict[str, dict[str, str]] = {}  # by annotation, by name: the value

    @property
    def warnings(self) -> list[str]:
        """What a user should know of the scenarios so far, each once."""
        return [*self._warnings, *starmap(_unreadable_in_words, self._unreadable.items())]

    def answer(self, scenario: Scenario) -> dict[str, Any]:
        """ScenarioError tells what is wrong with the scenario or with its own configuration;
        ConfigError, what is wrong with the one given to the decider."""
        built = self._built_for(scenario)
        profile = _profile_for(scenario, built.profiles)
        self._note_annotations(scenario)
        self._warn_of_unknown_nodes(scenario)
        held = profile.may_enqueue(scenario.pod)
        if held is not None:
            return gated(scenario.id, *held)
        state = state_of(scenario)
        self._publish_readings(scenario, profile, state)
        self._publish_usage(scenario, profile, state)
        self._publish_queries(scenario, profile, state)
        try:
            decision = decide(scenario.pod, VerdictCache(profile, state), turn=0, full=True)
            answer = answered(scenario.id, decision, state.names)
        except QuantityError as error:
            answer = rejected_unread(scenario.id, str(error), state.count)
        except PluginError as error:
            raise ScenarioError(f"{scenario.id}: pod {scenario.pod.key}: {error}") from None
        if scenario.config is not None:
            answer["profile"] = effective_profile(built.expansions[profile.scheduler_name])
        return answer

    def _publish_readings(self, scenario: Scenario, profile: Profile, state: ClusterState) -> None:
        requests = requests_of([profile], TrafficRequest)
        if "traffic" not in scenario.readings:
            return
        for request in requests:
            state.publish(request, published(_reading(request, scenario)))
        if not requests:
            self._warn(
                f"readings.traffic is given, and no plugin of the profile "
                f"{profile.scheduler_name} reads it; enable NetworkTraffic in a configuration"
            )

    def _publish_usage(self, scenario: Scenario, profile: Profile, state: ClusterState) -> None:
        if "usage" not in scenario.readings:
            if requests_of([profile], UsageRequest):
                self._warn(
                    f"readings.usage is not given, and a plugin of the profile "
                    f"{profile.scheduler_name} reads it: all nodes are equal to NodeUsage"
                )
        elif not publish_usage(scenario, profile, state):
            self._warn(
                f"readings.usage is given, and no plugin of the profile "
                f"{profile.scheduler_name} reads it; enable NodeUsage in a configuration"
            )

    def _publish_queries(self, scenario: Scenario, profile: Profile, state: ClusterState) -> None:
        values = _query_values(scenario)
        queries = requests_of([profile], PrometheusQuery)
        for query in queries:
            if query.promql in values:
                state.publish(query, query_reading(values[query.promql], sampled_at=math.inf))
            else:
                self._warn(
                    f"readings.queries has no {query.promql!r}, which a plugin of the profile "
                    f"{profile.scheduler_name} asks: no node has a value of it"
                )
        for promql in sorted(values.keys() - {query.promql for query in queries}):
            self._warn(
                f"readings.queries has {promql!r}, and no plugin of the profile "
                f"{profile.scheduler_name} asks that"
            )

    def _warn_of_unknown_nodes(self, scenario: Scenario) -> None:
        names = {node.name for node in scenario.nodes}
        by_source = {**scenario.readings}
        for promql, values in _query_values(scenario).items():
            by_source[f"queries[{promql!r}]"] = values
        by_source.pop("queries", None)
        for source, by_node in by_source.items():
            unknown = [str(name) for name in by_node if name not in names]
            if unknown:
                shown = ", ".join(unknown[:_NAMES_SHOWN]) + (
                    f" and {len(unknown) - _NAMES_SHOWN} more"
                    if len(unknown) > _NAMES_SHOWN
                    else ""
                )
                self._warn(
                    f"readings.{source} has {shown}, and {scenario.id} has no node of that name"
                )

    def _note_annotations(self, scenario: Scenario) -> None:
        """Those that cannot be read: the plugins take them for none."""
        for pod in (scenario.pod, *scenario.pods, *scenario.pending_pods):
            if not is_readable(pod):
                self._note_annotation(TRAFFIC_ANNOTATION, pod.key, pod.metadata)
        for node in scenario.nodes:
            if not is_capacity_readable(node):
                self._note_annotation(CAPACITY_ANNOTATION, node.name, node.metadata)

    def _note_annotation(self, annotation: str, name: str, metadata: ObjectMeta) -> None:
        names = self._unreadable.setdefault(annotation, {})
        names.setdefault(name, metadata.annotations[annotation])

    def _warn(self, text: str) -> None:
        if text not in self._warnings:
            self._warnings.append(text)

    def _built_for(self, scenario: Scenario) -> Built:
        try:
            return self._built(scenario.config)
        except ConfigError as error:
            if scenario.config is None:
                raise
            lines = str(error).splitlines()
            text = "\n".join(f"{scenario.id}: {line}" for line in lines)
            raise ScenarioError(text) from None

    def _built(self, config: Mapping[str, Any] | None) -> Built:
        text = "" if config is None else json.dumps(config, sort_keys=True)
        if text not in self._built_by_config:
            loaded = load_config(text, file="scenario config") if text else self._default
            self._built_by_config[text] = self._registry.build(loaded, {Binder: NoBinder()})
        return self._built_by_config[text]


def _profile_for(scenario: Scenario, profiles: Mapping[str, Profile]) -> Profile:
    name = scenario.pod.spec.scheduler_name
    if name in profiles:
        return profiles[name]
    if len(profiles) == 1:
        return next(iter(profiles.values()))
    raise ScenarioError(
        f"{scenario.id}: pod {scenario.pod.key} names scheduler {name!r}; "
        f"the configuration has {', '.join(profiles)}"
    )


_NAMES_SHOWN = 5


def _unreadable_in_words(annotation: str, by_name: Mapping[str, str]) -> str:
    kind, right = _ANNOTATIONS[annotation]
    name, value = next(iter(by_name.items()))
    counted = f"{len(by_name)} {kind}" + ("s" if len(by_name) > 1 else "")
    return (
        f"the annotation {annotation} of {counted} cannot be read and does not count, "
        f"such as {value!r} of {name}; expected {right}"
    )


# Whose they are, and what they may say.
_ANNOTATIONS: Mapping[str, tuple[str, str]] = {
    TRAFFIC_ANNOTATION: ("pod", READABLE_TRAFFIC),
    CAPACITY_ANNOTATION: ("node", "10G, in bits/s"),
}


def _reading(request: TrafficRequest, scenario: Scenario) -> TrafficReading:
    try:
        return traffic_reading(request, scenario.readings["traffic"], scenario.nodes)
    except ScenarioError as error:
        raise ScenarioError(f"{scenario.id}: {error}") from None


def _query_values(scenario: Scenario) -> dict[str, dict[str, float]]:
    try:
        return query_values(scenario.readings.get("queries", {}))
    except ScenarioError as error:
        raise ScenarioError(f"{scenario.id}: {error}") from None


def state_of(scenario: Scenario) -> ClusterState:
    state = ClusterState()
    for node in scenario.nodes:
        if state.row_of(node.name) is not None:
            raise ScenarioError(f"{scenario.id}: two nodes are called {node.name}")
        try:
            amounts_as_int(node.status.allocatable, "status.allocatable")
        except QuantityError as error:
            raise ScenarioError(f"{scenario.id}: node {node.name}: {error}") from None
        state.add_node(node)
    for thing in scenario.objects:
        state.put_object(thing)
    for pod in scenario.pods:
        if not pod.has_ended:
            state.place(pod)
    for pod in scenario.pending_pods:
        state.nominate(pod, pod.status.nominated_node_name)
    return state
