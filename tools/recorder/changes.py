"""What differs between two recordings of the same scenarios, by kind, with one example of each.

Called by __main__; docs/kubernetes-versions.md holds its table for v1.36 and v1.37."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
NOTHING = "nothing"
LONGEST_EXAMPLE = 160


@dataclass(slots=True)
class Change:
    """One kind of change: where in the answer, in how many cases, and how one of them reads."""

    where: str
    cases: Counter[str] = field(default_factory=Counter)  # by family
    example: str = ""
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    same: int
    different: int
    missing: tuple[str, ...]  # recorded once, left out in the other
    changes: tuple[Change, ...]


def compare(before: Iterable[Json], after: Iterable[Json]) -> Comparison:
    """Cases are matched by id; the changes come with the most frequent first."""
    old = {case["id"]: case for case in before}
    new = {case["id"]: case for case in after}
    kinds: dict[str, Change] = {}
    different = 0
    for name in sorted(old.keys() & new.keys()):
        found = _by_kind(old[name]["expected"], new[name]["expected"])
        different += bool(found)
        for where, (was, became) in found.items():
            change = kinds.setdefault(where, Change(where, example=name))
            if not change.cases:
                change.before, change.after = _short(was), _short(became)
            change.cases[old[name]["family"]] += 1
    return Comparison(
        same=len(old.keys() & new.keys()) - different,
        different=different,
        missing=tuple(sorted(old.keys() ^ new.keys())),
        changes=tuple(sorted(kinds.values(), key=lambda kind: (-kind.cases.total(), kind.where))),
    )


def table(comparison: Comparison) -> str:
    """The comparison as a table in Markdown."""
    lines = [
        f"{comparison.different} of {comparison.same + comparison.different} answers changed.",
        "",
        "| what | cases | families | example | before | after |",
        "|---|---|---|---|---|---|",
    ]
    for change in comparison.changes:
        families = ", ".join(f"{name} {count}" for name, count in sorted(change.cases.items()))
        cells = (
            f"`{change.where}`",
            str(change.cases.total()),
            families,
            change.example,
            f"`{change.before}`",
            f"`{change.after}`",
        )
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    if comparison.missing:
        lines += ["", f"In one of the two only: {', '.join(comparison.missing)}."]
    return "\n".join(lines)


def _by_kind(before: Any, after: Any) -> dict[str, tuple[Any, Any]]:
    """The first difference of each kind: nodes' and plugins' own names do not make a kind."""
    found: dict[str, tuple[Any, Any]] = {}
    for where, was, became in _differences(before, after, ()):
        found.setdefault(_kind(where), (was, became))
    return found


def _differences(
    before: Any, after: Any, where: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            yield from _differences(
                before.get(key, NOTHING), after.get(key, NOTHING), (*where, key)
            )
    elif before != after:
        yield where, before, after


def _kind(where: tuple[str, ...]) -> str:
    """`filter/NODE/plugin`, `scores/ImageLocality/NODE/raw`: the part is named, the node is not."""
    named_by_node = {"filter": 1, "scores": 2, "total": 1, "candidates": 1, "dry_run_rejected": 1}
    parts = list(where)
    for part, distance in named_by_node.items():
        if part in parts and parts.index(part) + distance < len(parts):
            parts[parts.index(part) + distance] = "NODE"
    return "/".join(parts)


def _short(value: Any) -> str:
    text = re.sub(r"\s+", " ", str(value)).replace("`", "'")
    return text if len(text) <= LONGEST_EXAMPLE else text[: LONGEST_EXAMPLE - 1] + "…"
