"""What the tests of readings share: a request, series as Prometheus gives them, and what a fresh
meter makes of answers."""

from collections.abc import Mapping, Sequence
from typing import Any

from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.readings.access import PrometheusAccess
from lowtide.readings.meter import TrafficMeter
from lowtide.readings.reading import NodeReading, TrafficReading
from lowtide.readings.request import TrafficRequest
from lowtide.readings.series import Series
from lowtide.testing import make_node

NOW = 1000.0
NODE_A = make_node("a")
# Of no node: it tells that Prometheus's clock is ours.
EVALUATED_NOW = {"flags": [Series({}, 0.0, NOW)]}


def make_request(**fields: Any) -> TrafficRequest:
    access = PrometheusAccess(addresses=("http://127.0.0.1:9090",))
    return TrafficRequest(**{"access": access, "direction": "receive", **fields})


def make_series(
    value: float, *, node: str = "a", device: str = "eth0", at: float = NOW, job: str = "n"
) -> Series:
    return Series({"node": node, "device": device, "job": job}, value, at)


def make_meter(**fields: Any) -> TrafficMeter:
    return TrafficMeter(make_request(devices=("eth0",), **fields))


def read(
    answers: Mapping[str, Sequence[Series]],
    nodes: Sequence[Node] = (NODE_A,),
    pods: Sequence[Pod] = (),
    **fields: Any,
) -> TrafficReading:
    """What a meter of its own makes of these answers; the fields are the request's."""
    return TrafficMeter(make_request(**fields)).take({**EVALUATED_NOW, **answers}, nodes, pods, NOW)


def read_one(answers: Mapping[str, Sequence[Series]], **fields: Any) -> NodeReading:
    """The reading of node a alone."""
    return read(answers, **fields).node_reading("a")
