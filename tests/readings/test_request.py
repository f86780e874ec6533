"""The queries that a TrafficRequest becomes."""

import pytest

from lowtide.readings.request import (
    VIRTUAL_DEVICES,
    Direction,
    MatchLabel,
    Measure,
    TrafficRequest,
    queries,
)

VIRTUAL = "|".join(VIRTUAL_DEVICES)


def make_request(
    *,
    devices: tuple[str, ...] = ("eth0",),
    window_seconds: int = 60,
    measure: Measure = "rate",
    direction: Direction = "receive",
    match_label: MatchLabel = "auto",
) -> TrafficRequest:
    return TrafficRequest(
        prometheus_address="http://127.0.0.1:9090",
        devices=devices,
        window_seconds=window_seconds,
        measure=measure,
        direction=direction,
        match_label=match_label,
    )


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
    assert queries(request)["receive"] == want


@pytest.mark.parametrize(
    ("request_", "want"),
    [
        pytest.param(
            make_request(),
            {
                "receive": 'rate(node_network_receive_bytes_total{device="eth0"}[1m])',
                "uname": "node_uname_info",
                "speed": 'node_network_speed_bytes{device="eth0"}',
            },
            id="asks for one direction where one is wanted",
        ),
        pytest.param(
            make_request(direction="max", measure="increase", window_seconds=90),
            {
                "receive": 'increase(node_network_receive_bytes_total{device="eth0"}[90s])',
                "transmit": 'increase(node_network_transmit_bytes_total{device="eth0"}[90s])',
                "uname": "node_uname_info",
                "speed": 'node_network_speed_bytes{device="eth0"}',
            },
            id="asks for both directions for the larger of them",
        ),
        pytest.param(
            make_request(direction="transmit", match_label="instance", window_seconds=7200),
            {
                "transmit": 'rate(node_network_transmit_bytes_total{device="eth0"}[2h])',
                "speed": 'node_network_speed_bytes{device="eth0"}',
            },
            id="leaves node_uname_info out where the instance decides",
        ),
    ],
)
def test_queries(request_: TrafficRequest, want: dict[str, str]) -> None:
    assert queries(request_) == want


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
    assert queries(make_request(devices=devices))["speed"] == f"node_network_speed_bytes{{{want}}}"


def test_equal_requests_are_one_key() -> None:
    assert len({make_request(), make_request(), make_request(direction="sum")}) == 2
