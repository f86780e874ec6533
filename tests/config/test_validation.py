"""Plugins between values."""

from typing import Any

import pytest

from lowtide.config.defaults import complete
from lowtide.config.errors import Problem
from lowtide.config.types import (
    Extender,
    KubeSchedulerConfiguration,
    LeaderElection,
    ManagedResource,
    PluginConfig,
    Profile,
)
from lowtide.config.validation import validate


def problems(**fields: Any) -> list[Problem]:
    return list(validate(complete(KubeSchedulerConfiguration(api_version="v", kind="k", **fields))))


def extender(**fields: Any) -> Extender:
    return Extender(**{"url_prefix": "http://u", **fields})


def test_the_defaults_are_valid() -> None:
    assert problems() == []


def test_leader_election_is_not_looked_at_when_it_is_off() -> None:
    election = LeaderElection(leader_elect=False, lease_duration_seconds=-1, resource_lock="x")
    assert problems(leader_election=election) == []


@pytest.mark.parametrize(
    ("election", "problem"),
    [
        pytest.param(
            LeaderElection(lease_duration_seconds=-1.0),
            Problem(("leaderElection", "leaseDuration"), "must be more than 0s, not -1s"),
            id="rejects a negative lease",
        ),
        pytest.param(
            LeaderElection(renew_deadline_seconds=-1.0),
            Problem(("leaderElection", "renewDeadline"), "must be more than 0s, not -1s"),
            id="rejects a negative deadline",
        ),
        pytest.param(
            LeaderElection(retry_period_seconds=-0.5),
            Problem(("leaderElection", "retryPeriod"), "must be more than 0s, not -0.5s"),
            id="rejects a negative retry period",
        ),
        pytest.param(
            LeaderElection(lease_duration_seconds=10.0),
            Problem(
                ("leaderElection", "leaseDuration"),
                "must be more than renewDeadline, which is 10s, not 10s",
            ),
            id="rejects a lease that ends with the deadline",
        ),
        pytest.param(
            LeaderElection(renew_deadline_seconds=2.4),  # 2 * 1.2
            Problem(
                ("leaderElection", "renewDeadline"),
                "must be more than 1.2 times retryPeriod, which is 2s, not 2.4s",
            ),
            id="rejects a deadline that one retry can miss",
        ),
        pytest.param(
            LeaderElection(resource_lock="endpoints"),
            Problem(("leaderElection", "resourceLock"), 'must be "leases", not "endpoints"'),
            id="rejects another lock",
        ),
        pytest.param(
            LeaderElection(resource_name="My_Lease"),
            Problem(
                ("leaderElection", "resourceName"),
                "must be a name of lower-case letters, digits, - and . such as lowtide, "
                'not "My_Lease"',
            ),
            id="rejects a lease name that the API server would reject",
        ),
        pytest.param(
            LeaderElection(resource_namespace="../x"),
            Problem(
                ("leaderElection", "resourceNamespace"),
                "must be a name of lower-case letters, digits and - such as kube-system, "
                'not "../x"',
            ),
            id="rejects a namespace that is none",
        ),
        pytest.param(
            LeaderElection(
                lease_duration_seconds=0.5, renew_deadline_seconds=0.3, retry_period_seconds=0.1
            ),
            Problem(("leaderElection", "leaseDuration"), "must be at least 1s, not 0.5s"),
            id="rejects a lease of less than a second",
        ),
    ],
)
def test_leader_election(election: LeaderElection, problem: Problem) -> None:
    assert problems(leader_election=election) == [problem]


def test_the_longest_backoff_is_not_below_the_first() -> None:
    assert problems(pod_initial_backoff_seconds=10, pod_max_backoff_seconds=10) == []
    assert problems(pod_initial_backoff_seconds=11) == [
        Problem(
            ("podMaxBackoffSeconds",),
            "must be at least podInitialBackoffSeconds, which is 11, not 10",
        )
    ]


@pytest.mark.parametrize(
    ("profiles", "problem"),
    [
        pytest.param(
            (Profile(scheduler_name="a"), Profile()),
            Problem(
                ("profiles", 1, "schedulerName"),
                "is missing; with several profiles, each needs its own name",
            ),
            id="rejects a second profile without a name",
        ),
        pytest.param(
            (Profile(scheduler_name="a"), Profile(scheduler_name="a")),
            Problem(
                ("profiles", 1, "schedulerName"),
                '"a" is already the name of profiles[0]; each profile needs its own name',
            ),
            id="rejects a name used twice",
        ),
        pytest.param(
            (Profile(plugin_config=(PluginConfig("A"), PluginConfig("B"), PluginConfig("A"))),),
            Problem(
                ("profiles", 0, "pluginConfig", 2, "name"),
                '"A" is already configured by pluginConfig[0]; give its args once',
            ),
            id="rejects a plugin configured twice",
        ),
    ],
)
def test_profiles(profiles: tuple[Profile, ...], problem: Problem) -> None:
    assert problems(profiles=profiles) == [problem]


@pytest.mark.parametrize(
    ("extenders", "wanted"),
    [
        pytest.param(
            (extender(bind_verb="b"), extender(), extender(bind_verb="b")),
            [
                Problem(
                    ("extenders", 2, "bindVerb"),
                    "only one extender can bind, and extenders[0] already does; remove one",
                )
            ],
            id="rejects a second binder",
        ),
        pytest.param(
            (extender(prioritize_verb="p"),),
            [Problem(("extenders", 0, "weight"), "must be at least 1 with prioritizeVerb, not 0")],
            id="rejects scores without a weight",
        ),
        pytest.param(
            (
                extender(managed_resources=(ManagedResource("e.com/r"),)),
                extender(managed_resources=(ManagedResource("e.com/r"),)),
            ),
            [
                Problem(
                    ("extenders", 1, "managedResources", 0, "name"),
                    '"e.com/r" is already managed; name it once',
                )
            ],
            id="rejects a resource managed twice",
        ),
        pytest.param(
            (extender(managed_resources=(ManagedResource("cpu"),)),),
            [
                Problem(
                    ("extenders", 0, "managedResources", 0, "name"),
                    'must be an extended resource such as example.com/gpu, not "cpu"',
                )
            ],
            id="rejects a built-in resource",
        ),
        pytest.param(
            (extender(managed_resources=(ManagedResource("x.kubernetes.io/r"),)),),
            [
                Problem(
                    ("extenders", 0, "managedResources", 0, "name"),
                    'must be an extended resource such as example.com/gpu, not "x.kubernetes.io/r"',
                )
            ],
            id="rejects a resource of Kubernetes' own",
        ),
        pytest.param(
            (extender(url_prefix="not a url", http_timeout_seconds=-5.0),),
            [
                Problem(
                    ("extenders", 0, "urlPrefix"),
                    'must be a URL such as http://extender.example:8888/, not "not a url"',
                ),
                Problem(("extenders", 0, "httpTimeout"), "must be at least 0s, not -5s"),
            ],
            id="rejects what cannot be asked",
        ),
        pytest.param(
            (extender(prioritize_verb="p", weight=1, bind_verb="b"), extender()),
            [],
            id="accepts one that scores and binds",
        ),
    ],
)
def test_extenders(extenders: tuple[Extender, ...], wanted: list[Problem]) -> None:
    assert problems(extenders=extenders) == wanted
