from typing import Any

import pytest

from lowtide.localcluster.documents import Json, cloned
from lowtide.localcluster.failures import StatusError
from lowtide.localcluster.patches import PatchForm, patched

OLD = {"type": "Ready", "status": "True"}
SCHEDULED = {"type": "PodScheduled", "status": "False", "message": "kept"}


@pytest.mark.parametrize(
    ("target", "patch", "want"),
    [
        pytest.param(
            {"conditions": [OLD, SCHEDULED]},
            {"conditions": [{"type": "PodScheduled", "status": "True", "reason": "x"}]},
            {"conditions": [OLD, {**SCHEDULED, "status": "True", "reason": "x"}]},
            id="merges conditions by type",
        ),
        pytest.param(
            {"conditions": [OLD]},
            {"conditions": [SCHEDULED], "$setElementOrder/conditions": [{"type": "PodScheduled"}]},
            {"conditions": [SCHEDULED, OLD]},
            id="puts conditions in the order asked for",
        ),
        pytest.param(
            {"conditions": [OLD, SCHEDULED]},
            {"conditions": [{"type": "Ready", "$patch": "delete"}]},
            {"conditions": [SCHEDULED]},
            id="deletes a merged item",
        ),
        pytest.param(
            {"taints": [{"key": "a"}]},
            {"taints": [{"key": "b"}]},
            {"taints": [{"key": "b"}]},
            id="replaces taints whole",
        ),
        pytest.param(
            {"labels": {"a": "1", "b": "2"}},
            {"labels": {"a": None, "c": "3"}},
            {"labels": {"b": "2", "c": "3"}},
            id="takes away a label that is null",
        ),
        pytest.param(
            {"finalizers": ["a", "b"]},
            {"$deleteFromPrimitiveList/finalizers": ["a"]},
            {"finalizers": ["b"]},
            id="takes one finalizer away",
        ),
        pytest.param(
            {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
            {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}},
            {"strategy": {"type": "Recreate"}},
            id="keeps only the keys to retain",
        ),
        pytest.param(
            {"affinity": {"a": 1}},
            {"affinity": {"$patch": "replace", "b": 2}},
            {"affinity": {"b": 2}},
            id="replaces when told to",
        ),
    ],
)
def test_strategic_merge(target: Json, patch: Json, want: Json) -> None:
    assert patched(cloned(target), patch, PatchForm.STRATEGIC) == want


def test_merge_patch_replaces_lists_and_drops_nulls() -> None:
    target = {"a": {"b": 1, "c": 2}, "list": [1, 2]}
    patch = {"a": {"b": None, "d": {"e": 3}}, "list": [3]}
    assert patched(target, patch, PatchForm.MERGE) == {"a": {"c": 2, "d": {"e": 3}}, "list": [3]}


@pytest.mark.parametrize(
    ("operations", "want"),
    [
        pytest.param(
            [{"op": "add", "path": "/labels/a~1b", "value": "x"}],
            {"labels": {"old": "1", "a/b": "x"}, "list": [1, 2]},
            id="adds under an escaped key",
        ),
        pytest.param(
            [{"op": "add", "path": "/list/-", "value": 3}, {"op": "remove", "path": "/list/0"}],
            {"labels": {"old": "1"}, "list": [2, 3]},
            id="appends and removes",
        ),
        pytest.param(
            [
                {"op": "test", "path": "/list/1", "value": 2},
                {"op": "replace", "path": "/list/1", "value": 9},
            ],
            {"labels": {"old": "1"}, "list": [1, 9]},
            id="replaces what was tested",
        ),
        pytest.param(
            [{"op": "move", "from": "/labels/old", "path": "/labels/new"}],
            {"labels": {"new": "1"}, "list": [1, 2]},
            id="moves",
        ),
    ],
)
def test_json_patch(operations: list[Json], want: Json) -> None:
    target = {"labels": {"old": "1"}, "list": [1, 2]}
    assert patched(target, operations, PatchForm.JSON) == want


@pytest.mark.parametrize(
    ("form", "patch"),
    [
        pytest.param(
            PatchForm.JSON, [{"op": "remove", "path": "/no"}], id="rejects an absent path"
        ),
        pytest.param(
            PatchForm.JSON,
            [{"op": "test", "path": "/a", "value": 2}],
            id="rejects when a test fails",
        ),
        pytest.param(PatchForm.JSON, [{"op": "grow", "path": "/a"}], id="rejects an unknown op"),
        pytest.param(PatchForm.JSON, {"a": 1}, id="rejects an object as JSON patch"),
        pytest.param(PatchForm.MERGE, [1], id="rejects a list as merge patch"),
    ],
)
def test_bad_patch(form: PatchForm, patch: Any) -> None:
    with pytest.raises(StatusError) as rejected:
        patched({"a": 1}, patch, form)
    assert rejected.value.code == 400
