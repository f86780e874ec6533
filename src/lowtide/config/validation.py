"""Checks across the fields of a completed configuration, beyond the type and bounds of each.

Called by `load.load_config`, and again after flags have changed a loaded configuration."""

import re
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from lowtide.config.errors import Path, Problem
from lowtide.config.types import Extender, KubeSchedulerConfiguration, LeaderElection, Profile

# Retries wait up to this factor longer. A deadline below that would pass while waiting.
RETRY_JITTER_FACTOR = 1.2

_DNS_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_NAME = re.compile(rf"{_DNS_LABEL}(\.{_DNS_LABEL})*")
_RESOURCE_NAME = re.compile(
    rf"{_DNS_LABEL}(\.{_DNS_LABEL})*/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
)


def validate(config: KubeSchedulerConfiguration) -> Iterator[Problem]:
    """Yield each problem with its path in the document."""
    if config.pod_max_backoff_seconds < config.pod_initial_backoff_seconds:
        yield Problem(
            ("podMaxBackoffSeconds",),
            "must be at least podInitialBackoffSeconds, which is "
            f"{config.pod_initial_backoff_seconds}, not {config.pod_max_backoff_seconds}",
        )
    if config.leader_election.leader_elect:
        yield from _leader_election(config.leader_election)
    yield from _profiles(config.profiles)
    yield from _extenders(config.extenders)


def _leader_election(election: LeaderElection) -> Iterator[Problem]:
    lease, renew, retry = (
        election.lease_duration_seconds,
        election.renew_deadline_seconds,
        election.retry_period_seconds,
    )
    positive = True
    for name, seconds in (
        ("leaseDuration", lease),
        ("renewDeadline", renew),
        ("retryPeriod", retry),
    ):
        if seconds <= 0:
            positive = False
            yield Problem(("leaderElection", name), f"must be more than 0s, not {seconds:g}s")
    if 0 < lease < 1:
        yield Problem(("leaderElection", "leaseDuration"), f"must be at least 1s, not {lease:g}s")
    if positive and lease <= renew:
        yield Problem(
            ("leaderElection", "leaseDuration"),
            f"must be more than renewDeadline, which is {renew:g}s, not {lease:g}s",
        )
    if positive and renew <= retry * RETRY_JITTER_FACTOR:
        yield Problem(
            ("leaderElection", "renewDeadline"),
            f"must be more than {RETRY_JITTER_FACTOR} times retryPeriod, which is {retry:g}s, "
            f"not {renew:g}s",
        )
    if election.resource_lock != "leases":
        yield Problem(
            ("leaderElection", "resourceLock"), f'must be "leases", not "{election.resource_lock}"'
        )
    # An empty name comes from a profile without a name, which `_profiles` reports.
    if election.resource_name and not _DNS_NAME.fullmatch(election.resource_name):
        yield Problem(
            ("leaderElection", "resourceName"),
            "must be a name of lower-case letters, digits, - and . such as lowtide, "
            f'not "{election.resource_name}"',
        )
    if not re.fullmatch(_DNS_LABEL, election.resource_namespace):
        yield Problem(
            ("leaderElection", "resourceNamespace"),
            "must be a name of lower-case letters, digits and - such as kube-system, "
            f'not "{election.resource_namespace}"',
        )


def _profiles(profiles: Sequence[Profile]) -> Iterator[Problem]:
    first_with: dict[str, int] = {}
    for index, profile in enumerate(profiles):
        path: Path = ("profiles", index)
        name = profile.scheduler_name
        if not name:
            yield Problem(
                (*path, "schedulerName"),
                "is missing; with several profiles, each needs its own name",
            )
        elif name in first_with:
            yield Problem(
                (*path, "schedulerName"),
                f'"{name}" is already the name of profiles[{first_with[name]}]; '
                "each profile needs its own name",
            )
        first_with.setdefault(name, index)
        yield from _plugin_config(profile, path)


def _plugin_config(profile: Profile, path: Path) -> Iterator[Problem]:
    first_with: dict[str, int] = {}
    for index, entry in enumerate(profile.plugin_config):
        if entry.name and entry.name in first_with:
            yield Problem(
                (*path, "pluginConfig", index, "name"),
                f'"{entry.name}" is already configured by pluginConfig[{first_with[entry.name]}]; '
                "give its args once",
            )
        first_with.setdefault(entry.name, index)


def _extenders(extenders: Sequence[Extender]) -> Iterator[Problem]:
    binders = [index for index, extender in enumerate(extenders) if extender.bind_verb]
    for index in binders[1:]:
        yield Problem(
            ("extenders", index, "bindVerb"),
            f"only one extender can bind, and extenders[{binders[0]}] already does; remove one",
        )
    managed: set[str] = set()
    for index, extender in enumerate(extenders):
        url = urlsplit(extender.url_prefix)
        if url.scheme not in ("http", "https") or not url.netloc:
            yield Problem(
                ("extenders", index, "urlPrefix"),
                f'must be a URL such as http://extender.example:8888/, not "{extender.url_prefix}"',
            )
        if extender.http_timeout_seconds < 0:
            yield Problem(
                ("extenders", index, "httpTimeout"),
                f"must be at least 0s, not {extender.http_timeout_seconds:g}s",
            )
        if extender.prioritize_verb and extender.weight <= 0:
            yield Problem(
                ("extenders", index, "weight"),
                f"must be at least 1 with prioritizeVerb, not {extender.weight}",
            )
        for number, resource in enumerate(extender.managed_resources):
            path: Path = ("extenders", index, "managedResources", number, "name")
            if resource.name in managed:
                yield Problem(path, f'"{resource.name}" is already managed; name it once')
            elif not _is_extended(resource.name):
                yield Problem(
                    path,
                    f'must be an extended resource such as example.com/gpu, not "{resource.name}"',
                )
            managed.add(resource.name)


def _is_extended(name: str) -> bool:
    is_native = "kubernetes.io/" in name or name.startswith("requests.")
    return not is_native and _RESOURCE_NAME.fullmatch(name) is not None
