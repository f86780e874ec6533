"""The configurations of earlier NetworkTraffic plugins: what they mean today."""

from typing import Any

import pytest
import yaml
from tests.seed_configurations import (
    ADDRESSES,
    MINUTES_BY_NODENAME,
    QUERIES,
    SECONDS_BY_INSTANCE,
    V1BETA1_BY_KUBERNETES_NODE,
)

from lowtide.app.no_binder import NoBinder
from lowtide.app.registry import make_registry
from lowtide.config.errors import ConfigError
from lowtide.config.load import load_config
from lowtide.framework.args import Spelling
from lowtide.framework.plugin import Binder
from lowtide.framework.registry import Built
from lowtide.plugins.network_traffic_spellings import older_args
from lowtide.readings.request import TrafficRequest, link_queries, pod_queries, traffic_queries

GROUP = "kubescheduler.config.k8s.io"


def build(
    args: dict[str, Any],
    *,
    version: str = "v1",
    enabled: str = "NetworkTraffic",
    configured: str = "NetworkTraffic",
) -> Built:
    text = yaml.safe_dump(
        {
            "apiVersion": f"{GROUP}/{version}",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {
                    "schedulerName": "sample-scheduler",
                    "plugins": {
                        "score": {"enabled": [{"name": enabled}], "disabled": [{"name": "*"}]}
                    },
                    "pluginConfig": [{"name": configured, "args": args}],
                }
            ],
        },
        sort_keys=False,
    )
    loaded = load_config(text, file="f.yaml")
    return make_registry({}).build(loaded, {Binder: NoBinder()})


def request_of(built: Built) -> TrafficRequest:
    (profile,) = built.profiles.values()
    (request,) = profile.readings
    assert isinstance(request, TrafficRequest)
    return request


def measuring(request: TrafficRequest) -> dict[str, str]:
    """What is asked at each poll."""
    return traffic_queries(request, request.window_seconds)


def warnings(built: Built) -> list[str]:
    return list(built.warnings)


SNAKE = {"enabled": "network_traffic"}


@pytest.mark.parametrize(
    ("args", "how", "query", "label", "address"),
    [
        pytest.param(
            {"ip": "prometheus.kube-system:9090", "deviceName": "eth0", "timeRange": 60},
            SNAKE,
            'sum_over_time(node_network_receive_bytes_total{device="eth0"}[1h])',
            "nodename",
            "prometheus.kube-system:9090",
            id="enabled as network_traffic, configured as NetworkTraffic: minutes",
        ),
        pytest.param(
            {"ip": "http://p", "device_name": "eth0", "time_range": 3},
            {**SNAKE, "configured": "network_traffic"},
            'sum_over_time(node_network_receive_bytes_total{device="eth0"}[3m])',
            "nodename",
            "http://p",
            id="in snake case: minutes",
        ),
        pytest.param(
            {"ip": "http://10.181.229.225:30278", "deviceName": "wlan0", "timeRange": 15},
            {},
            'sum_over_time(node_network_receive_bytes_total{device="wlan0"}[15s])',
            "instance",
            "http://10.181.229.225:30278",
            id="ip and deviceName: seconds",
        ),
        pytest.param(
            {"ip": "http://p", "deviceName": "wlan0", "timeRange": "3m"},
            {},
            'sum_over_time(node_network_receive_bytes_total{device="wlan0"}[3m])',
            "instance",
            "http://p",
            id="a time with its unit",
        ),
        pytest.param(
            {
                "prometheusAddress": "http://prometheus-1616380099-server.monitor",
                "networkInterface": "ens192",
                "timeRangeInMinutes": 3,
            },
            {"version": "v1beta1"},
            'sum_over_time(node_network_receive_bytes_total{device="ens192"}[3m])',
            "kubernetes_node",
            "http://prometheus-1616380099-server.monitor",
            id="v1beta1",
        ),
        pytest.param(
            {"prometheusAddress": "http://p"},
            {"version": "v1beta1"},
            'sum_over_time(node_network_receive_bytes_total{device="ens192"}[5m])',
            "kubernetes_node",
            "http://p",
            id="v1beta1 with an address alone: its defaults",
        ),
        pytest.param(
            {"prometheusAddress": "http://p", "networkInterface": ""},
            {},
            'sum_over_time(node_network_receive_bytes_total{device="ens192"}[5m])',
            "kubernetes_node",
            "http://p",
            id="an empty networkInterface",
        ),
        pytest.param(
            {
                "apiVersion": f"{GROUP}/v1beta1",
                "kind": "NetworkTrafficArgs",
                "ip": "http://p",
                "deviceName": "eth0",
                "timeRange": 15,
                "measure": "rate",
            },
            {},
            "max by (node, kubernetes_node, nodename, instance, job, device) "
            '(rate(node_network_receive_bytes_total{device="eth0"}[15s]) '
            'and node_network_receive_bytes_total{device="eth0"})',
            "instance",
            "http://p",
            id="with a header, and a measure of today",
        ),
    ],
)
def test_means_today(
    args: dict[str, Any], how: dict[str, str], query: str, label: str, address: str
) -> None:
    built = build(args, **how)
    request = request_of(built)
    assert (measuring(request), request.match_label, request.access.addresses) == (
        {"receive": query},
        label,
        (address,),
    )
    (weighted,) = built.profiles["sample-scheduler"].scorers
    assert (weighted.plugin.scale, weighted.plugin.logs_readings) == ("lowest_best", True)


@pytest.mark.parametrize(
    ("text", "names_nodes"),
    [
        pytest.param(MINUTES_BY_NODENAME, True, id="reads the first article's configuration"),
        pytest.param(
            V1BETA1_BY_KUBERNETES_NODE,
            False,
            id="reads the second and fourth article's configuration",
        ),
        pytest.param(SECONDS_BY_INSTANCE, False, id="reads the third article's configuration"),
    ],
)
def test_what_is_asked_for_the_configuration_as_it_is_printed_is(
    text: str, names_nodes: bool
) -> None:
    """What a node is called is asked apart; of pods nothing, since values are no rates."""
    built = make_registry({}).build(load_config(text, file="f.yaml"), {Binder: NoBinder()})
    request = request_of(built)
    assert measuring(request) == {"receive": QUERIES[text]}
    assert request.access.addresses == (ADDRESSES[text],)
    assert ("uname" in link_queries(request)) == names_nodes
    assert pod_queries(request, request.window_seconds) == {}
    (profile,) = built.profiles.values()
    assert "NetworkTraffic" not in [plugin.name for plugin in profile.plugins_for_point("filter")]


def test_one_warning_prints_the_spelling_of_today() -> None:
    built = build({"ip": "http://p", "deviceName": "wlan0", "timeRange": 15})
    assert warnings(built) == [
        "f.yaml:13: profiles[0].pluginConfig[0].args: in an older spelling; today it is "
        "{prometheusAddress: http://p, devices: [wlan0], window: 15s, measure: sumOverTime, "
        "scoring: relative, direction: receive, nodeLabel: instance, logReadings: true}"
    ]


def test_what_the_warning_prints_means_the_same_and_warns_no_more() -> None:
    older = build({"ip": "http://p", "deviceName": "wlan0", "timeRange": 15})
    printed = yaml.safe_load(warnings(older)[0].partition("today it is ")[2])
    today = build(printed)
    assert (request_of(today), warnings(today)) == (request_of(older), [])


def test_args_of_today_are_left_alone() -> None:
    built = build({"prometheusAddress": "http://p", "devices": ["eth0"]})
    assert (request_of(built).measure, warnings(built)) == ("rate", [])


def test_a_mistake_is_told_under_the_name_that_was_written() -> None:
    with pytest.raises(ConfigError) as rejection:
        build({"ip": "http://p", "deviceName": "wlan0", "timeRange": "soon"})
    assert rejection.value.problems == (
        "f.yaml:16: profiles[0].pluginConfig[0].args.timeRange: "
        "must be a time such as 30s, 1m or 1h, not 'soon'",
    )


@pytest.mark.parametrize(
    ("args", "told"),
    [
        pytest.param(
            {"ip": "http://u:secret@a", "prometheusAddress": "http://b"},
            "ip: is http://a beside prometheusAddress: http://b, and both say prometheusAddress; "
            "leave one of them out",
            id="rejects two different addresses",
        ),
        pytest.param(
            {"ip": "http://a", "timeRange": 15, "window": "1m"},
            "timeRange: is 15 beside window: 1m, and both say window; leave one of them out",
            id="rejects two different windows",
        ),
        pytest.param(
            {"ip": "http://a", "time_range": 3, "timeRangeInMinutes": 5},
            "timeRangeInMinutes: is 5 beside time_range: 3, and both say window; "
            "leave one of them out",
            id="rejects two different older windows",
        ),
        pytest.param(
            {"ip": "http://a", "deviceName": "eth0", "devices": ["eth1", "eth2"]},
            "deviceName: is eth0 beside devices: [eth1, eth2], and both say devices; "
            "leave one of them out",
            id="rejects two different devices",
        ),
        pytest.param(
            {"ip": "http://a", "prometheus": {"addresses": ["http://b"]}},
            "ip: is http://a, while prometheus.addresses begins with http://b; "
            "leave one of the two out",
            id="addresses for several",
        ),
    ],
)
def test_spellings_that_differ_are_rejected(args: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as rejection:
        build(args)
    (problem,) = rejection.value.problems
    assert problem.partition("pluginConfig[0].args.")[2] == told


@pytest.mark.parametrize(
    "args",
    [
        pytest.param(
            {"ip": "a:9090", "prometheusAddress": "http://a:9090"},
            id="accepts one address in two spellings",
        ),
        pytest.param(
            {"ip": "http://a", "timeRange": 180, "window": "3m"},
            id="accepts one window in two spellings",
        ),
        pytest.param(
            {"ip": "http://a", "time_range": 3, "timeRangeInMinutes": 3},
            id="accepts one window in two older spellings",
        ),
        pytest.param(
            {"ip": "http://a", "deviceName": "eth0", "devices": ["eth0"]},
            id="accepts one device in two spellings",
        ),
        pytest.param(
            {"ip": "http://a", "prometheusAddress": None}, id="accepts an address beside a null one"
        ),
        pytest.param(
            {"ip": None, "prometheusAddress": "http://a"},
            id="accepts an older address that is null",
        ),
        pytest.param(
            {"ip": "http://a", "deviceName": "", "devices": ["eth0"]},
            id="accepts a device beside an empty one",
        ),
    ],
)
def test_spellings_that_mean_the_same_may_say_twice(args: dict[str, Any]) -> None:
    request = request_of(build(args))
    assert len(request.access.addresses) == 1
    assert request.devices in ((), ("eth0",), ("ens192",))
    assert request.window_seconds in (60, 180)


def test_a_query_of_ones_own_is_a_measure() -> None:
    request = request_of(build({"ip": "http://a", "query": "node:traffic"}))
    assert (request.template, request.measure, request.is_relative) == (
        "node:traffic",
        "rate",
        True,
    )


def test_a_password_in_the_address_is_not_repeated() -> None:
    given = {"ip": "http://user:topsecret@prometheus:9090", "deviceName": "eth0"}
    older = older_args(given, Spelling("kubescheduler.config.k8s.io/v1", frozenset()))
    assert older is not None
    assert "topsecret" not in older.warning
    assert older.args["prometheusAddress"] == given["ip"]
