"""The commands of `python tools/recorder`, as far as they need no kube-scheduler."""

from pathlib import Path

import pytest

from recorder.__main__ import main
from recorder.recording import read_cases, write_cases


@pytest.mark.parametrize(
    ("what", "family"), [("clusters", "clusters"), ("queues", "queue"), ("wakes", "wakes")]
)
def test_make_writes_as_many_cases_as_asked(tmp_path: Path, what: str, family: str) -> None:
    file = tmp_path / "made.jsonl.gz"
    assert main(["make", what, "--cases", "2", str(file)]) == 0
    assert [case["family"] for case in read_cases(file)] == [f"recorded_{family}"] * 2


def test_compare_prints_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cases.jsonl"
    write_cases(file, [{"id": "a", "family": "f", "scenario": {}, "expected": {}}])
    assert main(["compare", str(file), str(file)]) == 0
    assert capsys.readouterr().out.startswith("0 of 1 answers changed.\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(
            ["--kubernetes", "1.36.4", "missing.jsonl", "out.jsonl"],
            "recorder: missing.jsonl cannot be read: [Errno 2] No such file or directory: "
            "'missing.jsonl'\n",
            id="names a file that is not there",
        ),
        pytest.param(
            ["--kubernetes", "next", "/dev/null", "out.jsonl"],
            "recorder: 'next' is no version of Kubernetes; one is like 1.36.4\n",
            id="names what is no version",
        ),
    ],
)
def test_record_tells_in_one_line_what_is_wrong(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["record", *arguments]) == 1
    assert capsys.readouterr().err == said
