"""Problems of a configuration with their path in the document, and ConfigError.

All modules of this package report problems this way; the commands print `ConfigError.problems`."""

import difflib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

Path = tuple[str | int, ...]

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_LONGEST_VALUE_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: its path in the document, and a text that completes "<place>: …"."""

    path: Path
    text: str


class ConfigError(Exception):
    """A configuration is rejected; `problems` has one sentence for each mistake."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


def path_text(path: Path) -> str:
    """Format a path: `profiles[0].plugins`, `data["scheduler.yaml"].profiles`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif not _PLAIN_KEY.fullmatch(step):
            text += f"[{json.dumps(step, ensure_ascii=False)}]"
        else:
            text += f".{step}" if text else step
    return text


def did_you_mean(name: str, valid: Sequence[str], *, likeness: float = 0.6) -> str:
    """Suggest a similar valid name: `, did you mean "score"?`. Without one, return a semicolon."""
    by_lower_case = {candidate.lower(): candidate for candidate in valid}
    near = difflib.get_close_matches(name.lower(), by_lower_case, n=1, cutoff=likeness)
    return f', did you mean "{by_lower_case[near[0]]}"?' if near else ";"


def value_text(value: object) -> str:
    """Describe a value of plain data with its type: `the string "a"`, `the integer 3`, `a list`."""
    match value:
        case None:
            return "null"
        case bool():
            return f"the boolean {json.dumps(value)}"
        case str():
            shown = value
            if len(shown) > _LONGEST_VALUE_SHOWN:
                shown = shown[:_LONGEST_VALUE_SHOWN] + "…"
            return f"the string {json.dumps(shown, ensure_ascii=False)}"
        case int():
            return f"the integer {value}"
        case float():
            return f"the number {value}"
        case dict():
            return "a mapping"
        case _:
            return "a list"
