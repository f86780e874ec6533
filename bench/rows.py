"""The rows that `make bench` keeps in a file, one for each round of who was measured."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benches import Result
from drain import TURNS


def read_rows(file: Path) -> list[dict[str, Any]]:
    """None where there is no such file yet."""
    rows: Any = json.loads(file.read_text()) if file.exists() else []
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("not a list of rows")
    return rows


def write_rows(file: Path, name: str, results: Sequence[Result]) -> None:
    """Replaces the rows of this benchmark but those of schedulers that had no turn now."""
    rows = read_rows(file)
    ours = [{"bench": name, **asdict(result)} for result in results]
    absent = set(TURNS) - {row["scheduler"] for row in ours}
    others = [row for row in rows if row.get("bench") != name or row.get("scheduler") in absent]
    # An interruption leaves the rows of before, or those of now.
    written = file.with_name(f"{file.name}.new")
    written.write_text(json.dumps([*others, *ours], indent=1) + "\n")
    os.replace(written, file)
