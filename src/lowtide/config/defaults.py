"""Defaults that depend on other fields or that replace an explicit zero. Called by `load`.

Independent defaults are in `types`."""

from msgspec.structs import replace

from lowtide.config.types import (
    ClientConnection,
    Extender,
    KubeSchedulerConfiguration,
    LeaderElection,
    PluginConfig,
    Profile,
)

DEFAULT_SCHEDULER_NAME = "default-scheduler"
KUBE_SCHEDULER_LEASE = "kube-scheduler"
_FIT = "NodeResourcesFit"


def complete(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """Fill in the defaults that the file leaves open."""
    profiles = _named(config.profiles or (Profile(),))
    ignored = _managed_by_extenders(config.extenders)
    if ignored:
        profiles = tuple(_with_ignored_resources(profile, ignored) for profile in profiles)
    contention = config.enable_contention_profiling
    return replace(
        config,
        profiles=profiles,
        leader_election=_complete_election(config.leader_election, profiles),
        client_connection=_complete_connection(config.client_connection),
        enable_contention_profiling=config.enable_profiling if contention is None else contention,
        extenders=tuple(_complete_extender(extender) for extender in config.extenders),
    )


def _named(profiles: tuple[Profile, ...]) -> tuple[Profile, ...]:
    if len(profiles) == 1 and not profiles[0].scheduler_name:
        return (replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER_NAME),)
    return profiles


def _complete_election(election: LeaderElection, profiles: tuple[Profile, ...]) -> LeaderElection:
    usual = LeaderElection()
    return replace(
        election,
        lease_duration_seconds=election.lease_duration_seconds or usual.lease_duration_seconds,
        renew_deadline_seconds=election.renew_deadline_seconds or usual.renew_deadline_seconds,
        retry_period_seconds=election.retry_period_seconds or usual.retry_period_seconds,
        resource_lock=election.resource_lock or usual.resource_lock,
        resource_name=election.resource_name or _lease_name(profiles),
        resource_namespace=election.resource_namespace or usual.resource_namespace,
    )


def _lease_name(profiles: tuple[Profile, ...]) -> str:
    # A second scheduler must not wait for the lease that kube-scheduler holds.
    names = [profile.scheduler_name for profile in profiles]
    return KUBE_SCHEDULER_LEASE if DEFAULT_SCHEDULER_NAME in names else names[0]


def _complete_connection(connection: ClientConnection) -> ClientConnection:
    usual = ClientConnection()
    # To kube-scheduler, zero means "not set" and a negative value "no limit". Here both mean the
    # latter.
    limited = connection.qps is not None and connection.qps > 0
    return replace(
        connection,
        content_type=connection.content_type or usual.content_type,
        qps=connection.qps if limited else None,
        burst=connection.burst or usual.burst,
    )


def _complete_extender(extender: Extender) -> Extender:
    usual_seconds = Extender(url_prefix="").http_timeout_seconds
    return replace(extender, http_timeout_seconds=extender.http_timeout_seconds or usual_seconds)


def _managed_by_extenders(extenders: tuple[Extender, ...]) -> list[str]:
    return [
        resource.name
        for extender in extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    ]


def _with_ignored_resources(profile: Profile, resources: list[str]) -> Profile:
    """Replace the profile's `ignoredResources` with the extenders', as in kube-scheduler."""
    entries = {entry.name: entry for entry in profile.plugin_config}
    before = entries.get(_FIT, PluginConfig(_FIT))
    entries[_FIT] = replace(before, args={**(before.args or {}), "ignoredResources": resources})
    return replace(profile, plugin_config=tuple(entries.values()))
