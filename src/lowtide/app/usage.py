"""Joins what nodes use to the plugins that ask for it: from metrics-server, or from a scenario."""

import math
from dataclasses import replace

from lowtide.app.known_cluster import BelievedCluster
from lowtide.app.registry import requests_of
from lowtide.cluster.state import ClusterState
from lowtide.framework.profile import Profile
from lowtide.readings.usage import UsageRequest, usage_reading
from lowtide.scenario.scenario import Scenario, ScenarioError
from lowtide.scenario.usage import usage_samples


def publish_usage(scenario: Scenario, profile: Profile, state: ClusterState) -> bool:
    """Whether a plugin of the profile reads it. All pods of a scenario are measured already."""
    requests = requests_of([profile], UsageRequest)
    try:
        samples = usage_samples(scenario.readings["usage"])
    except ScenarioError as error:
        raise ScenarioError(f"{scenario.id}: {error}") from None
    for request in requests:
        reading = usage_reading(request, samples, BelievedCluster(state).allocatable(), now=0.0)
        state.publish(request, replace(reading, sampled_at=math.inf))
    return bool(requests)
