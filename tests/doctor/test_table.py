"""The rows of the table: by which label a series came to its node, and which stand first."""

import pytest
from tests.doctor.conftest import WELL, Exporter, exporter_on, make_evidence, make_request

from lowtide.doctor.checks import examined
from lowtide.doctor.findings import Code
from lowtide.doctor.table import NodeRow
from lowtide.readings.capacity import CapacitySource
from lowtide.readings.reading import State


@pytest.mark.parametrize(
    ("exporter", "label", "matched_by"),
    [
        pytest.param(
            Exporter("x:1", "other", {"node": "south"}), "auto", "node", id="the label node"
        ),
        pytest.param(
            Exporter("x:1", "other", {"kubernetes_node": "south"}),
            "auto",
            "kubernetes_node",
            id="the label kubernetes_node",
        ),
        pytest.param(
            Exporter("192.0.2.9:1", "south"),
            "auto",
            "nodename (uname)",
            id="the nodename of node_uname_info",
        ),
        pytest.param(
            Exporter("192.0.2.9:1", "", {"nodename": "south"}),
            "auto",
            "nodename",
            id="a nodename of its own",
        ),
        pytest.param(
            Exporter("10.0.0.3:9100"), "auto", "instance (IP:port)", id="an address with port"
        ),
        pytest.param(Exporter("10.0.0.3"), "auto", "instance (IP)", id="an address"),
        pytest.param(Exporter("south"), "auto", "instance (name)", id="a name"),
        pytest.param(Exporter("south:9100"), "auto", "instance (name:port)", id="a name with port"),
        pytest.param(
            exporter_on(3), "auto", "nodename (uname), instance (IP:port)", id="both that agree"
        ),
        pytest.param(
            exporter_on(3, labels={"node": "south"}),
            "auto",
            "node",
            id="the label node alone, though others agree",
        ),
        pytest.param(exporter_on(3), "instance", "instance (IP:port)", id="the only one asked for"),
    ],
)
def test_a_series_is_matched_by(exporter: Exporter, label: str, matched_by: str) -> None:
    evidence = make_evidence([*WELL[:2], exporter], request=make_request(match_label=label))
    rows = {row.node: row for row in examined(evidence).rows}
    assert rows["south"].matched_by == matched_by


def test_a_row_tells_all_and_what_needs_attention_stands_first() -> None:
    evidence = make_evidence(WELL[:2])
    assert examined(evidence).rows[:2] == (
        NodeRow(node="south", codes=(Code.EXPORTER_MISSING,)),
        NodeRow(
            node="east",
            instance="10.0.0.2:9100",
            job="node-exporter",
            matched_by="nodename (uname), instance (IP:port)",
            devices=("ens5",),
            receive_bytes_per_second=2e6,
            transmit_bytes_per_second=1e6,
            capacity_bytes_per_second=1.25e9,
            capacity_source=CapacitySource.SPEED,
            age_seconds=3.0,
            state=State.FRESH,
        ),
    )
