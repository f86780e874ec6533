"""Plain data into Structs, with every mistake reported."""

from typing import Any

import msgspec
import pytest

from lowtide.config.decoding import Decoder
from lowtide.config.errors import Problem
from lowtide.config.types import (
    Amount,
    ClientConnection,
    DisabledPlugin,
    EnabledPlugin,
    Extender,
    ExtenderTls,
    KubeSchedulerConfiguration,
    LeaderElection,
    ManagedResource,
    PluginConfig,
    Plugins,
    PluginSet,
    Profile,
)

HEADER = {"apiVersion": "v", "kind": "k"}


def decode(data: dict[str, Any]) -> tuple[KubeSchedulerConfiguration, list[Problem]]:
    decoder = Decoder()
    return decoder.decode(KubeSchedulerConfiguration, HEADER | data), decoder.problems


def test_every_field_is_decoded() -> None:
    set_data = {"enabled": [{"name": "A", "weight": 3}], "disabled": [{"name": "*"}]}
    points = [
        "preEnqueue",
        "queueSort",
        "preFilter",
        "filter",
        "postFilter",
        "preScore",
        "score",
        "reserve",
        "permit",
        "preBind",
        "bind",
        "postBind",
        "multiPoint",
        "placementGenerate",
        "placementScore",
    ]
    data = {
        "parallelism": 4,
        "leaderElection": {
            "leaderElect": False,
            "leaseDuration": "1m",
            "renewDeadline": "20s",
            "retryPeriod": "500ms",
            "resourceLock": "leases",
            "resourceName": "name",
            "resourceNamespace": "space",
        },
        "clientConnection": {
            "kubeconfig": "/k",
            "acceptContentTypes": "a",
            "contentType": "c",
            "qps": 7,
            "burst": 9,
        },
        "enableProfiling": False,
        "enableContentionProfiling": True,
        "percentageOfNodesToScore": 50,
        "podInitialBackoffSeconds": 2,
        "podMaxBackoffSeconds": 20,
        "profiles": [
            {
                "schedulerName": "s",
                "percentageOfNodesToScore": 60,
                "plugins": dict.fromkeys(points, set_data),
                "pluginConfig": [{"name": "A", "args": {"x": [1, {"y": None}]}}, {"name": "B"}],
            }
        ],
        "extenders": [
            {
                "urlPrefix": "http://e",
                "filterVerb": "f",
                "preemptVerb": "p",
                "prioritizeVerb": "s",
                "weight": 5,
                "bindVerb": "b",
                "enableHTTPS": True,
                "tlsConfig": {
                    "insecure": True,
                    "serverName": "n",
                    "certFile": "1",
                    "keyFile": "2",
                    "caFile": "3",
                    "certData": "YQ==",
                    "keyData": "Yg==",
                    "caData": "Yw==",
                },
                "httpTimeout": "3s",
                "nodeCacheCapable": True,
                "managedResources": [{"name": "e.com/r", "ignoredByScheduler": True}],
                "ignorable": True,
            }
        ],
        "delayCacheUntilActive": True,
    }
    plugin_set = PluginSet((EnabledPlugin("A", 3),), (DisabledPlugin("*"),))
    wanted = KubeSchedulerConfiguration(
        api_version="v",
        kind="k",
        parallelism=4,
        leader_election=LeaderElection(
            leader_elect=False,
            lease_duration_seconds=60.0,
            renew_deadline_seconds=20.0,
            retry_period_seconds=0.5,
            resource_lock="leases",
            resource_name="name",
            resource_namespace="space",
        ),
        client_connection=ClientConnection(
            kubeconfig="/k", accept_content_types="a", content_type="c", qps=7.0, burst=9
        ),
        enable_profiling=False,
        enable_contention_profiling=True,
        percentage_of_nodes_to_score=50,
        pod_initial_backoff_seconds=2,
        pod_max_backoff_seconds=20,
        profiles=(
            Profile(
                scheduler_name="s",
                percentage_of_nodes_to_score=60,
                plugins=Plugins(*[plugin_set] * 15),
                plugin_config=(PluginConfig("A", {"x": [1, {"y": None}]}), PluginConfig("B")),
            ),
        ),
        extenders=(
            Extender(
                url_prefix="http://e",
                filter_verb="f",
                preempt_verb="p",
                prioritize_verb="s",
                weight=5,
                bind_verb="b",
                enable_https=True,
                tls_config=ExtenderTls(
                    insecure=True,
                    server_name="n",
                    cert_file="1",
                    key_file="2",
                    ca_file="3",
                    cert_data=b"a",
                    key_data=b"b",
                    ca_data=b"c",
                ),
                http_timeout_seconds=3.0,
                node_cache_capable=True,
                managed_resources=(ManagedResource("e.com/r", ignored_by_scheduler=True),),
                ignorable=True,
            ),
        ),
        delay_cache_until_active=True,
    )
    assert decode(data) == (wanted, [])


def test_null_counts_as_not_given() -> None:
    data = {"parallelism": None, "profiles": None, "leaderElection": {"leaseDuration": None}}
    assert decode(data) == (KubeSchedulerConfiguration(api_version="v", kind="k"), [])


def test_a_bare_zero_is_a_duration() -> None:
    config, problems = decode({"leaderElection": {"leaseDuration": 0}})
    assert (config.leader_election.lease_duration_seconds, problems) == (0.0, [])


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(
            {"profile": []},
            Problem(
                ("profile",),
                'is not a known field, did you mean "profiles"? valid here are apiVersion, kind, '
                "parallelism, leaderElection, clientConnection, enableProfiling, "
                "enableContentionProfiling, percentageOfNodesToScore, podInitialBackoffSeconds, "
                "podMaxBackoffSeconds, profiles, extenders, delayCacheUntilActive",
            ),
            id="rejects an unknown field and offers a near one",
        ),
        pytest.param(
            {"profiles": [{"plugins": {"score": {"enabled": [{"name": "A", "zebra": 1}]}}}]},
            Problem(
                ("profiles", 0, "plugins", "score", "enabled", 0, "zebra"),
                "is not a known field; valid here are name, weight",
            ),
            id="rejects an unknown field deep inside",
        ),
        pytest.param(
            {"leaderElection": {"LeaderElect": True}},
            Problem(
                ("leaderElection", "LeaderElect"),
                'is not a known field, did you mean "leaderElect"? valid here are leaderElect, '
                "leaseDuration, renewDeadline, retryPeriod, resourceLock, resourceName, "
                "resourceNamespace",
            ),
            id="minds capitals",
        ),
        pytest.param(
            {"parallelism": "many"},
            Problem(("parallelism",), 'must be an integer, not the string "many"'),
            id="rejects a string for an integer",
        ),
        pytest.param(
            {"parallelism": True},
            Problem(("parallelism",), "must be an integer, not the boolean true"),
            id="rejects a boolean for an integer",
        ),
        pytest.param(
            {"parallelism": 0},
            Problem(("parallelism",), "must be at least 1, not 0"),
            id="rejects no parallelism",
        ),
        pytest.param(
            {"percentageOfNodesToScore": 101},
            Problem(("percentageOfNodesToScore",), "must be at most 100, not 101"),
            id="rejects more than 100 percent",
        ),
        pytest.param(
            {"profiles": [{"percentageOfNodesToScore": -1}]},
            Problem(("profiles", 0, "percentageOfNodesToScore"), "must be at least 0, not -1"),
            id="rejects less than 0 percent in a profile",
        ),
        pytest.param(
            {"podInitialBackoffSeconds": 0},
            Problem(("podInitialBackoffSeconds",), "must be at least 1, not 0"),
            id="rejects no first back-off",
        ),
        pytest.param(
            {"clientConnection": {"burst": -1}},
            Problem(("clientConnection", "burst"), "must be at least 0, not -1"),
            id="rejects a negative burst",
        ),
        pytest.param(
            {"clientConnection": {"qps": "fast"}},
            Problem(("clientConnection", "qps"), 'must be a number, not the string "fast"'),
            id="rejects a string for a number",
        ),
        pytest.param(
            {"profiles": [{"plugins": {"bind": {"enabled": [{"name": "A", "weight": 2**31}]}}}]},
            Problem(
                ("profiles", 0, "plugins", "bind", "enabled", 0, "weight"),
                "must be at most 2147483647, not 2147483648",
            ),
            id="rejects a weight of more than 32 bits",
        ),
        pytest.param(
            {"enableProfiling": "yes"},
            Problem(("enableProfiling",), 'must be true or false, not the string "yes"'),
            id="rejects a string for a boolean",
        ),
        pytest.param(
            {"profiles": [{"schedulerName": True}]},
            Problem(
                ("profiles", 0, "schedulerName"),
                "must be a string, not the boolean true; put the value in quotes",
            ),
            id="rejects a boolean for a string",
        ),
        pytest.param(
            {"profiles": [{"schedulerName": ["a"]}]},
            Problem(("profiles", 0, "schedulerName"), "must be a string, not a list"),
            id="rejects a list for a string",
        ),
        pytest.param(
            {"profiles": [{"schedulerName": ""}]},
            Problem(("profiles", 0, "schedulerName"), "must not be empty"),
            id="rejects an empty name",
        ),
        pytest.param(
            {"profiles": {"schedulerName": "a"}},
            Problem(("profiles",), "must be a list, not a mapping"),
            id="rejects a mapping for a list",
        ),
        pytest.param(
            {"profiles": [None]},
            Problem(("profiles", 0), "must be a mapping, not null"),
            id="rejects null in a list",
        ),
        pytest.param(
            {"profiles": [{"pluginConfig": [{"name": "A", "args": [1]}]}]},
            Problem(("profiles", 0, "pluginConfig", 0, "args"), "must be a mapping, not a list"),
            id="rejects args that are no mapping",
        ),
        pytest.param(
            {"profiles": [{"pluginConfig": [{"args": {}}]}]},
            Problem(("profiles", 0, "pluginConfig", 0, "name"), "is missing"),
            id="rejects args without a name",
        ),
        pytest.param(
            {"leaderElection": {"leaseDuration": 15}},
            Problem(
                ("leaderElection", "leaseDuration"),
                "must be a duration such as 15s or 1m30s, not the integer 15",
            ),
            id="rejects a duration without a unit",
        ),
        pytest.param(
            {"leaderElection": {"leaseDuration": "15 s"}},
            Problem(
                ("leaderElection", "leaseDuration"),
                'must be a duration such as 15s or 1m30s, not the string "15 s"',
            ),
            id="rejects a misspelt duration",
        ),
        pytest.param(
            {"extenders": [{"urlPrefix": "u", "tlsConfig": {"keyData": "secret!"}}]},
            Problem(("extenders", 0, "tlsConfig", "keyData"), "must be valid base64"),
            id="rejects what is not base64 without repeating it",
        ),
        pytest.param(
            {"extenders": [{"urlPrefix": "u", "tlsConfig": {"caData": "é"}}]},
            Problem(("extenders", 0, "tlsConfig", "caData"), "must be valid base64"),
            id="rejects letters that base64 does not have",
        ),
        pytest.param(
            {"extenders": [{"filterVerb": "f"}]},
            Problem(("extenders", 0, "urlPrefix"), "is missing"),
            id="rejects an extender without a url",
        ),
    ],
)
def test_one_mistake(data: dict[str, Any], problem: Problem) -> None:
    assert decode(data)[1] == [problem]


def test_all_mistakes_are_reported() -> None:
    data = {"parallelism": "x", "profiles": [None, {"schedulerName": 1}], "kind": None}
    assert [problem.path for problem in decode(data)[1]] == [
        ("parallelism",),
        ("profiles", 0),
        ("profiles", 1, "schedulerName"),
        ("kind",),
    ]


class Mappings(msgspec.Struct):
    texts: dict[str, str] = {}
    sizes: dict[str, ManagedResource] = {}
    anything: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("data", "want", "problems"),
    [
        pytest.param(
            {"texts": {"a": "b", "c": None}, "sizes": {"x": {"name": "n"}}, "anything": {"y": 1}},
            Mappings({"a": "b"}, {"x": ManagedResource("n")}, {"y": 1}),
            [],
            id="reads the values of a mapping by their type",
        ),
        pytest.param(
            {"texts": {"X-Key": 12345}},
            Mappings(),
            [Problem(("texts", "X-Key"), "must be a string; put the value in quotes")],
            id="does not repeat a value of a mapping, which may be a secret",
        ),
        pytest.param(
            {"sizes": {"x": {"nam": "n", "name": "n"}}},
            Mappings(sizes={"x": ManagedResource("n")}),
            [
                Problem(
                    ("sizes", "x", "nam"),
                    'is not a known field, did you mean "name"? '
                    "valid here are name, ignoredByScheduler",
                )
            ],
            id="finds a mistake inside a mapping",
        ),
        pytest.param(
            {"texts": ["a"]},
            Mappings(),
            [Problem(("texts",), "must be a mapping, not a list")],
            id="rejects a list for a mapping",
        ),
    ],
)
def test_mappings(data: dict[str, Any], want: Mappings, problems: list[Problem]) -> None:
    decoder = Decoder()
    assert (decoder.decode(Mappings, data), decoder.problems) == (want, problems)


def test_a_type_that_is_not_known_here_is_left_to_msgspec() -> None:
    class Either(msgspec.Struct):
        values: dict[str, int | str] = {}

    decoder = Decoder()
    found = decoder.decode(Either, {"values": {"a": 1, "b": "c"}})
    assert (found, decoder.problems) == (Either({"a": 1, "b": "c"}), [])


class Amounts(msgspec.Struct):
    of: Amount = "1"
    names: list[str] = []


@pytest.mark.parametrize(
    ("data", "want", "problems"),
    [
        pytest.param({"of": "10G"}, Amounts("10G"), [], id="a string"),
        pytest.param({"of": 10}, Amounts("10"), [], id="a number without quotes"),
        pytest.param({"of": 0.5}, Amounts("0.5"), [], id="a fraction without quotes"),
        pytest.param({"of": None}, Amounts("1"), [], id="nothing"),
        pytest.param(
            {"of": True},
            Amounts(""),
            [Problem(("of",), "must be a string or a number, not the boolean true")],
            id="rejects a boolean",
        ),
        pytest.param(
            {"names": [None]},
            Amounts(names=[""]),
            [Problem(("names", 0), "must be a string, not null")],
            id="does not ask for quotes around null",
        ),
    ],
)
def test_amounts(data: dict[str, Any], want: Amounts, problems: list[Problem]) -> None:
    decoder = Decoder()
    assert (decoder.decode(Amounts, data), decoder.problems) == (want, problems)
