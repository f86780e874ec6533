"""The recorded requests of tests/server are what a real kube-scheduler sends today."""

import json
from pathlib import Path
from typing import Any

import pytest

from realparts.pytest_plugin import missing_parts_skip
from recorder.extender_requests import record_requests

RECORDED = Path(__file__).parents[1] / "server" / "recorded_requests"
MOST_BYTES = 300_000


def signature(value: Any) -> Any:
    """The keys of objects and the kinds of values; of a list, the signatures that its items
    have."""
    match value:
        case dict():
            return {key: signature(each) for key, each in value.items()}
        case list():
            signatures = {json.dumps(signature(each), sort_keys=True) for each in value}
            return [json.loads(each) for each in sorted(signatures)]
        case _:
            return type(value).__name__


def signatures_in(folder: Path) -> dict[str, Any]:
    signatures = {}
    for file in sorted(folder.glob("*.json")):
        document = json.loads(file.read_text())
        document["body"] = signature(json.loads(document["body"]))
        del document["headers"]["Content-Length"]  # counts digits of times and numbers
        signatures[file.name] = document
    return signatures


@pytest.mark.long
@pytest.mark.real("kube_scheduler")
def test_extender_is_sent_what_was_recorded(tmp_path: Path) -> None:
    with missing_parts_skip():
        record_requests(tmp_path)
    assert signatures_in(tmp_path) == signatures_in(RECORDED)


def test_recordings_for_the_extender_have_every_verb_in_both_forms() -> None:
    documents = [json.loads(file.read_text()) for file in RECORDED.glob("*.json")]
    assert {(each["verb"], each["nodeCacheCapable"]) for each in documents} == {
        (verb, knows_nodes)
        for verb in ("filter", "prioritize", "preempt", "bind")
        for knows_nodes in (True, False)
    }
    assert sum(len(each["body"].encode()) for each in documents) < MOST_BYTES
