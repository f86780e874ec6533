"""The offline modes: the same rules on scenarios from files, without a cluster."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from lowtide.app.registry import requests_of
from lowtide.app.usage import publish_usage
from lowtide.cluster.state import ClusterState
from lowtide.config.errors import ConfigError
from lowtide.config.load import LoadedConfig, load_config
from lowtide.framework.plugin import Binder, BindOutcome, PluginError, Pod
from lowtide.framework.profile import Profile
from lowtide.framework.registry import Registry
from lowtide.framework.verdicts import Verdicts
from lowtide.objects.quantity import QuantityError
from lowtide.objects.requests import amounts_as_int
from lowtide.readings.columns import published
from lowtide.readings.reading import TrafficReading
from lowtide.readings.request import TrafficRequest
from lowtide.scenario.answer import answered, gated
from lowtide.scenario.readings import traffic_reading
from lowtide.scenario.scenario import Scenario, ScenarioError
from lowtide.scheduler.decide import decide


class NoBinder:
    """Offline nothing is bound."""

    async def bind(self, pod: Pod, node_name: str) -> BindOutcome:
        raise RuntimeError(f"{pod.key} cannot be bound to {node_name} without a cluster")


class Decider:
    """Answers scenarios; a scenario's own configuration wins over the one given here."""

    def __init__(self, registry: Registry, default: LoadedConfig) -> None:
        self._registry = registry
        self._default = default
        self._profiles_by_config: dict[str, dict[str, Profile]] = {}
        self.warnings: list[str] = []  # what a user should know of the scenarios so far, each once

    def answer(self, scenario: Scenario) -> dict[str, Any]:
        """ScenarioError tells what is wrong with the scenario or with its own configuration;
        ConfigError, what is wrong with the one given to the decider."""
        profile = self._profile_for(scenario)
        held = profile.may_enqueue(scenario.pod)
        if held is not None:
            return gated(scenario.id, *held)
        state = state_of(scenario)
        self._publish_readings(scenario, profile, state)
        self._publish_usage(scenario, profile, state)
        try:
            decision = decide(scenario.pod, Verdicts(profile, state), turn=0, full=True)
        except (QuantityError, PluginError) as error:
            raise ScenarioError(f"{scenario.id}: pod {scenario.pod.key}: {error}") from None
        self._warn_of_unbuilt(scenario)
        return answered(scenario.id, decision, state.names)

    def _publish_readings(self, scenario: Scenario, profile: Profile, state: ClusterState) -> None:
        requests = requests_of([profile], TrafficRequest)
        if "traffic" not in scenario.readings:
            return
        for request in requests:
            state.publish(request, published(_reading(request, scenario)))
        if not requests:
            self._warn(
                f"readings.traffic is given, and no rule of the profile "
                f"{profile.scheduler_name} reads it; enable NetworkTraffic in a configuration"
            )

    def _publish_usage(self, scenario: Scenario, profile: Profile, state: ClusterState) -> None:
        if "usage" in scenario.readings and not publish_usage(scenario, profile, state):
            self._warn(
                f"readings.usage is given, and no rule of the profile "
                f"{profile.scheduler_name} reads it; enable NodeUsage in a configuration"
            )

    def _warn_of_unbuilt(self, scenario: Scenario) -> None:
        for rule_name, asks in _ASKS_FOR.items():
            if rule_name in self._registry.not_built and asks(scenario.pod):
                self._warn(f"{rule_name} is not built yet, and a pod asks for it: {scenario.id}")

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)

    def _profile_for(self, scenario: Scenario) -> Profile:
        try:
            profiles = self._profiles(scenario.config)
        except ConfigError as error:
            if scenario.config is None:
                raise
            lines = str(error).splitlines()
            text = "\n".join(f"{scenario.id}: {line}" for line in lines)
            raise ScenarioError(text) from None
        name = scenario.pod.spec.scheduler_name
        if name in profiles:
            return profiles[name]
        if len(profiles) == 1:
            return next(iter(profiles.values()))
        raise ScenarioError(
            f"{scenario.id}: pod {scenario.pod.key} names scheduler {name!r}; "
            f"the configuration has {', '.join(profiles)}"
        )

    def _profiles(self, config: Mapping[str, Any] | None) -> dict[str, Profile]:
        text = "" if config is None else json.dumps(config, sort_keys=True)
        if text not in self._profiles_by_config:
            loaded = load_config(text, file="scenario config") if text else self._default
            built = self._registry.build(loaded, {Binder: NoBinder()})
            self._profiles_by_config[text] = built.profiles
        return self._profiles_by_config[text]


def _reading(request: TrafficRequest, scenario: Scenario) -> TrafficReading:
    try:
        return traffic_reading(request, scenario.readings["traffic"], scenario.nodes)
    except ScenarioError as error:
        raise ScenarioError(f"{scenario.id}: {error}") from None


# Rules that change where a pod may go, and how to tell that a pod wants them.
_ASKS_FOR: Mapping[str, Callable[[Pod], bool]] = {
    "InterPodAffinity": lambda pod: (
        pod.spec.affinity is not None
        and bool(pod.spec.affinity.pod_affinity or pod.spec.affinity.pod_anti_affinity)
    ),
    "VolumeBinding": lambda pod: any(
        "persistentVolumeClaim" in volume or "ephemeral" in volume for volume in pod.spec.volumes
    ),
    "DynamicResources": lambda pod: bool(pod.spec.resource_claims),
}


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
