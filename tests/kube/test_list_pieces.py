"""Lists that are cut wherever it may be: put together again, nothing is missing."""

import json
from typing import Any

import msgspec
import pytest

from lowtide.kube.list_pieces import ListPieces

VERSION = {"resourceVersion": "7"}


def spelled(items: list[Any], *, indent: int | None = None) -> bytes:
    document = {"kind": "ThingList", "metadata": VERSION, "items": items}
    separators = (",", ":") if indent is None else None
    return json.dumps(document, indent=indent, separators=separators).encode()


def taken_apart(text: bytes, step: int) -> list[Any]:
    """Every piece that can be decoded, and the rest."""
    pieces, decoded = ListPieces(piece_bytes=100), []
    for start in range(0, len(text), step):
        pieces.add(text[start : start + step])
        while (piece := pieces.next_piece()) is not None:
            try:
                decoded.append(msgspec.json.decode(piece))
            except msgspec.DecodeError:
                continue
            pieces.drop_piece()
    return [*decoded, msgspec.json.decode(pieces.rest())]


def plain(number: int) -> Any:
    return {"metadata": {"name": f"thing-{number}"}, "spec": {"size": number}}


def nested(number: int) -> Any:
    templates = [{"metadata": {"name": f"{part}-{number}"}} for part in "abc"]
    return {"metadata": {"name": f"thing-{number}"}, "spec": {"templates": templates}}


def with_text(number: int) -> Any:
    return {"metadata": {"name": f"thing-{number}"}, "spec": {"text": '},{"metadata":{'}}


def typed(number: int) -> Any:
    return {"apiVersion": "v1", "kind": "Thing", **plain(number)}


@pytest.mark.parametrize("step", [1, 7, 64, 99, 250, 10_000])
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(plain, id="finds every object"),
        pytest.param(nested, id="is not misled by objects inside of objects"),
        pytest.param(with_text, id="is not misled by text"),
        pytest.param(typed, id="leaves a list whole whose objects begin otherwise"),
    ],
)
def test_a_list_in_pieces(make: Any, step: int) -> None:
    items = [make(number) for number in range(40)]
    found = taken_apart(spelled(items), step)
    assert [item for each in found for item in each["items"]] == items
    assert [each["metadata"] for each in found] == [VERSION, *[{}] * (len(found) - 1)]


def test_a_piece_has_no_more_objects_than_were_wanted_at_once() -> None:
    found = taken_apart(spelled([plain(number) for number in range(40)]), step=10)
    assert {len(each["items"]) for each in found} == {1, 2}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(spelled([]), id="is left whole when it is empty"),
        pytest.param(spelled([plain(1)]), id="is left whole when it has one object"),
        pytest.param(
            spelled([plain(number) for number in range(9)], indent=1),
            id="is left whole when it is spelled with spaces",
        ),
    ],
)
def test_a_list_in_one_piece(text: bytes) -> None:
    assert taken_apart(text, step=10) == [json.loads(text)]
