"""NodeVolumeLimits: as many volumes of a driver on a node as it can attach."""

from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest

from lowtide.cluster.state import ClusterState
from lowtide.framework.plugin import Pod
from lowtide.framework.verdict import Verdict
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.objects.storage import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    VolumeAttachment,
)
from lowtide.plugins.node_volume_limits import NodeVolumeLimits
from lowtide.testing import make_node, make_pod, make_profile, make_state

DRIVER, EBS = "csi.example.com", "ebs.csi.aws.com"
TOO_MANY = "node(s) exceed max volume count"


def using(name: str, *claims: str, on: str = "", disks: tuple[str, ...] = ()) -> Pod:
    volumes = [{"name": n, "persistentVolumeClaim": {"claimName": n}} for n in claims]
    volumes += [{"name": n, "awsElasticBlockStore": {"volumeID": n}} for n in disks]
    return make_pod(name, on=on, spec={"volumes": volumes})


def cluster(limit: int | None, *pods: Pod) -> ClusterState:
    """Node a has the limit for both drivers; node b says nothing. Claims v1 to v4 are bound."""
    state = make_state([make_node("a"), make_node("b")], pods)
    drivers = [{"name": driver, "allocatable": {"count": limit}} for driver in (DRIVER, EBS)]
    things: list[tuple[Any, type]] = [
        ({"metadata": {"name": "a"}, "spec": {"drivers": drivers}}, CSINode)
    ]
    for name in ("v1", "v2", "v3", "v4"):
        csi = {"driver": DRIVER, "volumeHandle": name}
        things.append(({"metadata": {"name": name}, "spec": {"csi": csi}}, PersistentVolume))
        meta = {"name": name, "namespace": "default"}
        things.append(({"metadata": meta, "spec": {"volumeName": name}}, PersistentVolumeClaim))
    for given, kind in things:
        state.put_object(msgspec.convert(given, kind))
    return state


def rejected(pod: Pod, state: ClusterState) -> dict[str, str]:
    nodes = state.nodes()
    found = {}
    for rejection in NodeVolumeLimits().filter(pod, nodes):
        found.update({nodes.names[at]: rejection.reason for at in np.flatnonzero(rejection.mask)})
    return found


@pytest.mark.parametrize(
    ("limit", "pod", "is_rejected"),
    [
        pytest.param(3, using("web", "v3"), False, id="accepts volumes up to the limit"),
        pytest.param(2, using("web", "v3"), True, id="rejects one volume above the limit"),
        pytest.param(3, using("web", "v3", "v4"), True, id="counts all volumes of the pod"),
        pytest.param(
            3,
            using("web", "v3", "v1"),
            False,
            id="does not count a volume that is already attached",
        ),
        pytest.param(
            0,
            using("web", "v1", "v2"),
            False,
            id="accepts a volume that is already attached, at the limit",
        ),
        pytest.param(None, using("web", "v3"), False, id="accepts any number without a limit"),
        pytest.param(2, using("web", disks=("vol-9",)), False, id="counts each driver on its own"),
        pytest.param(
            1, using("web", disks=("vol-8", "vol-9")), True, id="counts disks named in the pod"
        ),
        pytest.param(0, using("web"), False, id="accepts a pod without volumes"),
    ],
)
def test_a_node_with_two_volumes(limit: int | None, pod: Pod, is_rejected: bool) -> None:
    state = cluster(limit, using("one", "v1", "v2", on="a"), using("other", "v1", on="a"))
    assert rejected(pod, state) == ({"a": TOO_MANY} if is_rejected else {})


def test_what_is_attached_without_a_pod_counts_even_where_the_pod_would_use_it() -> None:
    """As in kube-scheduler: only what pods use is known not to come anew."""
    state = cluster(1)
    source = {"persistentVolumeName": "v1"}
    spec = {"attacher": DRIVER, "nodeName": "a", "source": source}
    given = {"metadata": {"name": "x"}, "spec": spec}
    state.put_object(msgspec.convert(given, VolumeAttachment))
    assert rejected(using("web", "v1"), state) == {"a": TOO_MANY}


def test_a_claim_that_is_missing_rejects_every_node() -> None:
    text = 'looking up PVC default/v9: persistentvolumeclaim "v9" not found'
    assert rejected(using("web", "v9"), cluster(3)) == {"a": text, "b": text}


def test_a_claim_that_is_not_the_pods_own_rejects_every_node() -> None:
    state = cluster(3)
    pod = make_pod("v", spec={"volumes": [{"name": "1", "ephemeral": {}}]})
    meta = {"name": "v-1", "namespace": "default"}
    state.put_object(msgspec.convert({"metadata": meta}, PersistentVolumeClaim))
    text = "PVC default/v-1 was not created for pod default/v (pod is not owner)"
    assert rejected(pod, state) == {"a": text, "b": text}


def test_nodes_that_are_judged_ahead_are_judged_as_they_will_be() -> None:
    """Pods with shared claims come, and some leave, until the nodes can attach no more."""
    state = cluster(2)
    for name in ("a", "b"):
        drivers = [{"name": DRIVER, "allocatable": {"count": 2}}]
        given = {"metadata": {"name": name}, "spec": {"drivers": drivers}}
        state.put_object(msgspec.convert(given, CSINode))
    kept, chance, placed = VerdictCache(make_profile([NodeVolumeLimits()]), state), Random(1), []
    for number in range(200):
        if chance.random() < 0.3 and placed:
            state.remove_pod(placed.pop(chance.randrange(len(placed))))
        pod = using(f"p{number}", chance.choice(["v1", "v2", "v3", "v4"]))
        verdict = kept.verdict_on(pod)
        fresh = Verdict(make_profile([NodeVolumeLimits()]), state, pod, b"")
        fresh.refresh()
        assert verdict.feasible.tolist() == fresh.feasible.tolist()
        if verdict.feasible.any():
            node_name = state.names[int(verdict.rank().argmax())]
            state.assume(pod, node_name, verdict.signature)
            placed.append(pod.uid)
    assert len(placed) > 50
