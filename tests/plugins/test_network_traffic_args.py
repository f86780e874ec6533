"""The args of NetworkTraffic: what they ask for, and what is wrong with them."""

from typing import Any

import msgspec
import pytest

from lowtide.plugins.network_traffic import NetworkTraffic
from lowtide.plugins.network_traffic_args import (
    HotNodesArgs,
    LinkCapacityArgs,
    NetworkTrafficArgs,
    NotFreshArgs,
)
from lowtide.readings.access import PrometheusAccess
from lowtide.readings.request import LinkCapacity, TrafficRequest


def test_the_request_follows_from_the_args() -> None:
    args = NetworkTrafficArgs(
        prometheus_address="http://prometheus:9090",
        devices=["eth0", "bond.*"],
        window="5m",
        poll_interval="30s",
        measure="increase",
        direction="receive",
        node_label="nodename",
        link_capacities=[LinkCapacityArgs({"type": "large", "rack": "1"}, "10G")],
        pod_traffic="80M",
        learn_pod_traffic=False,
        not_fresh=NotFreshArgs(brake_percent=30),
        hot_nodes=HotNodesArgs(hard_percent=80, cooling_percent=5),
    )
    rule = NetworkTraffic(args)
    assert rule.request == TrafficRequest(
        access=PrometheusAccess(addresses=("http://prometheus:9090",)),
        devices=("eth0", "bond.*"),
        window_seconds=300,
        measure="increase",
        direction="receive",
        match_label="nodename",
        every_seconds=30,
        stale_after_seconds=120,  # four polls, at least 60 seconds
        capacities=(
            LinkCapacity(labels=(("rack", "1"), ("type", "large")), bytes_per_second=1.25e9),
        ),
        pod_bytes_per_second=10e6,
        pod_share=0.0,
        learns_from_pods=False,
        brake_share=0.3,
        hot_share=0.8,
        cooling_share=0.05,
    )
    assert rule.readings == (rule.request,)
    assert list(args.problems()) == []


def test_the_defaults_have_no_problem() -> None:
    args = NetworkTrafficArgs()
    assert list(args.problems()) == []
    assert (args.measure, args.direction, args.scoring, args.node_label) == (
        "rate",
        "max",
        "utilization",
        "auto",
    )


@pytest.mark.parametrize(
    ("pod_traffic", "bytes_per_second", "link_share"),
    [
        pytest.param("80M", 10e6, 0.0, id="a bandwidth"),
        pytest.param("7%", 0.0, 0.07, id="a share of a link"),
    ],
)
def test_a_pod_is_taken_for(pod_traffic: str, bytes_per_second: float, link_share: float) -> None:
    request = NetworkTrafficArgs(pod_traffic=pod_traffic).request()
    assert (request.pod_bytes_per_second, request.pod_share) == (bytes_per_second, link_share)


def test_the_args_in_yaml() -> None:
    given = {
        "prometheusAddress": "http://p",
        "query": "node:traffic",
        "linkCapacities": [{"matchLabels": {"type": "large"}, "capacity": "10G"}],
        "podTraffic": "250M",
        "learnPodTraffic": False,
        "notFresh": {"stale": "avoid", "missing": "reject", "brakePercent": 40},
        "hotNodes": {
            "softPercent": 60,
            "hardPercent": 80,
            "coolingPercent": 15,
            "patience": 120,
        },
    }
    args = msgspec.convert(given, NetworkTrafficArgs)
    assert args.not_fresh == NotFreshArgs("avoid", "reject", "neutral", 40)
    assert (args.hot_nodes.soft_percent, args.hot_nodes.cooling_percent) == (60, 15)
    assert (args.query, args.request().template) == ("node:traffic", "node:traffic")


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("1m", 60), ("2h", 7200)])
def test_a_window(text: str, seconds: int) -> None:
    assert NetworkTrafficArgs(window=text).request().window_seconds == seconds


@pytest.mark.parametrize("text", ["", "5", "0s", "1.5m", "-1m", "1d", "1m ", "soon", "1٣s"])
def test_a_window_is_refused(text: str) -> None:
    told = f"must be a time such as 30s, 1m or 1h, not {text!r}"
    assert list(NetworkTrafficArgs(window=text).problems()) == [("window", told)]
    assert list(NetworkTrafficArgs(poll_interval=text).problems()) == [("pollInterval", told)]


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        pytest.param(
            {"devices": ["eth0", "eth("]},
            (
                "devices",
                "'eth(' is not a regular expression: "
                "missing ), unterminated subpattern at position 3",
            ),
            id="a device that is no regular expression",
        ),
        pytest.param(
            {"measure": "sumOverTime"},
            ("scoring", "must be relative with measure: sumOverTime, which is no rate"),
            id="the use of links by what is no rate",
        ),
        pytest.param(
            {"query": "x", "measure": "increase"},
            ("measure", "must be left out with a query of your own, not increase"),
            id="a measure beside a query",
        ),
        pytest.param(
            {"pod_traffic": "much"},
            (
                "podTraffic",
                "must be a bandwidth in bits/s such as 250M, or a share of the median link such "
                "as 5%, not 'much'",
            ),
            id="a pod's traffic that is no bandwidth",
        ),
        pytest.param(
            {"link_capacities": [LinkCapacityArgs({"type": "large"}, "0")]},
            ("linkCapacities", "must have a capacity in bits/s such as 10G, not '0'"),
            id="a link that carries nothing",
        ),
        pytest.param(
            {"link_capacities": [LinkCapacityArgs({}, "10G")]},
            ("linkCapacities", "must have matchLabels that say which nodes it is for"),
            id="a link of no node",
        ),
        pytest.param(
            {"hot_nodes": HotNodesArgs(soft_percent=95, hard_percent=90)},
            ("hotNodes", "softPercent must not be above hardPercent (90), not 95"),
            id="a soft threshold above the hard one",
        ),
        pytest.param(
            {"hot_nodes": HotNodesArgs(soft_percent=5, hard_percent=8, cooling_percent=10)},
            ("hotNodes", "coolingPercent must not be above hardPercent (8), not 10"),
            id="a node that can never cool",
        ),
        pytest.param(
            {"hot_nodes": HotNodesArgs(patience_seconds=-1)},
            ("hotNodes", "patience must not be negative, not -1s"),
            id="patience that ends before it begins",
        ),
    ],
)
def test_what_is_refused_is(args: dict[str, Any], problem: tuple[str, str]) -> None:
    assert list(NetworkTrafficArgs(**args).problems()) == [problem]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"scoring": "loud"}, id="an unknown scoring"),
        pytest.param({"notFresh": {"stale": "ignore"}}, id="an unknown policy"),
        pytest.param({"notFresh": {"brakePercent": 101}}, id="more than all nodes"),
        pytest.param({"hotNodes": {"softPercent": -1}}, id="less than nothing"),
        pytest.param({"hotNodes": {"hard": 90}}, id="an unknown field"),
    ],
)
def test_what_cannot_be_decoded_is(given: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(given, NetworkTrafficArgs)
