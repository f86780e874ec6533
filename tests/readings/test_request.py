"""The queries that a TrafficRequest becomes."""

import re
from typing import Any

import pytest
from tests.readings.conftest import make_request

from lowtide.readings.request import (
    VIRTUAL_DEVICES,
    TrafficRequest,
    directions,
    link_queries,
    pod_queries,
    sample_query,
    traffic_queries,
)

VIRTUAL = "|".join(VIRTUAL_DEVICES)
ETH0 = {"devices": ("eth0",)}
BY_DEVICE = "max by (node, kubernetes_node, nodename, instance, job, device)"


def thinned(function: str, direction: str, window: str) -> str:
    """The rate of the devices whose counters are there now, with the labels that count."""
    counter = f'node_network_{direction}_bytes_total{{device="eth0"}}'
    return f"{BY_DEVICE} ({function}({counter}[{window}]) and {counter})"


def asked_at_each_poll(request: TrafficRequest) -> dict[str, str]:
    return traffic_queries(request, request.window_seconds)


@pytest.mark.parametrize(
    ("device", "window_seconds", "want"),
    [
        pytest.param(
            "wlan0",
            15,
            'sum_over_time(node_network_receive_bytes_total{device="wlan0"}[15s])',
            id="sends the seeds' query for wlan0 over 15 seconds",
        ),
        pytest.param(
            "ens192",
            180,
            'sum_over_time(node_network_receive_bytes_total{device="ens192"}[3m])',
            id="sends the seeds' query for ens192 over 3 minutes",
        ),
        pytest.param(
            "ens192",
            300,
            'sum_over_time(node_network_receive_bytes_total{device="ens192"}[5m])',
            id="sends the seeds' query for its default of 5 minutes",
        ),
    ],
)
def test_seeds_queries(device: str, window_seconds: int, want: str) -> None:
    request = make_request(devices=(device,), window_seconds=window_seconds, measure="sumOverTime")
    assert asked_at_each_poll(request) == {"receive": want}


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param(
            {},
            {"receive": thinned("rate", "receive", "1m")},
            id="asks for one direction where one is wanted",
        ),
        pytest.param(
            {"direction": "transmit", "window_seconds": 7200},
            {"transmit": thinned("rate", "transmit", "2h")},
            id="asks for the other where that is wanted",
        ),
        pytest.param(
            {"direction": "max", "measure": "increase", "window_seconds": 90},
            {
                "receive": thinned("increase", "receive", "90s"),
                "transmit": thinned("increase", "transmit", "90s"),
            },
            id="asks for both directions for the larger of them",
        ),
        pytest.param(
            {"direction": "sum"},
            {
                "receive": thinned("rate", "receive", "1m"),
                "transmit": thinned("rate", "transmit", "1m"),
            },
            id="asks for both directions for their sum",
        ),
        pytest.param(
            {"template": "max by (instance) (rate(x{$devices}[$window])) / $window"},
            {"value": 'max by (instance) (rate(x{device="eth0"}[1m])) / 1m'},
            id="fills devices and window into the user's own query",
        ),
        pytest.param(
            {"template": "node:traffic"},
            {"value": "node:traffic"},
            id="leaves alone what the user's own query does not name",
        ),
    ],
)
def test_what_is_asked_at_each_poll(fields: dict[str, Any], want: dict[str, str]) -> None:
    request = make_request(**ETH0, **fields)
    assert asked_at_each_poll(request) == want
    assert directions(request) == tuple(want)


def test_the_window_may_be_wider_than_requested() -> None:
    assert traffic_queries(make_request(**ETH0), 240) == {
        "receive": thinned("rate", "receive", "4m")
    }


LINKS = {
    "speed": f'{BY_DEVICE} (node_network_speed_bytes{{device="eth0"}})',
    "flags": f'{BY_DEVICE} (node_network_flags{{device="eth0"}})',
    "parent": f'{BY_DEVICE} (node_network_iface_link{{device="eth0"}})',
    "number": f'{BY_DEVICE} (node_network_iface_id{{device="eth0"}})',
}
UNAME = {"uname": "max by (nodename, instance, job) (node_uname_info)"}


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param({}, {**UNAME, **LINKS}, id="asks what its devices are"),
        pytest.param(
            {"match_label": "nodename"},
            {**UNAME, **LINKS},
            id="asks for node_uname_info where the nodename decides",
        ),
        pytest.param(
            {"match_label": "instance"},
            LINKS,
            id="leaves node_uname_info out where the instance decides",
        ),
        pytest.param(
            {"template": "node:traffic"},
            {**UNAME, "speed": LINKS["speed"]},
            id="asks only for speeds beside the user's own query",
        ),
    ],
)
def test_what_is_asked_seldom(fields: dict[str, Any], want: dict[str, str]) -> None:
    assert link_queries(make_request(**ETH0, **fields)) == want


def test_the_names_of_nodes_are_asked_for_as_the_seeds_do_beside_the_seeds_query() -> None:
    request = make_request(**ETH0, measure="sumOverTime", match_label="nodename")
    assert link_queries(request)["uname"] == "node_uname_info"


def test_a_rate_may_be_asked_for_with_all_its_labels() -> None:
    counter = 'node_network_receive_bytes_total{device="eth0"}'
    assert traffic_queries(make_request(**ETH0), 60, has_all_labels=True) == {
        "receive": f"rate({counter}[1m]) and {counter}"
    }


@pytest.mark.parametrize(
    ("fields", "is_asked"),
    [
        pytest.param({}, True, id="asks what pods carry"),
        pytest.param({"measure": "increase"}, True, id="asks it where traffic grows"),
        pytest.param({"learns_from_pods": False}, False, id="does not where it is not to learn"),
        pytest.param({"measure": "sumOverTime"}, False, id="does not where values are no rates"),
    ],
)
def test_what_is_asked_of_pods(fields: dict[str, Any], is_asked: bool) -> None:
    of_pods = "sum by (namespace, pod) (rate(container_network_{}_bytes_total{}[90s]))"
    selector = '{pod!="",interface!="lo"}'
    want = {
        "pod_receive": of_pods.format("receive", selector),
        "pod_transmit": of_pods.format("transmit", selector),
    }
    assert pod_queries(make_request(**fields), 90) == (want if is_asked else {})


def test_the_samples_of_a_few_targets() -> None:
    targets = [
        {"instance": "10.0.0.1:9100", "device": "eth0"},
        {"instance": "10.0.0.2:9100", "device": "eth0"},
        {"instance": 'odd"one', "device": "eth0.7"},
    ]
    assert sample_query("receive", targets) == (
        r"node_network_receive_bytes_total{"
        r'instance=~"10\\.0\\.0\\.1:9100|10\\.0\\.0\\.2:9100|odd\"one",'
        r'device=~"eth0|eth0\\.7"}[15m]'
    )


@pytest.mark.parametrize(
    ("devices", "want"),
    [
        pytest.param(
            (), f'device!~"{VIRTUAL}"', id="leaves out virtual devices when none is named"
        ),
        pytest.param(("eth0.100",), 'device="eth0.100"', id="takes a VLAN for an exact name"),
        pytest.param(("eth.*",), 'device=~"eth.*"', id="takes a star for an expression"),
        pytest.param(
            ("eth0", "eth0.100"),
            r'device=~"eth0|eth0\\.100"',
            id="keeps a dot of an exact name a dot among several",
        ),
        pytest.param(
            ("eth0", "(?i)en[0-9]+|wl.*"),
            'device=~"eth0|(?:(?i)en[0-9]+|wl.*)"',
            id="keeps expressions apart among several",
        ),
        pytest.param(
            ('eth0"} or up{job="x',),
            r'device=~"eth0\"} or up{job=\"x"',
            id="does not let a quote end the string",
        ),
        pytest.param(("eth0\\",), r'device=~"eth0\\"', id="does not let a backslash hide the end"),
        pytest.param(
            ("a\nb\x00\ud800",),
            r'device=~"a\u000ab\u0000\ud800"',
            id="spells out what cannot stand in a string",
        ),
        pytest.param(("eth0}",), 'device=~"eth0}"', id="leaves a brace in quotes alone"),
    ],
)
def test_device_matchers(devices: tuple[str, ...], want: str) -> None:
    request = make_request(devices=devices)
    assert link_queries(request)["speed"] == f"{BY_DEVICE} (node_network_speed_bytes{{{want}}})"


@pytest.mark.parametrize(
    "device",
    [
        "lo",
        "veth12ab",
        "cali9",
        "cni0",
        "docker0",
        "br-1f",
        "virbr0",
        "flannel.1",
        "vxlan.calico",
        "geneve_sys",
        "tunl0",
        "cilium_host",
        "lxc_health",
        "eni0a1b2c",
        "azv12",
        "kube-ipvs0",
        "nodelocaldns",
        "dummy0",
        "wg0",
        "ovs-system",
        "ifb0",
    ],
)
def test_virtual_devices_are_left_out(device: str) -> None:
    assert re.fullmatch(VIRTUAL, device)


@pytest.mark.parametrize("device", ["eth0", "ens192", "bond0", "enp3s0", "wlan0", "eno1", "ib0"])
def test_real_devices_are_not(device: str) -> None:
    assert not re.fullmatch(VIRTUAL, device)


def test_equal_requests_are_one_key() -> None:
    assert len({make_request(), make_request(), make_request(direction="sum")}) == 2
