"""Binds volumes before the pod that uses them: what VolumeBinding reserved is written to the API
server, and then the claims are watched until whoever makes or binds volumes has done so."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np

from lowtide.app.clocks import Clock
from lowtide.app.kube_writes import KubeBinder
from lowtide.cluster.state import ClusterState
from lowtide.framework.plugin import Pod
from lowtide.kube.errors import KubeError
from lowtide.kube.writer import Writer
from lowtide.logs import Log
from lowtide.objects.storage import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
)
from lowtide.plugins.volume_finding import can_be_used

log = Log("scheduler")

_LOOK_SECONDS = 0.25

# What was written, and the version that it has since.
_Written = tuple[Any, str]


class _FailedError(Exception):
    """The volumes will not be bound; the text says why, in kube-scheduler's words."""


class KubeVolumes:
    """`state` is asked for each time: it is made after this is."""

    def __init__(
        self,
        writer: Writer,
        state: Callable[[], ClusterState],
        *,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._writer = writer
        self._state = state
        self._clock = clock
        self._sleep = sleep

    async def bind_volumes(self, pod: Pod, node_name: str, timeout_seconds: float) -> str | None:
        reserved = self._state().known_objects.assumed(pod.uid)
        if not reserved:
            return None
        try:
            written = [(thing, await self._write(thing, node_name)) for thing in reserved]
            log.v(2, "Waiting for volumes to be bound", pod=pod.key, node=node_name)
            until = self._clock() + timeout_seconds
            while not all(self._is_bound(each, pod, node_name) for each in written):
                if self._clock() >= until:
                    raise _FailedError("context deadline exceeded")
                await self._sleep(_LOOK_SECONDS)
        except KubeError as error:
            return str(error)
        except _FailedError as error:
            return f"binding volumes: {error}"
        return None

    # What is written.

    async def _write(self, thing: Any, node_name: str) -> str:
        """Each is written as it was when it was reserved: another's change is a conflict."""
        version = {"resourceVersion": thing.metadata.resource_version}
        if isinstance(thing, PersistentVolume):
            path = f"/api/v1/persistentvolumes/{thing.name}"
            annotations = thing.metadata.annotations
            if BOUND_BY_CONTROLLER in annotations:
                version |= _annotated(BOUND_BY_CONTROLLER, annotations[BOUND_BY_CONTROLLER])
            changes = {"metadata": version, "spec": {"claimRef": self._reference(thing)}}
        else:
            meta = thing.metadata
            path = f"/api/v1/namespaces/{meta.namespace}/persistentvolumeclaims/{meta.name}"
            changes = {"metadata": version | _annotated(SELECTED_NODE, node_name)}
        return await self._writer.patch_object(path, changes)

    def _reference(self, volume: PersistentVolume) -> dict[str, str]:
        claim = self._claim_of(volume)
        return {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": claim.metadata.namespace,
            "name": claim.name,
            "uid": claim.metadata.uid,
            "resourceVersion": claim.metadata.resource_version,
        }

    # What became of it.

    def _is_bound(self, written: _Written, pod: Pod, node_name: str) -> bool:
        thing, version = written
        if self._state().row_of(node_name) is None:
            raise _FailedError(f'failed to get node "{node_name}": node "{node_name}" not found')
        if self._state().placed(pod.uid) is None:
            raise _FailedError(f'pod does not exist any more: pod "{pod.name}" not found')
        if isinstance(thing, PersistentVolume):
            return self._is_volume_bound(thing, version, node_name)
        return self._is_claim_provided(thing, version, node_name)

    def _is_volume_bound(self, wanted: PersistentVolume, version: str, node_name: str) -> bool:
        volume = self._watched(PersistentVolume, wanted)
        if volume is None:
            text = f'failed to check binding: persistentvolume "{wanted.name}" not found'
            raise _FailedError(text)
        claim = self._claim_of(wanted)
        if _is_older(volume, version):
            return False
        self._check_use(volume, node_name)
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise _FailedError(f'ClaimRef got reset for pv "{volume.name}"')
        return claim.is_bound

    def _is_claim_provided(
        self, wanted: PersistentVolumeClaim, version: str, node_name: str
    ) -> bool:
        claim: PersistentVolumeClaim | None = self._watched(PersistentVolumeClaim, wanted)
        if claim is None:
            text = f'persistentvolumeclaim "{wanted.name}" not found'
            raise _FailedError(f"failed to check provisioning pvc: {text}")
        if _is_older(claim, version):
            return False
        if not claim.metadata.annotations:
            raise _FailedError(f'selectedNode annotation reset for PVC "{claim.name}"')
        if claim.selected_node != node_name:
            # Whoever makes volumes gives the claim back in this way.
            raise _FailedError(f'provisioning failed for PVC "{claim.name}"')
        if claim.spec.volume_name:
            volume = self._state().known_objects.watched(
                PersistentVolume, "", claim.spec.volume_name
            )
            if volume is None:
                return False  # the watch of volumes is behind that of claims
            self._check_use(volume, node_name)
        return claim.is_bound

    def _check_use(self, volume: PersistentVolume, node_name: str) -> None:
        row = self._state().row_of(node_name)
        nodes = self._state().nodes().take(np.array([row], np.intp))
        if not can_be_used(volume, nodes)[0]:
            text = f'pv "{volume.name}" node affinity doesn\'t match node "{node_name}"'
            raise _FailedError(f"{text}: no matching NodeSelectorTerms")

    def _claim_of(self, volume: PersistentVolume) -> PersistentVolumeClaim:
        reference = volume.spec.claim_ref
        assert reference is not None  # it was reserved for a claim
        found = self._state().known_objects.watched(
            PersistentVolumeClaim, reference.namespace, reference.name
        )
        if found is None:
            text = f'persistentvolumeclaim "{reference.name}" not found'
            raise _FailedError(f"failed to check binding: {text}")
        return found

    def _watched(self, kind: type[Any], thing: Any) -> Any:
        meta = thing.metadata
        return self._state().known_objects.watched(kind, meta.namespace, meta.name)


class KubeBindings:
    """Binds pods by one part and their volumes by the other."""

    def __init__(self, pods: KubeBinder, volumes: KubeVolumes) -> None:
        self.bind = pods.bind
        self.bind_volumes = volumes.bind_volumes


def _annotated(key: str, value: str) -> dict[str, Any]:
    return {"annotations": {key: value}}


def _is_older(thing: Any, version: str) -> bool:
    """Whether the watch has not brought what was written yet."""
    seen = thing.metadata.resource_version
    if seen.isdecimal() and version.isdecimal():
        return int(seen) < int(version)
    return bool(seen != version)
