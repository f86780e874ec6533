"""The recorder with the real kube-scheduler: it answers what was recorded before with the same."""

from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from realparts.parts import say_on_stderr
from realparts.pytest_plugin import missing_parts_skip
from recorder.build import obtain_recorder
from recorder.recording import Recorded, read_cases, record

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]  # the first build takes minutes

ORACLE = Path(__file__).parents[1] / "oracle"


@pytest.fixture(scope="module")
def recorder() -> Path:
    with missing_parts_skip():
        return obtain_recorder("1.36.4", say_on_stderr)


def first_cases(folder: Path, count: int) -> list[dict[str, Any]]:
    """Some of each file: all of them take a minute."""
    cases = []
    for path in sorted(folder.glob("*.jsonl.gz")):
        cases += islice(read_cases(path), count)
    return cases


@pytest.mark.parametrize(
    ("folder", "count"),
    [
        pytest.param("data", 2, id="decides as it did"),
        pytest.param("queue_data", 10, id="takes pods in the order it did"),
    ],
)
def test_records_the_same_again(recorder: Path, tmp_path: Path, folder: str, count: int) -> None:
    cases = first_cases(ORACLE / folder, count)
    file = tmp_path / "recorded.jsonl.gz"
    done = record(recorder, cases, repeat=1, path=file, say=say_on_stderr)
    assert done == Recorded(answered=len(cases), problems=())
    assert {case["id"]: case["expected"] for case in read_cases(file)} == {
        case["id"]: case["expected"] for case in cases
    }


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        pytest.param({"nodes": []}, "its scenario has no pod", id="without a pod"),
        pytest.param({"nodse": []}, 'unknown field "nodse"', id="with a word it does not know"),
        pytest.param(
            {"pod": {"metadata": {"name": "a"}, "spec": {"schedulerName": "mine"}}},
            'no profile is called "mine"',
            id="for a scheduler that is not configured",
        ),
        pytest.param(
            {"steps": [{"at": 1, "do": "pray"}]}, 'nothing is called "pray"', id="of an odd step"
        ),
    ],
)
def test_a_scenario_that_cannot_be_asked_is_left_out_with_a_sentence(
    recorder: Path, tmp_path: Path, scenario: dict[str, Any], said: str
) -> None:
    case = {"id": "odd", "family": "f", "scenario": scenario}
    file = tmp_path / "recorded.jsonl"
    done = record(recorder, [case], repeat=1, path=file, say=say_on_stderr)
    assert done.answered == 0
    assert len(done.problems) == 1
    assert done.problems[0].startswith('line 1, case "odd": ')
    assert said in done.problems[0]
