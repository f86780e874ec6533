import json
from typing import Any

import msgspec

from lowtide.objects.kinds import KIND_OF
from lowtide.objects.pod import Pod, signature_of
from lowtide.objects.storage import PersistentVolumeClaim
from lowtide.records.event_form import encode
from lowtide.records.kept_parts import DIGEST_ANNOTATION, READ_ANNOTATIONS, KeptParts
from lowtide.testing import make_node, make_pod

KEPT = KeptParts(b"salt")
SECRET = "hunter2"


def test_nothing_secret_of_a_whole_manifest_is_kept() -> None:
    manifest: dict[str, Any] = {
        "metadata": {
            "name": "web",
            "managedFields": [{"fieldsV1": {"f:env": SECRET}}],
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"env": SECRET}),
                "vault.example/token": SECRET,
            },
        },
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "command": ["run", f"--password={SECRET}"],
                    "args": [SECRET],
                    "env": [{"name": "PASSWORD", "value": SECRET}],
                    "envFrom": [{"secretRef": {"name": SECRET}}],
                    "livenessProbe": {"exec": {"command": [SECRET]}},
                }
            ],
            "volumes": [
                {"name": "a", "secret": {"secretName": SECRET}},
                {"name": "b", "projected": {"sources": [{"secret": {"name": SECRET}}]}},
                {"name": "c", "hostPath": {"path": f"/{SECRET}"}},
            ],
            "imagePullSecrets": [{"name": SECRET}],
        },
        "status": {
            "conditions": [{"type": "PodScheduled", "status": "False", "message": SECRET}],
            "message": SECRET,
        },
    }
    pod = msgspec.convert(manifest, Pod)
    assert SECRET.encode() in encode(pod)  # annotations and messages would be written
    assert SECRET.encode() not in encode(KEPT.without_left_out(pod))


def test_annotations_that_plugins_read_are_kept_with_their_values() -> None:
    annotations = dict.fromkeys(READ_ANNOTATIONS, "value")
    pod = make_pod(annotations=annotations)
    assert KEPT.without_left_out(pod) is pod
    more = make_pod(annotations={**annotations, "other": "value"})
    kept = KEPT.without_left_out(more).metadata.annotations
    assert kept.keys() == {*READ_ANNOTATIONS, DIGEST_ANNOTATION}
    assert KeptParts(b"salt", ["other"]).without_left_out(more) is more


def test_class_of_a_claim_is_kept() -> None:
    key = "volume.beta.kubernetes.io/storage-class"
    manifest = {"metadata": {"annotations": {key: "fast", "other": "x"}}}
    claim = msgspec.convert(manifest, PersistentVolumeClaim)
    assert KEPT.without_left_out(claim).class_name == "fast"


def test_change_of_an_annotation_that_is_left_out_is_still_a_change() -> None:
    one, same = (
        make_pod(annotations={"a": "1", "b": "2"}),
        make_pod(annotations={"a": "1", "b": "2"}),
    )
    others = [
        make_pod(annotations={"a": "1", "b": "3"}),
        make_pod(annotations={"a": "1"}),
        make_pod(annotations={"a": "1b", "": "2"}),
        make_pod(),
    ]
    signatures = {signature_of(KEPT.without_left_out(each)) for each in others}
    assert signature_of(KEPT.without_left_out(one)) == signature_of(KEPT.without_left_out(same))
    assert len(signatures | {signature_of(KEPT.without_left_out(one))}) == 5


def test_digest_depends_on_the_salt() -> None:
    node = make_node(annotations={"a": "1"})
    digests = {
        KeptParts(salt).without_left_out(node).metadata.annotations[DIGEST_ANNOTATION]
        for salt in (b"1", b"2")
    }
    assert len(digests) == 2


def test_objects_of_every_kind_are_taken() -> None:
    for kind in KIND_OF:
        assert KEPT.without_left_out(kind()) == kind()
