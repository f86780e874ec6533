"""VolumeRestrictions: disks that are taken, and claims that are for one pod alone."""

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest

from lowtide.cluster.changes import is_local
from lowtide.cluster.nodes import Nodes
from lowtide.framework.plugin import Pod, PodRejection, Rejection
from lowtide.framework.verdict import Verdict
from lowtide.objects.pod import signature_of
from lowtide.objects.storage import PersistentVolumeClaim
from lowtide.plugins.volume_restrictions import VolumeRestrictions
from lowtide.testing import make_node, make_pod, make_profile, make_state

DISK_TAKEN = "node(s) had no available disk"
CLAIM_TAKEN = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod"
)


def using(name: str, *sources: dict[str, Any], on: str = "", namespace: str = "default") -> Pod:
    volumes = [{"name": f"v{at}", **source} for at, source in enumerate(sources)]
    return make_pod(name, on=on, namespace=namespace, spec={"volumes": volumes})


def gce(name: str, read_only: bool = False) -> dict[str, Any]:
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def aws(name: str) -> dict[str, Any]:
    return {"awsElasticBlockStore": {"volumeID": name, "readOnly": True}}


def iscsi(iqn: str, read_only: bool = False) -> dict[str, Any]:
    return {"iscsi": {"iqn": iqn, "lun": 0, "targetPortal": "t", "readOnly": read_only}}


def rbd(*monitors: str, image: str = "i", pool: str = "p", read_only: bool = False) -> Any:
    return {
        "rbd": {"monitors": list(monitors), "image": image, "pool": pool, "readOnly": read_only}
    }


def the_claim(name: str) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": name}}


def claim(name: str, mode: str, namespace: str = "default") -> PersistentVolumeClaim:
    meta = {"name": name, "namespace": namespace}
    return msgspec.convert(
        {"metadata": meta, "spec": {"accessModes": [mode]}}, PersistentVolumeClaim
    )


def rejected(pod: Pod, nodes: Nodes) -> dict[str, str]:
    found = {}
    for rejection in VolumeRestrictions().filter(pod, nodes):
        assert rejection.eviction_helps
        found.update({nodes.names[at]: rejection.reason for at in np.flatnonzero(rejection.mask)})
    return found


@pytest.mark.parametrize(
    ("wanted", "held", "is_rejected"),
    [
        pytest.param(gce("d"), gce("d"), True, id="rejects a disk that another pod may write"),
        pytest.param(
            gce("d", True), gce("d", True), False, id="accepts a disk that both pods only read"
        ),
        pytest.param(
            gce("d", True), gce("d"), True, id="rejects a disk that one of both may write"
        ),
        pytest.param(gce("d"), gce("e"), False, id="accepts another disk"),
        pytest.param(aws("d"), aws("d"), True, id="rejects an EBS volume even if it is only read"),
        pytest.param(aws("d"), aws("e"), False, id="accepts another EBS volume"),
        pytest.param(aws("d"), gce("d"), False, id="does not confuse disks of different clouds"),
        pytest.param(
            iscsi("i"),
            iscsi("i", True),
            True,
            id="rejects an iSCSI target that another pod may write",
        ),
        pytest.param(
            iscsi("i", True),
            iscsi("i", True),
            False,
            id="accepts an iSCSI target that both pods only read",
        ),
        pytest.param(
            rbd("m", "n"), rbd("n", "o"), True, id="rejects an RBD image of the same cluster"
        ),
        pytest.param(rbd("m"), rbd("o"), False, id="accepts an RBD image of another cluster"),
        pytest.param(
            rbd("m"), rbd("m", pool="q"), False, id="accepts an RBD image of another pool"
        ),
        pytest.param(rbd("m"), rbd("m", image="j"), False, id="accepts another RBD image"),
        pytest.param(
            rbd("m", read_only=True),
            rbd("m", read_only=True),
            False,
            id="accepts an RBD image that both pods only read",
        ),
    ],
)
def test_a_disk(wanted: dict[str, Any], held: dict[str, Any], is_rejected: bool) -> None:
    state = make_state([make_node("a"), make_node("b")], [using("holder", held, on="a")])
    want = {"a": DISK_TAKEN} if is_rejected else {}
    assert rejected(using("web", wanted), state.nodes()) == want


def test_a_disk_is_free_where_its_holder_is_imagined_away() -> None:
    state = make_state([make_node("a"), make_node("b")], [using("holder", gce("d"), on="a")])
    nodes, web = state.nodes(), using("web", gce("d"))
    assert rejected(web, nodes.without({0: ["default/holder"]})) == {}
    both = nodes.with_pods({1: [using("new", gce("d"))]})
    assert rejected(web, both) == {"a": DISK_TAKEN, "b": DISK_TAKEN}


def nodes_with(*pods: Pod) -> Nodes:
    state = make_state([make_node("a"), make_node("b")], pods)
    for thing in (
        claim("alone", "ReadWriteOncePod"),
        claim("alone", "ReadWriteOncePod", "other"),
        claim("shared", "ReadWriteMany"),
    ):
        state.put_object(thing)
    return state.nodes()


EVERYWHERE = {"a": CLAIM_TAKEN, "b": CLAIM_TAKEN}


@pytest.mark.parametrize(
    ("holder", "name", "want"),
    [
        pytest.param(
            using("h", the_claim("alone"), on="a"),
            "alone",
            EVERYWHERE,
            id="rejects every node if another pod uses the claim",
        ),
        pytest.param(
            using("h", the_claim("shared"), on="a"),
            "shared",
            {},
            id="accepts claims with other access modes",
        ),
        pytest.param(
            using("h", the_claim("alone"), on="a", namespace="other"),
            "alone",
            {},
            id="ignores a claim of the same name in another namespace",
        ),
        pytest.param(
            using("h", the_claim("alone"), on="unknown"),
            "alone",
            {},
            id="ignores pods on unknown nodes",
        ),
    ],
)
def test_a_claim_for_one_pod(holder: Pod, name: str, want: dict[str, str]) -> None:
    assert rejected(using("web", the_claim(name)), nodes_with(holder)) == want


def test_a_claim_is_free_on_the_node_where_its_holder_is_imagined_away() -> None:
    nodes = nodes_with(using("h", the_claim("alone"), on="a"))
    web = using("web", the_claim("alone"))
    assert rejected(web, nodes.without({0: ["default/h"]})) == {"b": CLAIM_TAKEN}


def test_a_claim_that_nobody_uses_is_not_taken_by_a_pod_that_is_only_promised_the_node() -> None:
    """As in kube-scheduler, which does not ask this plugin again in that case."""
    nodes = nodes_with().with_pods({0: [using("promised", the_claim("alone"))]})
    assert rejected(using("web", the_claim("alone")), nodes) == {}
    assert rejected(using("web", the_claim("alone"), gce("d")), nodes) == {"a": CLAIM_TAKEN}


def test_a_pod_whose_claim_is_missing_is_rejected() -> None:
    plugin, nodes = VolumeRestrictions(), nodes_with()
    assert plugin.pre_filter(using("web", the_claim("alone")), nodes) is None
    assert plugin.pre_filter(using("web", the_claim("none")), nodes) == PodRejection(
        'persistentvolumeclaim "none" not found'
    )
    assert plugin.pre_filter(using("web", {"ephemeral": {}}), nodes) is None


class Counted(VolumeRestrictions):
    """Remembers how many nodes it was asked about."""

    def __init__(self) -> None:
        self.judged: list[int] = []

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        self.judged.append(len(nodes))
        yield from super().filter(pod, nodes)


@pytest.mark.parametrize("read_only", [True, False])
def test_nodes_are_judged_ahead_of_pods_with_the_same_disk(read_only: bool) -> None:
    plugin, state = Counted(), make_state([make_node(f"n{number}") for number in range(400)])
    pod = using("p", gce("x", read_only))
    verdict = Verdict(make_profile([plugin]), state, pod, signature_of(pod))
    for number in range(40):
        verdict.refresh()
        row = int(verdict.rank().argmax())
        state.assume(using(f"p{number}", gce("x", read_only)), f"n{row}", verdict.signature)
        fresh = Verdict(make_profile([VolumeRestrictions()]), state, pod, signature_of(pod))
        verdict.refresh()
        fresh.refresh()
        assert verdict.feasible.tolist() == fresh.feasible.tolist()
    assert len(plugin.judged) < 20  # not once for each pod


def test_a_claim_for_one_pod_is_not_judged_ahead() -> None:
    state = make_state([make_node("a")])
    state.put_object(claim("c", "ReadWriteOncePod"))
    nodes = state.nodes().with_pods({0: [using("other", the_claim("c"))]})
    state.touched = 0
    list(VolumeRestrictions().filter(using("p", gce("x"), the_claim("c")), nodes))
    assert not is_local(state.touched)
