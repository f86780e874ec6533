"""A whole file: what loads, and every kind of mistake with its whole sentence."""

from textwrap import dedent, indent

import pytest
from tests.seed_configurations import MINUTES_BY_NODENAME, SECONDS_BY_INSTANCE

from lowtide.config.errors import ConfigError
from lowtide.config.load import load_config, load_default
from lowtide.config.types import (
    DisabledPlugin,
    EnabledPlugin,
    KubeSchedulerConfiguration,
    LeaderElection,
    PluginConfig,
    Plugins,
    PluginSet,
    Profile,
)

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def problems(text: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        load_config(text, file="f.yaml")
    return caught.value.problems


@pytest.mark.parametrize(
    ("text", "profile", "place_of_args"),
    [
        pytest.param(
            MINUTES_BY_NODENAME,
            Profile(
                scheduler_name="networktraffic-scheduler",
                plugins=Plugins(score=PluginSet(enabled=(EnabledPlugin("network_traffic"),))),
                plugin_config=(
                    PluginConfig(
                        "NetworkTraffic",
                        {
                            "ip": "prometheus.kube-system:9090",
                            "deviceName": "eth0",
                            "timeRange": 60,
                        },
                    ),
                ),
            ),
            'f.yaml:26: data["scheduler-config.yaml"].profiles[0].pluginConfig[0].args',
            id="reads the manifest of networktraffic-scheduler",
        ),
        pytest.param(
            SECONDS_BY_INSTANCE,
            Profile(
                scheduler_name="sample-scheduler",
                plugins=Plugins(
                    score=PluginSet((EnabledPlugin("NetworkTraffic"),), (DisabledPlugin("*"),))
                ),
                plugin_config=(
                    PluginConfig(
                        "NetworkTraffic",
                        {
                            "ip": "http://10.181.229.225:30278",
                            "deviceName": "wlan0",
                            "timeRange": 15,
                        },
                    ),
                ),
            ),
            'f.yaml:22: data["scheduler-config.yaml"].profiles[0].pluginConfig[0].args',
            id="reads the manifest of sample-scheduler",
        ),
    ],
)
def test_the_articles(text: str, profile: Profile, place_of_args: str) -> None:
    loaded = load_config(text, file="f.yaml")
    wanted = KubeSchedulerConfiguration(
        api_version="kubescheduler.config.k8s.io/v1",
        kind="KubeSchedulerConfiguration",
        leader_election=LeaderElection(leader_elect=False, resource_name=profile.scheduler_name),
        enable_contention_profiling=True,
        profiles=(profile,),
    )
    place = loaded.where(("profiles", 0, "pluginConfig", 0, "args"))
    assert (loaded.config, loaded.warnings, place) == (wanted, (), place_of_args)


def test_a_run_without_a_file() -> None:
    loaded = load_default()
    wanted = KubeSchedulerConfiguration(
        api_version="kubescheduler.config.k8s.io/v1",
        kind="KubeSchedulerConfiguration",
        leader_election=LeaderElection(resource_name="lowtide"),
        enable_contention_profiling=True,
        profiles=(Profile(scheduler_name="lowtide"),),
    )
    assert (loaded.config, loaded.warnings) == (wanted, ())


def test_a_caller_words_its_own_problems() -> None:
    loaded = load_config(HEADER + "profiles:\n- schedulerName: a\n", file="f.yaml")
    assert (
        loaded.problem(("profiles", 0, "schedulerName"), "is odd")
        == "f.yaml:4: profiles[0].schedulerName: is odd"
    )
    assert load_default().problem(("profiles",), "is odd") == (
        "built-in configuration:1: profiles: is odd"
    )


def test_warnings_come_along() -> None:
    loaded = load_config(HEADER + "parallelism: 3\n", file="f.yaml")
    assert loaded.warnings == (
        "f.yaml:3: parallelism: has no effect yet: all nodes are evaluated at once",
    )


V1 = "kubescheduler.config.k8s.io/v1"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param(
            "kind: KubeSchedulerConfiguration\n",
            [f"f.yaml:1: apiVersion: is missing; write {V1}"],
            id="rejects a file without apiVersion",
        ),
        pytest.param(
            "profiles: []\n",
            [
                f"f.yaml:1: apiVersion: is missing; write {V1}",
                "f.yaml:1: kind: is missing; write KubeSchedulerConfiguration",
            ],
            id="rejects a file without apiVersion and kind",
        ),
        pytest.param(
            HEADER.replace("/v1", "/v2"),
            [
                f"f.yaml:1: apiVersion: must be {V1}, "
                'not the string "kubescheduler.config.k8s.io/v2"'
            ],
            id="rejects a version it does not know",
        ),
        pytest.param(
            HEADER.replace("KubeSchedulerConfiguration", "NodeAffinityArgs"),
            [
                "f.yaml:2: kind: must be KubeSchedulerConfiguration, "
                'not the string "NodeAffinityArgs"'
            ],
            id="rejects another kind of the same group",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\n",
            [
                'f.yaml:2: kind: is the string "Pod"; expected a KubeSchedulerConfiguration, '
                "or a ConfigMap that holds one"
            ],
            id="rejects another manifest",
        ),
        pytest.param(
            HEADER + "profiles:\n- plugins:\n    scores: {}\n",
            [
                'f.yaml:5: profiles[0].plugins.scores: is not a known field, did you mean "score"? '
                "valid here are preEnqueue, queueSort, preFilter, filter, postFilter, preScore, "
                "score, reserve, permit, preBind, bind, postBind, multiPoint, placementGenerate, "
                "placementScore"
            ],
            id="rejects an unknown extension point",
        ),
        pytest.param(
            HEADER + "leaderElection:\n  leaderElect: true\n  leaderElect: false\n",
            ["f.yaml:4: leaderElection.leaderElect: is given again on line 5; keep one"],
            id="rejects a duplicate field",
        ),
        pytest.param(
            HEADER + "podMaxBackoffSeconds: ten\npodInitialBackoffSeconds: 20\n",
            ['f.yaml:3: podMaxBackoffSeconds: must be an integer, not the string "ten"'],
            id="reports a field once even if its default breaks a plugin",
        ),
        pytest.param(
            HEADER
            + "podInitialBackoffSeconds: 20\nprofiles:\n- schedulerName: on\nparalelism: 2\n",
            [
                "f.yaml:1: podMaxBackoffSeconds: must be at least podInitialBackoffSeconds, "
                "which is 20, not 10",
                "f.yaml:5: profiles[0].schedulerName: must be a string, not the boolean true; "
                "put the value in quotes",
                'f.yaml:6: paralelism: is not a known field, did you mean "parallelism"? '
                "valid here are apiVersion, kind, parallelism, leaderElection, clientConnection, "
                "enableProfiling, enableContentionProfiling, percentageOfNodesToScore, "
                "podInitialBackoffSeconds, podMaxBackoffSeconds, profiles, extenders, "
                "delayCacheUntilActive",
            ],
            id="reports all mistakes in the order of the file",
        ),
        pytest.param(
            "apiVersion: v1\nkind: ConfigMap\ndata:\n  s.yaml: |\n"
            + indent(HEADER + "parallelism: 0\n", "    "),
            ['f.yaml:7: data["s.yaml"].parallelism: must be at least 1, not 0'],
            id="names the key of a ConfigMap",
        ),
    ],
)
def test_mistakes(text: str, wanted: list[str]) -> None:
    assert problems(dedent(text)) == tuple(wanted)


def test_an_older_version_is_read_as_todays_with_one_warning() -> None:
    older = HEADER.replace("/v1", "/v1beta1")
    loaded = load_config(older, file="f.yaml")
    assert loaded.config == load_config(HEADER, file="f.yaml").config
    assert (loaded.warnings, loaded.written_for) == (
        (f"f.yaml:1: apiVersion: kubescheduler.config.k8s.io/v1beta1 is read as {V1}; write that",),
        "kubescheduler.config.k8s.io/v1beta1",
    )
