"""The fields that are read but have no effect yet, and the warning for each. Called by `load`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lowtide.config.errors import Path
from lowtide.config.yaml_document import Document

EACH = "*"  # in a path: every item of a list


def _always(_value: Any) -> bool:
    return True


def _is_true(value: Any) -> bool:
    return value is True


def _asks_for_fewer_nodes(value: Any) -> bool:
    return value not in (0, 100)


def _is_not_json(value: Any) -> bool:
    return value not in ("", "application/json")


@dataclass(frozen=True, slots=True)
class NotActedOn:
    """One field, what happens instead, and which of its values cause a warning."""

    path: tuple[str, ...]
    instead: str
    warns_about: Callable[[Any], bool] = _always


NOT_ACTED_ON = (
    NotActedOn(("parallelism",), "all nodes are evaluated at once"),
    NotActedOn(("percentageOfNodesToScore",), "every node is evaluated", _asks_for_fewer_nodes),
    NotActedOn(
        ("profiles", EACH, "percentageOfNodesToScore"),
        "every node is evaluated",
        _asks_for_fewer_nodes,
    ),
    NotActedOn(("enableProfiling",), "no profiles are served", _is_true),
    NotActedOn(("enableContentionProfiling",), "no profiles are served", _is_true),
    NotActedOn(("delayCacheUntilActive",), "a standby keeps its cache filled", _is_true),
    NotActedOn(("clientConnection", "contentType"), "JSON is used", _is_not_json),
    NotActedOn(("clientConnection", "acceptContentTypes"), "JSON is used", _is_not_json),
)


def warnings_about(document: Document) -> Iterator[str]:
    """Yield one warning for each field of the table that the document sets."""
    for row in NOT_ACTED_ON:
        for path, value in _values_at(document.data, row.path, ()):
            if value is None or not row.warns_about(value):
                continue
            yield document.problem(path, f"has no effect yet: {row.instead}")
            break


def _values_at(data: Any, wanted: tuple[str, ...], path: Path) -> Iterator[tuple[Path, Any]]:
    if not wanted:
        yield path, data
    elif wanted[0] == EACH and isinstance(data, list):
        for index, item in enumerate(data):
            yield from _values_at(item, wanted[1:], (*path, index))
    elif isinstance(data, dict) and wanted[0] in data:
        yield from _values_at(data[wanted[0]], wanted[1:], (*path, wanted[0]))
