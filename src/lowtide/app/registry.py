"""The plugins there are in this process: the built-in ones, what an outsider adds, and what a
configuration names."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from lowtide.app.outside_plugins import InstalledPlugins
from lowtide.config.errors import ConfigError
from lowtide.config.load import (
    API_VERSION,
    OWN_SCHEDULER_NAME,
    LoadedConfig,
    load_config,
    load_default,
)
from lowtide.framework.asking import readings_of
from lowtide.framework.plugin import Binder
from lowtide.framework.profile import Profile
from lowtide.framework.registry import Built, Registry
from lowtide.logs import Log
from lowtide.plugins import BUILT_IN
from lowtide.plugins.network_traffic import RECOMMENDED_WEIGHT
from lowtide.readings.access import PrometheusAccess
from lowtide.readings.prometheus_query import PrometheusQuery
from lowtide.readings.request import TrafficRequest
from lowtide.telemetry.prometheus import PrometheusError, query_url

T = TypeVar("T")


def make_registry(plugins: Mapping[str, type[Any]]) -> Registry:
    registry = Registry(BUILT_IN, InstalledPlugins())
    return registry.with_plugins(plugins) if plugins else registry


def requests_of(profiles: Iterable[Profile], kind: type[T]) -> list[T]:
    """What is to be measured of that kind for these profiles, each once."""
    found = (each for profile in profiles for each in profile.readings)
    return list(dict.fromkeys(each for each in found if isinstance(each, kind)))


def check_addresses(profiles: Mapping[str, Profile]) -> None:
    """ConfigError where a profile asks a Prometheus that cannot be asked; offline nobody does."""
    problems = []
    for scheduler_name, profile in profiles.items():
        for plugin in profile.plugins:
            for request in readings_of(plugin):
                if isinstance(request, TrafficRequest | PrometheusQuery):
                    told = f"profile {scheduler_name}: {plugin.name}"
                    problems += [f"{told}: {each}" for each in _wrong_addresses(request.access)]
    if problems:
        raise ConfigError(problems)


def _wrong_addresses(access: PrometheusAccess) -> Iterator[str]:
    for address in access.addresses or ("",):
        try:
            query_url(address)
        except PrometheusError as error:
            yield str(error)


def build_for_cluster(registry: Registry, loaded: LoadedConfig, binder: Binder, log: Log) -> Built:
    """For a mode that runs on a cluster; what a user should know of the configuration is logged."""
    built = registry.build(loaded, {Binder: binder})
    check_addresses(built.profiles)
    for warning in (*loaded.warnings, *built.warnings):
        log.warning(warning)
    return built


def read_config(path: Path | None, prometheus_address: str | None = None) -> LoadedConfig:
    """The file; without one the defaults, with NetworkTraffic where Prometheus is named."""
    if path is None:
        if prometheus_address is None:
            return load_default()
        return config_with_traffic(
            {"prometheusAddress": prometheus_address},
            scheduler_name=OWN_SCHEDULER_NAME,
            weight=RECOMMENDED_WEIGHT,
            leader_elect=True,
            source="--prometheus",
        )
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError([f"{path}: cannot be read: {reason}"]) from None
    return load_config(text, file=str(path))


def recommended_config() -> LoadedConfig:
    """All default plugins and NetworkTraffic as it is advised, for the offline modes."""
    return config_with_traffic(
        {},
        scheduler_name=OWN_SCHEDULER_NAME,
        weight=RECOMMENDED_WEIGHT,
        leader_elect=False,
        source="the recommended profile",
    )


def config_with_traffic(
    args: Mapping[str, Any], *, scheduler_name: str, weight: int, leader_elect: bool, source: str
) -> LoadedConfig:
    """The default plugins and NetworkTraffic with these args; `source` stands for a file's name."""
    config = {
        "apiVersion": API_VERSION,
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": leader_elect},
        "profiles": [
            {
                "schedulerName": scheduler_name,
                "plugins": {"score": {"enabled": [{"name": "NetworkTraffic", "weight": weight}]}},
                "pluginConfig": [{"name": "NetworkTraffic", "args": dict(args)}],
            }
        ],
    }
    return load_config(json.dumps(config), file=source)
