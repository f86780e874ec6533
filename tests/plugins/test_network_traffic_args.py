"""The args of NetworkTraffic: what they ask for, and what is wrong with them."""

from typing import Any

import msgspec
import pytest

from lowtide.config.decoding import Decoder
from lowtide.plugins.network_traffic import NetworkTraffic
from lowtide.plugins.network_traffic_args import (
    HotNodesArgs,
    LinkCapacityArgs,
    NetworkTrafficArgs,
    NotFreshArgs,
)
from lowtide.readings.access import BasicAuthArgs, PrometheusAccess, PrometheusArgs
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
    plugin = NetworkTraffic(args)
    assert plugin.request == TrafficRequest(
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
    assert plugin.readings == (plugin.request,)
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
        pytest.param("80M", 10e6, 0.0, id="reads a bandwidth"),
        pytest.param("7%", 0.0, 0.07, id="reads a share of a link"),
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


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("1m", 60), ("2h", 7200), ("1m30s", 90), ("1.5m", 90), ("1500ms", 2)],
)
def test_a_window(text: str, seconds: int) -> None:
    args = NetworkTrafficArgs(window=text)
    assert (list(args.problems()), args.request().window_seconds) == ([], seconds)


def test_a_poll_interval_may_be_any_duration() -> None:
    assert NetworkTrafficArgs(poll_interval="1m2.5s").request().every_seconds == 62.5


@pytest.mark.parametrize("text", ["", "5", "1d", "1m ", "soon", "1٣s", "9" * 400 + "h"])
def test_a_time_is_rejected(text: str) -> None:
    told = f"must be a time such as 30s, 1m or 1h, not {text!r}"
    assert list(NetworkTrafficArgs(window=text).problems()) == [("window", told)]
    assert list(NetworkTrafficArgs(poll_interval=text).problems()) == [("pollInterval", told)]


@pytest.mark.parametrize("text", ["0s", "0", "-1m", "999ms"])
def test_a_time_is_too_short(text: str) -> None:
    told = f"must be at least 1s, not {text}"
    assert list(NetworkTrafficArgs(window=text).problems()) == [("window", told)]
    assert list(NetworkTrafficArgs(poll_interval=text).problems()) == [("pollInterval", told)]


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        pytest.param(
            {"window": "8761h"}, ("window", "must be at most 8760h, not 8761h"), id="a window"
        ),
        pytest.param(
            {"poll_interval": "25h"},
            ("pollInterval", "must be at most 24h, not 25h"),
            id="a poll interval",
        ),
    ],
)
def test_a_time_is_too_long(args: dict[str, Any], problem: tuple[str, str]) -> None:
    assert list(NetworkTrafficArgs(**args).problems()) == [problem]


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
            (
                "scoring",
                "must be relative with measure: sumOverTime, which is no rate and which older "
                "spellings imply; for utilization write measure: rate",
            ),
            id="utilization by a measure that is no rate",
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
            id="pod traffic that is no bandwidth",
        ),
        pytest.param(
            {"link_capacities": [LinkCapacityArgs({"type": "large"}, "0")]},
            ("linkCapacities", "must have a capacity in bits/s such as 10G, not '0'"),
            id="a link capacity of 0",
        ),
        pytest.param(
            {"link_capacities": [LinkCapacityArgs({"type": "large"}, "1000")]},
            (
                "linkCapacities",
                "must have a capacity of at least 1M, in bits/s, not '1000'; "
                "ten gigabits are written 10G",
            ),
            id="a link capacity without a unit",
        ),
        pytest.param(
            {"pod_traffic": "500%"},
            ("podTraffic", "must be at most 100% of the median link, not '500%'"),
            id="pod traffic above 100% of a link",
        ),
        pytest.param(
            {"pod_traffic": "5"},
            (
                "podTraffic",
                "must be at least 1k, in bits/s, not '5'; a share of the median link is written "
                "5%, and megabits 250M",
            ),
            id="pod traffic without a unit",
        ),
        pytest.param(
            {"devices": ["eth0", ""]},
            (
                "devices",
                "must have names or regular expressions such as eth0 or en.*, and one is empty; "
                "leave devices out for all but virtual ones",
            ),
            id="a device without a name",
        ),
        pytest.param(
            {"devices": ["eth0 "]},
            ("devices", "must have names without spaces, one for each device, not 'eth0 '"),
            id="a device with a space",
        ),
        pytest.param(
            {"devices": ["eth0,eth1"]},
            (
                "devices",
                "must have one entry for each device, such as [eth0, eth1], not 'eth0,eth1'",
            ),
            id="two devices in one entry",
        ),
        pytest.param(
            {"devices": ["(?!lo).*"]},
            (
                "devices",
                "'(?!lo).*' looks ahead, behind or back, which Prometheus's expressions (RE2) "
                "cannot; name the devices that count",
            ),
            id="a regular expression that Prometheus does not support",
        ),
        pytest.param(
            {"query": " "},
            ("query", "must be PromQL that gives one value per node, or be left out, not ' '"),
            id="an empty query",
        ),
        pytest.param(
            {"query": "rate(x{$device}[$window])"},
            ("query", "may have $devices and $window, not $device, which nothing stands for"),
            id="an unknown placeholder",
        ),
        pytest.param(
            {"query": 'sum(x{device="${devices}"})'},
            ("query", "may have $devices and $window, not ${devices}, which nothing stands for"),
            id="an unknown placeholder in braces",
        ),
        pytest.param(
            {"query": "sum(rate(x{$devices}[1m])"},
            ("query", "must close what it opens: '(' is not closed in 'sum(rate(x{$devices}[1m])'"),
            id="a parenthesis that is not closed",
        ),
        pytest.param(
            {"query": "sum(x))"},
            ("query", "must open what it closes: nothing opens ')' in 'sum(x))'"),
            id="a parenthesis that is not opened",
        ),
        pytest.param(
            {"query": "sum(x[1m)]"},
            ("query", "must close what it opens: '[' is not closed in 'sum(x[1m)]'"),
            id="brackets that cross",
        ),
        pytest.param(
            {"query": "x{a='b}"},
            ("query", 'must close what it opens: "\'" is not closed in "x{a=\'b}"'),
            id="a quote that is not closed",
        ),
        pytest.param(
            {"query": "x", "direction": "receive"},
            ("direction", "must be left out with a query of your own, not receive"),
            id="a direction beside a query",
        ),
        pytest.param(
            {
                "prometheus_address": "http://a",
                "prometheus": PrometheusArgs(addresses=["http://b", "http://a"]),
            },
            (
                "prometheusAddress",
                "is http://a, while prometheus.addresses begins with http://b; "
                "leave one of the two out",
            ),
            id="two different addresses of Prometheus",
        ),
        pytest.param(
            {"prometheus": PrometheusArgs(basic_auth=BasicAuthArgs(username="tide"))},
            ("prometheus", "basicAuth must have a passwordFile beside its username"),
            id="a user without a password",
        ),
        pytest.param(
            {"link_capacities": [LinkCapacityArgs({}, "10G")]},
            ("linkCapacities", "must have matchLabels that say which nodes it is for"),
            id="a link capacity without matchLabels",
        ),
        pytest.param(
            {"hot_nodes": HotNodesArgs(soft_percent=95, hard_percent=90)},
            ("hotNodes", "softPercent must not be above hardPercent (90), not 95"),
            id="a soft threshold above the hard one",
        ),
        pytest.param(
            {"hot_nodes": HotNodesArgs(soft_percent=5, hard_percent=8, cooling_percent=10)},
            ("hotNodes", "coolingPercent must be below hardPercent (8), not 10"),
            id="a node that can never cool",
        ),
        pytest.param(
            {"hot_nodes": HotNodesArgs(soft_percent=5, hard_percent=10, cooling_percent=10)},
            ("hotNodes", "coolingPercent must be below hardPercent (10), not 10"),
            id="a node that would have to be idle to cool",
        ),
        pytest.param(
            {"hot_nodes": HotNodesArgs(patience_seconds=-1)},
            ("hotNodes", "patience must not be negative, not -1s"),
            id="a negative patience",
        ),
    ],
)
def test_what_is_rejected_is(args: dict[str, Any], problem: tuple[str, str]) -> None:
    assert list(NetworkTrafficArgs(**args).problems()) == [problem]


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(
            "sum by (node) (rate(x{$devices}[$window]))", id="accepts its own placeholders"
        ),
        pytest.param('x{a="(", b=\'[\', c=`{`, d="\\"("} # )', id="accepts brackets in strings"),
        pytest.param('label_replace(x, "a", "$1", "b", "(.*)")', id="accepts a group by number"),
        pytest.param(
            'label_replace(x, "a", "$h", "b", "(?P<h>.*):.*")', id="accepts a group by name"
        ),
        pytest.param('x{device=~"eth.$"}', id="accepts a dollar at the end of an expression"),
    ],
)
def test_a_query_may_have(query: str) -> None:
    assert list(NetworkTrafficArgs(query=query).problems()) == []


@pytest.mark.parametrize(
    ("args", "addresses"),
    [
        pytest.param(
            {"addresses": ["p:9090", "http://q"]},
            ("http://p:9090", "http://q"),
            id="the first of several",
        ),
        pytest.param({}, ("http://p:9090",), id="the only one"),
    ],
)
def test_the_address_may_be(args: dict[str, Any], addresses: tuple[str, ...]) -> None:
    given = NetworkTrafficArgs(
        prometheus_address="http://p:9090", prometheus=PrometheusArgs(**args)
    )
    assert (list(given.problems()), given.request().access.addresses) == ([], addresses)


@pytest.mark.parametrize(
    ("given", "problems"),
    [
        pytest.param(
            {
                "linkCapacities": [{"matchLabels": {"a": "b"}, "capacity": 10_000_000_000}],
                "podTraffic": 250_000_000,
            },
            [],
            id="reads numbers as bits per second",
        ),
        pytest.param(
            {"window": 90},
            [("window", "must be a time such as 30s, 1m or 1h, not '90'")],
            id="rejects a time without a unit, and does not ask for quotes",
        ),
        pytest.param(
            {"query": ""},
            [("query", "must be PromQL that gives one value per node, or be left out, not ''")],
            id="rejects an empty query",
        ),
        pytest.param({"query": None}, [], id="reads a null query as no query"),
    ],
)
def test_the_decoder(given: dict[str, Any], problems: list[tuple[str, str]]) -> None:
    decoder = Decoder()
    args = decoder.decode(NetworkTrafficArgs, given)
    assert (decoder.problems, list(args.problems())) == ([], problems)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"scoring": "loud"}, id="an unknown scoring"),
        pytest.param({"notFresh": {"stale": "ignore"}}, id="an unknown policy"),
        pytest.param({"notFresh": {"brakePercent": 101}}, id="a percentage above 100"),
        pytest.param({"hotNodes": {"softPercent": -1}}, id="a negative percentage"),
        pytest.param({"hotNodes": {"hard": 90}}, id="an unknown field"),
    ],
)
def test_what_cannot_be_decoded_is(given: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(given, NetworkTrafficArgs)


@pytest.mark.timeout(60)  # where time grows with the square of the length, it takes hours
@pytest.mark.parametrize(
    ("query", "problem"),
    [
        pytest.param('"' + '\\"' * 1_000_000, "must close what it opens", id="escaped quotes"),
        pytest.param(
            "x"
            + "".join(f"${{a{number}}}" for number in range(200_000))
            + "".join(f"(?P<a{number}>)" for number in range(200_000)),
            "",
            id="groups that stand for names",
        ),
    ],
)
def test_a_long_query_is_checked_at_once(query: str, problem: str) -> None:
    texts = [text for _, text in NetworkTrafficArgs(query=query).problems()]
    assert [text[: len(problem)] for text in texts] == [problem] * bool(problem)
