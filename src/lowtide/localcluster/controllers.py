"""What works in the background of a cluster: deployments make replica sets, these make pods.

Fed with the store's changes, driven by LocalCluster through `step`; deterministic, since names
come from the store's own chance."""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable

from lowtide.localcluster.changes import Change, ChangeType
from lowtide.localcluster.documents import Json, cloned
from lowtide.localcluster.kubelet import Kubelet
from lowtide.localcluster.store import SUFFIX_LETTERS, Key, Part, Store
from lowtide.localcluster.timestamps import timestamp

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
_OWNER_PLURALS = {"Deployment": "deployments", "ReplicaSet": "replicasets"}
Work = tuple[str, Key]  # plural, (namespace, name)


class Controllers:
    """Deployment, replica set, garbage and kubelet duties as one queue of objects to look at."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._work: OrderedDict[Work, None] = OrderedDict()
        self._owned: dict[str, dict[Work, None]] = {}
        self._kubelet = Kubelet(store, clock)
        self._unsubscribe: Callable[[], None] | None = None
        self._duties: dict[str, Callable[[Json], None]] = {
            "deployments": self._reconcile_deployment,
            "replicasets": self._reconcile_replica_set,
            "pods": self._kubelet.run_pod,
            "nodes": self._kubelet.report_node,
        }

    def start(self) -> None:
        """Takes up what exists already and follows every change from here on."""
        self._unsubscribe = self._store.subscribe(self._notice)
        for plural in self._duties:
            for item in self._store.items(plural):
                self._index(plural, item, is_gone=False)
                self._work[plural, _key(item)] = None

    def stop(self) -> None:
        if self._unsubscribe:
            self._unsubscribe()
            self._unsubscribe = None

    def has_work(self) -> bool:
        return bool(self._work)

    def step(self, at_most: int = 200) -> None:
        """Looks at up to `at_most` objects, so that a driver can serve requests in between."""
        for _ in range(min(at_most, len(self._work))):
            (plural, (namespace, name)), _nothing = self._work.popitem(last=False)
            item = self._store.find(plural, namespace, name)
            if item is None:
                continue
            if self._is_orphan(item) and "deletionTimestamp" not in item["metadata"]:
                self._store.delete(plural, namespace, name)
            else:
                self._duties[plural](item)

    def settle(self) -> None:
        while self._work:
            self.step()

    def _notice(self, change: Change) -> None:
        """Only takes notes: writing here would put changes out of order for other listeners."""
        if change.plural not in self._duties:
            return
        item, is_gone = change.item, change.type is ChangeType.DELETED
        self._index(change.plural, item, is_gone=is_gone)
        self._work[change.plural, _key(item)] = None
        owner = _controller(item)
        if owner and owner["kind"] in _OWNER_PLURALS:
            key = (item["metadata"].get("namespace", ""), owner["name"])
            self._work[_OWNER_PLURALS[owner["kind"]], key] = None
        if is_gone:
            self._work.update(self._owned.pop(item["metadata"]["uid"], {}))
        if change.plural == "nodes" and change.type is not ChangeType.MODIFIED:
            for pod_key in self._kubelet.pods_on(item["metadata"]["name"]):
                self._work["pods", pod_key] = None

    def _index(self, plural: str, item: Json, *, is_gone: bool) -> None:
        if plural == "pods":
            self._kubelet.notice_pod(item, is_gone=is_gone)
        if owner := _controller(item):
            owned = self._owned.setdefault(owner["uid"], {})
            if is_gone:
                owned.pop((plural, _key(item)), None)
            else:
                owned[plural, _key(item)] = None

    def _is_orphan(self, item: Json) -> bool:
        owner = _controller(item)
        if owner is None or owner["kind"] not in _OWNER_PLURALS:
            return False
        plural = _OWNER_PLURALS[owner["kind"]]
        found = self._store.find(plural, item["metadata"]["namespace"], owner["name"])
        return found is None or found["metadata"]["uid"] != owner["uid"]

    def _owned_by(self, owner: Json, plural: str) -> list[Json]:
        keys = self._owned.get(owner["metadata"]["uid"], {})
        found = [self._store.find(plural, *key) for kind, key in keys if kind == plural]
        return [item for item in found if item is not None]

    def _reconcile_deployment(self, deployment: Json) -> None:
        """The new replica set gets all replicas; older ones go once its pods are ready."""
        metadata, spec = deployment["metadata"], deployment["spec"]
        template_hash = _template_hash(spec["template"])
        wanted_name = f"{metadata['name']}-{template_hash}"
        owned = self._owned_by(deployment, "replicasets")
        current = next((one for one in owned if one["metadata"]["name"] == wanted_name), None)
        if current is None:
            revision = 1 + max((_revision(one) for one in owned), default=0)
            current = self._make_replica_set(deployment, template_hash, revision)
        elif current["spec"]["replicas"] != spec["replicas"]:
            current = self._scale(current, spec["replicas"])
        older = [one for one in owned if one["metadata"]["name"] != wanted_name]
        if current["status"].get("readyReplicas", 0) >= spec["replicas"]:
            for replica_set in older:
                if replica_set["spec"]["replicas"]:
                    self._scale(replica_set, 0)
        self._report_deployment(deployment, current, older)

    def _make_replica_set(self, deployment: Json, template_hash: str, revision: int) -> Json:
        metadata, template = deployment["metadata"], cloned(deployment["spec"]["template"])
        labels = {**(template["metadata"].get("labels") or {}), HASH_LABEL: template_hash}
        template["metadata"]["labels"] = labels
        selector = cloned(deployment["spec"]["selector"])
        selector.setdefault("matchLabels", {})[HASH_LABEL] = template_hash
        replica_set = {
            "metadata": {
                "name": f"{metadata['name']}-{template_hash}",
                "namespace": metadata["namespace"],
                "labels": dict(labels),
                "annotations": {REVISION: str(revision)},
                "ownerReferences": [_reference(deployment)],
            },
            "spec": {
                "replicas": deployment["spec"]["replicas"],
                "selector": selector,
                "template": template,
            },
        }
        name = replica_set["metadata"]["name"]
        found = self._store.find("replicasets", metadata["namespace"], name)
        return found or self._store.create("replicasets", replica_set)

    def _scale(self, replica_set: Json, replicas: int) -> Json:
        metadata = replica_set["metadata"]
        change = {"spec": {"replicas": replicas}}
        return self._store.patch("replicasets", metadata["namespace"], metadata["name"], change)

    def _report_deployment(self, deployment: Json, current: Json, older: list[Json]) -> None:
        wanted = deployment["spec"]["replicas"]
        everyone = [current, *older]
        ready = sum(one["status"].get("readyReplicas", 0) for one in everyone)
        counts = {
            "replicas": sum(one["status"].get("replicas", 0) for one in everyone),
            "updatedReplicas": current["status"].get("replicas", 0),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "unavailableReplicas": max(0, wanted - ready),
        }
        status = {key: count for key, count in counts.items() if count}
        status["observedGeneration"] = deployment["metadata"]["generation"]
        status["conditions"] = self._deployment_conditions(deployment, current, ready >= wanted)
        self._write_status("deployments", deployment, status)

    def _deployment_conditions(
        self, deployment: Json, current: Json, is_available: bool
    ) -> list[Json]:
        name = current["metadata"]["name"]
        is_complete = current["status"].get("readyReplicas", 0) >= deployment["spec"]["replicas"]
        available = (
            ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
            if is_available
            else (
                "False",
                "MinimumReplicasUnavailable",
                "Deployment does not have minimum availability.",
            )
        )
        progressing = (
            ("True", "NewReplicaSetAvailable", f'ReplicaSet "{name}" has successfully progressed.')
            if is_complete
            else ("True", "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.')
        )
        before = {one["type"]: one for one in deployment["status"].get("conditions") or []}
        now = timestamp(self._clock())
        return [
            _condition("Available", available, before.get("Available"), now),
            _condition("Progressing", progressing, before.get("Progressing"), now),
        ]

    def _reconcile_replica_set(self, replica_set: Json) -> None:
        pods = [
            pod
            for pod in self._owned_by(replica_set, "pods")
            if "deletionTimestamp" not in pod["metadata"]
            and pod["status"]["phase"] not in ("Succeeded", "Failed")
        ]
        missing = replica_set["spec"]["replicas"] - len(pods)
        pods += [self._make_pod(replica_set) for _ in range(missing)]
        if missing < 0:
            pods.sort(key=_keeping_rank)
            for pod in pods[missing:]:
                metadata = pod["metadata"]
                self._store.delete("pods", metadata["namespace"], metadata["name"])
            pods = pods[:missing]
        ready = sum(1 for pod in pods if _is_ready(pod))
        counts = {
            "fullyLabeledReplicas": len(pods),
            "readyReplicas": ready,
            "availableReplicas": ready,
        }
        status = {key: count for key, count in counts.items() if count}
        status["replicas"] = len(pods)
        status["observedGeneration"] = replica_set["metadata"]["generation"]
        self._write_status("replicasets", replica_set, status)

    def _make_pod(self, replica_set: Json) -> Json:
        metadata, template = replica_set["metadata"], replica_set["spec"]["template"]
        pod_metadata = {
            key: cloned(value)
            for key, value in template["metadata"].items()
            if key in ("labels", "annotations")
        }
        pod_metadata |= {
            "generateName": f"{metadata['name']}-",
            "namespace": metadata["namespace"],
            "ownerReferences": [_reference(replica_set)],
        }
        return self._store.create("pods", {"metadata": pod_metadata, "spec": template["spec"]})

    def _write_status(self, plural: str, item: Json, status: Json) -> None:
        metadata = item["metadata"]
        found = self._store.find(plural, metadata["namespace"], metadata["name"])
        if found is not None:
            self._store.update(plural, {**found, "status": status}, part=Part.STATUS)


def _key(item: Json) -> Key:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def _controller(item: Json) -> Json | None:
    owners: list[Json] = item["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)


def _reference(owner: Json) -> Json:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _template_hash(template: Json) -> str:
    digest = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).digest()
    return "".join(SUFFIX_LETTERS[byte % len(SUFFIX_LETTERS)] for byte in digest[:10])


def _revision(replica_set: Json) -> int:
    return int((replica_set["metadata"].get("annotations") or {}).get(REVISION, "0"))


def _condition(kind: str, now_is: tuple[str, str, str], before: Json | None, now: str) -> Json:
    status, reason, message = now_is
    is_same = before is not None and before["status"] == status
    since = before["lastTransitionTime"] if before is not None and is_same else now
    is_equal = is_same and before is not None and before["reason"] == reason
    return {
        "type": kind,
        "status": status,
        "lastUpdateTime": before["lastUpdateTime"] if is_equal and before else now,
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    }


def _keeping_rank(pod: Json) -> tuple[bool, bool, str, str]:
    """Who stays when there are too many: bound before unbound, ready before not, old before new."""
    metadata = pod["metadata"]
    is_unbound = not pod["spec"].get("nodeName")
    return is_unbound, not _is_ready(pod), metadata["creationTimestamp"], metadata["name"]


def _is_ready(pod: Json) -> bool:
    conditions = pod["status"].get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
