"""Defaults that depend on other fields."""

import pytest

from lowtide.config.defaults import complete
from lowtide.config.types import (
    ClientConnection,
    Extender,
    KubeSchedulerConfiguration,
    LeaderElection,
    ManagedResource,
    PluginConfig,
    Profile,
)


def config(**fields: object) -> KubeSchedulerConfiguration:
    return KubeSchedulerConfiguration(api_version="v", kind="k", **fields)  # type: ignore[arg-type]


def test_an_empty_file_means_what_it_means_to_kube_scheduler() -> None:
    assert complete(config()) == KubeSchedulerConfiguration(
        api_version="v",
        kind="k",
        parallelism=16,
        leader_election=LeaderElection(
            leader_elect=True,
            lease_duration_seconds=15.0,
            renew_deadline_seconds=10.0,
            retry_period_seconds=2.0,
            resource_lock="leases",
            resource_name="kube-scheduler",
            resource_namespace="kube-system",
        ),
        client_connection=ClientConnection(
            kubeconfig="",
            accept_content_types="",
            content_type="application/json",
            qps=None,
            burst=100,
        ),
        enable_profiling=True,
        enable_contention_profiling=True,
        percentage_of_nodes_to_score=0,
        pod_initial_backoff_seconds=1,
        pod_max_backoff_seconds=10,
        profiles=(Profile(scheduler_name="default-scheduler"),),
        extenders=(),
        delay_cache_until_active=False,
    )


@pytest.mark.parametrize(
    ("names", "lease"),
    [
        pytest.param(["default-scheduler"], "kube-scheduler", id="is kube-scheduler's by default"),
        pytest.param(
            ["a", "default-scheduler"], "kube-scheduler", id="is kube-scheduler's beside others too"
        ),
        pytest.param(["a", "b"], "a", id="is named after the first of other profiles"),
        pytest.param([""], "kube-scheduler", id="is kube-scheduler's for a profile without a name"),
    ],
)
def test_the_lease(names: list[str], lease: str) -> None:
    profiles = tuple(Profile(scheduler_name=name) for name in names)
    assert complete(config(profiles=profiles)).leader_election.resource_name == lease


def test_a_lease_name_of_the_file_stays() -> None:
    given = config(
        profiles=(Profile(scheduler_name="a"),),
        leader_election=LeaderElection(resource_name="kube-scheduler"),
    )
    assert complete(given).leader_election.resource_name == "kube-scheduler"


def test_the_only_profile_is_named_and_several_are_not() -> None:
    assert complete(config(profiles=(Profile(), Profile()))).profiles == (Profile(), Profile())


def test_zeros_mean_the_default() -> None:
    given = config(
        leader_election=LeaderElection(True, 0.0, 0.0, 0.0, "", "", ""),
        client_connection=ClientConnection(content_type="", qps=0.0, burst=0),
        extenders=(Extender(url_prefix="u", http_timeout_seconds=0.0),),
    )
    usual = complete(config(extenders=(Extender(url_prefix="u", http_timeout_seconds=5.0),)))
    assert complete(given) == usual


@pytest.mark.parametrize(
    ("qps", "wanted"),
    [
        pytest.param(None, None, id="is none when it is not set"),
        pytest.param(-1.0, None, id="is none below zero"),
        pytest.param(20.0, 20.0, id="is kept when it is set"),
    ],
)
def test_the_limit_of_requests(qps: float | None, wanted: float | None) -> None:
    given = config(client_connection=ClientConnection(qps=qps))
    assert complete(given).client_connection.qps == wanted


@pytest.mark.parametrize(
    ("profiling", "contention", "wanted"),
    [
        pytest.param(False, None, False, id="follows profiling when it is not set"),
        pytest.param(True, False, False, id="stays off when it is set off"),
        pytest.param(False, True, True, id="stays on when it is set on"),
    ],
)
def test_contention_profiling(profiling: bool, contention: bool | None, wanted: bool) -> None:
    given = config(enable_profiling=profiling, enable_contention_profiling=contention)
    assert complete(given).enable_contention_profiling is wanted


def test_what_extenders_look_after_is_ignored_by_every_profile() -> None:
    given = config(
        profiles=(
            Profile(
                "a",
                plugin_config=(
                    PluginConfig(
                        "NodeResourcesFit",
                        {"ignoredResources": ["foo"], "ignoredResourceGroups": ["example.org"]},
                    ),
                ),
            ),
            Profile("b"),
        ),
        extenders=(
            Extender(
                url_prefix="http://extender",
                managed_resources=(
                    ManagedResource("example.com/gpu", ignored_by_scheduler=True),
                    ManagedResource("example.com/disk"),
                ),
            ),
        ),
    )
    ignored = {"ignoredResources": ["example.com/gpu"]}
    assert [profile.plugin_config for profile in complete(given).profiles] == [
        (PluginConfig("NodeResourcesFit", {**ignored, "ignoredResourceGroups": ["example.org"]}),),
        (PluginConfig("NodeResourcesFit", ignored),),
    ]
