"""The recorded cases of a folder, as tests go by them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recorder.recording import read_cases


@dataclass(frozen=True)
class Case:
    id: str
    family: str
    scenario: dict[str, Any]
    expected: dict[str, Any]


def cases_in(folder: Path) -> Iterator[Case]:
    for path in sorted(folder.glob("*.jsonl.gz")):
        for case in read_cases(path):
            yield Case(**case)
