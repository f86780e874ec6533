"""Volumes on the nodes of a face: rows that are repeated, and pods that come and go
hypothetically."""

from typing import Any

import msgspec
import numpy as np
import pytest

from lowtide.cluster.indexes.volumes import claim_key
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.overlay import hypothetical_pod
from lowtide.objects.pod import Pod
from lowtide.objects.storage import (
    CSINode,
    CsiSource,
    PersistentVolume,
    PersistentVolumeClaim,
    VolumeAttachment,
)
from lowtide.testing import make_node, make_pod, make_state

DRIVER, OTHER = "csi.example.com", "other.example.com"
NAMES = ("a", "b", "c")


def using(name: str, *claims: str, on: str = "") -> Pod:
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    return make_pod(name, on=on, spec={"volumes": volumes})


def table() -> Nodes:
    """Each claim has a volume: v1 is used twice on a and once on b, v2 once on a; v3 is another
    driver's. Of c it is known that v2 is attached; a pod uses v1 on a node that is not there."""
    pods = [
        using("one", "v1", on="a"),
        using("two", "v1", "v2", "v3", on="a"),
        using("three", "v1", on="b"),
        using("four", "v1", on="nowhere"),
        make_pod("plain", on="a"),
    ]
    state = make_state([make_node(name) for name in NAMES], pods)
    attached = {"attacher": DRIVER, "nodeName": "c", "source": {"persistentVolumeName": "v2"}}
    things: list[tuple[dict[str, Any], type]] = [
        *(({"metadata": {"name": name}}, CSINode) for name in NAMES),
        ({"metadata": {"name": "x"}, "spec": attached}, VolumeAttachment),
    ]
    for name, driver in (("v1", DRIVER), ("v2", DRIVER), ("v3", OTHER)):
        csi = {"driver": driver, "volumeHandle": name}
        meta = {"name": name, "namespace": "default"}
        things.append(({"metadata": {"name": name}, "spec": {"csi": csi}}, PersistentVolume))
        things.append(({"metadata": meta, "spec": {"volumeName": name}}, PersistentVolumeClaim))
    for given, kind in things:
        state.put_object(msgspec.convert(given, kind))
    return state.nodes()


def taken(*rows: int) -> Nodes:
    return table().take(np.array(rows, np.intp))


def copies(pod: Pod, nodes: Nodes, *times: int) -> Nodes:
    return nodes.with_copies(hypothetical_pod(pod), np.array(times))


A_REPEATED = (0, 2, 0, 1)


@pytest.mark.parametrize(
    ("nodes", "counts", "v1", "v2"),
    [
        pytest.param(table(), [2, 1, 1], [1, 1, 0], [1, 0, 0], id="without overlays"),
        pytest.param(
            taken(*A_REPEATED),
            [2, 1, 2, 1],
            [1, 0, 1, 1],
            [1, 0, 1, 0],
            id="if rows are repeated",
        ),
        pytest.param(
            table().without({0: ["default/one"]}),
            [2, 1, 1],
            [1, 1, 0],
            [1, 0, 0],
            id="if one of two users is removed",
        ),
        pytest.param(
            table().without({0: ["default/two"]}),
            [1, 1, 1],
            [1, 1, 0],
            [0, 0, 0],
            id="if the user with a second volume is removed",
        ),
        pytest.param(
            table().without({0: ["default/one", "default/two", "default/plain"]}),
            [0, 1, 1],
            [0, 1, 0],
            [0, 0, 0],
            id="if both users are removed",
        ),
        pytest.param(
            table().without({0: ["default/one", "default/two"]}).restoring(np.array([1])),
            [2, 1, 1],
            [1, 1, 0],
            [1, 0, 0],
            id="if both users are removed and one is restored",
        ),
        pytest.param(
            table().without({0: ["default/one", "default/two"]}).with_pods({0: [using("n", "v1")]}),
            [1, 1, 1],
            [1, 1, 0],
            [0, 0, 0],
            id="if both users are removed and another pod is added",
        ),
        pytest.param(
            table().with_pods({1: [using("n", "v1")], 2: [using("n", "v1"), using("m", "v1")]}),
            [2, 1, 2],
            [1, 1, 1],
            [1, 0, 0],
            id="once for several users",
        ),
        pytest.param(
            table().with_pods({2: [using("n", "v2")]}),
            [2, 1, 1],
            [1, 1, 0],
            [1, 0, 1],
            id="once if it is attached and used",
        ),
        pytest.param(
            table().with_pods({1: [using("n", "v2")]}).without({1: [using("n").uid]}),
            [2, 1, 1],
            [1, 1, 0],
            [1, 0, 0],
            id="as before if an added pod is removed again",
        ),
        pytest.param(
            copies(using("n", "v2", "v3"), taken(1, 1, 0, 1, 2), 0, 1, 1, 3, 2),
            [1, 2, 2, 2, 1],
            [1, 1, 1, 1, 0],
            [0, 1, 1, 1, 1],
            id="per position if a row has several positions",
        ),
        pytest.param(
            taken(1, 0).with_pods({0: [using("n", "v2")]}).take(np.array([1, 0])),
            [2, 2],
            [1, 1],
            [1, 1],
            id="if positions with overlays are taken",
        ),
    ],
)
def test_a_volume_counts(nodes: Nodes, counts: list[int], v1: list[int], v2: list[int]) -> None:
    volumes = nodes.volumes
    assert volumes.attached_count(DRIVER).tolist() == counts
    assert volumes.is_attached(CsiSource(DRIVER, "v1")).tolist() == v1
    assert volumes.is_attached(CsiSource(DRIVER, "v2")).tolist() == v2


@pytest.mark.parametrize(
    ("nodes", "want"),
    [
        pytest.param(table(), ["0 one", "0 two", "1 three"], id="on all nodes"),
        pytest.param(taken(2), [], id="on a node without holders"),
        pytest.param(
            taken(*A_REPEATED),
            ["0 one", "0 two", "2 one", "2 two", "3 three"],
            id="at every position of a row",
        ),
        pytest.param(
            table().without({0: ["default/one"]}), ["0 two", "1 three"], id="after a pod is removed"
        ),
        pytest.param(
            taken(0, 0).without({1: ["default/one", "default/two"]}),
            ["0 one", "0 two"],
            id="after a pod is removed at one position of a row",
        ),
        pytest.param(
            table().with_pods({1: [using("n", "v1")], 2: [using("m", "v2")]}),
            ["0 one", "0 two", "1 n", "1 three"],
            id="after a pod is added",
        ),
        pytest.param(
            copies(using("n", "v1"), taken(1, 2, 1), 1, 1, 0),
            ["0 n", "0 three", "1 n", "2 three"],
            id="after a pod is added at one position of a row",
        ),
    ],
)
def test_holders_of_a_claim_are_those(nodes: Nodes, want: list[str]) -> None:
    held = nodes.volumes.pods_using(claim_key("default", "v1"))
    assert sorted(f"{position} {pod.name}" for position, pod in held) == want
