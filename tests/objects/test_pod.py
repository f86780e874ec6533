"""A pod, and its signature: what pods of one template share."""

import tracemalloc
from typing import Any

import msgspec
import pytest

from lowtide.objects.pod import Pod, bytes_in_memory, once, signature_of
from lowtide.testing import make_pod

OWNER: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "name": "web",
    "uid": "rs",
    "controller": True,
}
TEMPLATE: dict[str, Any] = {
    "metadata": {
        "name": "web-1",
        "namespace": "default",
        "uid": "1",
        "resourceVersion": "10",
        "generation": 1,
        "labels": {"app": "web"},
        "annotations": {"note": "a"},
        "ownerReferences": [
            OWNER,
            {"kind": "Extra", "name": "x", "uid": "y"},
        ],
        "creationTimestamp": "2026-01-01T00:00:00Z",
    },
    "spec": {
        "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
        "priority": 0,
    },
    "status": {"phase": "Pending"},
}


def changed(path: str, value: Any, template: dict[str, Any] | None = None) -> Pod:
    """The template with one field set, by a path such as `metadata.name`."""
    data = msgspec.json.decode(msgspec.json.encode(template or TEMPLATE))
    *parents, last = path.split(".")
    at = data
    for step in parents:
        at = at.setdefault(step, {})
    at[last] = value
    return msgspec.convert(data, Pod)


BEFORE = msgspec.convert(TEMPLATE, Pod)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "web-2"),
        ("metadata.uid", "2"),
        ("metadata.resourceVersion", "11"),
        ("metadata.generation", 2),
        ("metadata.creationTimestamp", "2027-01-01T00:00:00Z"),
        ("metadata.deletionTimestamp", "2027-01-01T00:00:00Z"),
        ("status.phase", "Running"),
        ("status.nominatedNodeName", "a"),
        ("status.conditions", [{"type": "PodScheduled", "status": "False"}]),
        ("metadata.ownerReferences", [OWNER]),
    ],
)
def test_the_signature_stays_with_another(path: str, value: Any) -> None:
    assert signature_of(changed(path, value)) == signature_of(BEFORE)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.namespace", "prod"),
        ("metadata.labels", {"app": "db"}),
        ("metadata.annotations", {}),
        ("metadata.ownerReferences", []),
        ("metadata.ownerReferences", [OWNER | {"uid": "another"}]),
        ("metadata.ownerReferences", [OWNER | {"name": "another"}]),
        ("metadata.ownerReferences", [OWNER | {"apiVersion": "example.com/v1"}]),
        ("spec.priority", 1),
        ("spec.nodeName", "a"),
        ("spec.nodeSelector", {"zone": "a"}),
        ("spec.tolerations", [{"operator": "Exists"}]),
        ("spec.containers", [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]),
        ("spec.containers", [{"name": "main", "ports": [{"hostPort": 80}]}]),
        ("spec.schedulerName", "lowtide"),
        ("spec.overhead", {"cpu": "1"}),
        ("spec.volumes", [{"name": "v", "ephemeral": {}}]),
        ("spec.resourceClaims", [{"name": "c"}]),
    ],
)
def test_the_signature_changes_with_another(path: str, value: Any) -> None:
    assert signature_of(changed(path, value)) != signature_of(BEFORE)


@pytest.mark.parametrize(
    ("path", "value", "is_named"),
    [
        pytest.param(
            "spec.volumes", [{"name": "v", "ephemeral": {}}], True, id="an ephemeral volume"
        ),
        pytest.param("spec.resourceClaims", [{"name": "c"}], True, id="a resource claim"),
        pytest.param("spec.volumes", [{"name": "v", "emptyDir": {}}], False, id="another volume"),
    ],
)
def test_whether_name_and_uid_belong_to_the_signature(
    path: str, value: Any, is_named: bool
) -> None:
    template = msgspec.to_builtins(changed(path, value))
    signatures = {
        signature_of(msgspec.convert(template, Pod)),
        signature_of(changed("metadata.name", "web-2", template)),
        signature_of(changed("metadata.uid", "2", template)),
    }
    assert len(signatures) == (3 if is_named else 1)


@pytest.mark.parametrize(
    ("phase", "has_ended"),
    [("Pending", False), ("Running", False), ("Succeeded", True), ("Failed", True)],
)
def test_when_a_pod_has_ended(phase: str, has_ended: bool) -> None:
    assert changed("status.phase", phase).has_ended is has_ended


def test_what_a_pod_says_of_itself() -> None:
    assert (BEFORE.key, BEFORE.uid, BEFORE.labels) == ("default/web-1", "1", {"app": "web"})
    assert not BEFORE.is_terminating
    assert changed("metadata.deletionTimestamp", "2026-01-01T00:00:00Z").is_terminating


def test_unknown_fields_are_passed_over() -> None:
    assert changed("spec.somethingNew", {"a": 1}) == BEFORE


def with_volumes(*volumes: dict[str, object]) -> bytes:
    return signature_of(make_pod(spec={"volumes": list(volumes)}))


def test_the_volume_that_every_pod_gets_for_its_account_does_not_make_a_signature_of_its_own() -> (
    None
):
    one, other = (
        {"name": f"kube-api-access-{each}", "projected": {}} for each in ("x7k2p", "9zq4d")
    )
    assert with_volumes(one) == with_volumes(other) == with_volumes()


def test_a_claim_is_part_of_the_signature_and_the_name_of_its_volume_is_not() -> None:
    claim = {"persistentVolumeClaim": {"claimName": "data"}}
    assert with_volumes({"name": "a", **claim}) == with_volumes({"name": "b", **claim})
    assert with_volumes({"name": "a", **claim}) != with_volumes()


# Whose it is, and since when it runs.


@pytest.mark.parametrize(
    ("owners", "want"),
    [
        pytest.param([], None, id="nobody's"),
        pytest.param([{"kind": "Node", "name": "a"}], None, id="nobody's who only owns it"),
        pytest.param(
            [{"kind": "Node", "name": "a"}, {"kind": "Job", "name": "b", "controller": True}],
            "b",
            id="whoever controls it",
        ),
    ],
)
def test_a_pod_is(owners: list[dict[str, object]], want: str | None) -> None:
    controller = msgspec.convert({"metadata": {"ownerReferences": owners}}, Pod).controller
    assert (controller.name if controller else None) == want


NEW_YEAR = 1_767_225_600.0  # 2026-01-01T00:00:00Z


def container(started_at: str | None, restarts: int = 0) -> dict[str, object]:
    state = {"running": {"startedAt": started_at}} if started_at else {}
    return {"state": state, "restartCount": restarts}


@pytest.mark.parametrize(
    ("status", "want"),
    [
        pytest.param({"phase": "Pending"}, None, id="has not started before it runs"),
        pytest.param(
            {"phase": "Pending", "startTime": "2026-01-01T00:00:05Z"},
            None,
            id="has not started when its node only took it up",
        ),
        pytest.param(
            {"phase": "Running", "startTime": "2026-01-01T00:00:05Z"},
            NEW_YEAR + 5,
            id="started when its node took it up, where nothing better is known",
        ),
        pytest.param(
            {
                "phase": "Running",
                "startTime": "2026-01-01T00:00:05Z",
                "containerStatuses": [
                    container("2026-01-01T00:00:30Z"),
                    container("2026-01-01T00:00:20Z"),
                    container(None),
                ],
            },
            NEW_YEAR + 20,
            id="started with its first container",
        ),
        pytest.param(
            {
                "phase": "Running",
                "startTime": "2026-01-01T00:00:05Z",
                "containerStatuses": [container("2026-01-01T00:00:40Z", restarts=1)],
            },
            NEW_YEAR + 5,
            id="did not start again with a container that restarted",
        ),
        pytest.param(
            {
                "phase": "Running",
                "startTime": "2026-01-01T00:00:05Z",
                "containerStatuses": [
                    container(None, restarts=3),
                    container("2026-01-01T00:00:30Z"),
                ],
            },
            NEW_YEAR + 5,
            id="did not start with its second container if the first one restarts",
        ),
        pytest.param(
            {
                "phase": "Running",
                "containerStatuses": [container("2026-01-01T00:00:40Z", restarts=1)],
            },
            NEW_YEAR + 40,
            id="started with a restarted container if nothing better is known",
        ),
        pytest.param(
            {"phase": "Pending", "containerStatuses": [container("2026-01-01T00:00:20Z")]},
            NEW_YEAR + 20,
            id="started although others of its containers wait",
        ),
        pytest.param(
            {"phase": "Running", "startTime": "2026-01-01T01:00:05+01:00"},
            NEW_YEAR + 5,
            id="may tell the time of another zone",
        ),
        pytest.param(
            {"phase": "Running", "startTime": "new year"}, None, id="may tell no time at all"
        ),
        pytest.param(
            {
                "phase": "Running",
                "containerStatuses": [container("?"), container("2026-01-01T00:00:20Z")],
            },
            NEW_YEAR + 20,
            id="may tell one time that can be read",
        ),
    ],
)
def test_a_pod(status: dict[str, object], want: float | None) -> None:
    assert msgspec.convert({"status": status}, Pod).started_at == want


def test_what_is_worked_out_once_stays_with_its_pod_and_with_no_other() -> None:
    asked: list[str] = []

    @once
    def shouted(pod: Pod) -> str:
        asked.append(pod.name)
        return pod.name.upper()

    web, fresh = make_pod("web"), make_pod("web")
    other = msgspec.structs.replace(web, metadata=make_pod("db").metadata)
    assert [shouted(pod) for pod in (web, web, other, fresh, other)] == [
        "WEB",
        "WEB",
        "DB",
        "WEB",
        "DB",
    ]
    assert asked == ["web", "db", "web"]
    assert web == fresh
    assert b"WEB" not in msgspec.json.encode(web)


MANY = 2000
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"spec": {"containers": [{}] * MANY}}, id="containers"),
        pytest.param({"spec": {"tolerations": [{}] * MANY}}, id="tolerations"),
        pytest.param({"spec": {"volumes": [{}] * MANY}}, id="volumes"),
        pytest.param({"spec": {"topologySpreadConstraints": [{}] * MANY}}, id="constraints"),
        pytest.param({"spec": {"affinity": {"podAffinity": {REQUIRED: [{}] * MANY}}}}, id="terms"),
        pytest.param({"status": {"conditions": [{}] * MANY}}, id="conditions"),
        pytest.param({"metadata": {"ownerReferences": [{}] * MANY}}, id="owners"),
        pytest.param({"metadata": {"labels": {f"{n}": "" for n in range(MANY)}}}, id="labels"),
        pytest.param({"metadata": {"annotations": {"a": "x" * MANY}}}, id="a long text"),
    ],
)
def test_no_pod_takes_much_more_memory_than_is_counted(fields: Any) -> None:
    json = msgspec.json.encode(fields)
    decode = msgspec.json.Decoder(Pod).decode
    decode(json)
    tracemalloc.start()
    try:
        pods = [decode(json) for _ in range(5)]
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 1.2 * len(pods) * bytes_in_memory(pods[0])
