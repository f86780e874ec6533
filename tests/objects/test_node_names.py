"""Node names as a request has them."""

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lowtide.objects.node_names import NameTable, NodeNames

NAMES = st.text(st.sampled_from("ab-.é"), max_size=20)


@pytest.mark.parametrize(
    "json",
    [
        pytest.param(b'["a","b"]', id="several"),
        pytest.param(b'["a"]', id="one"),
        pytest.param(b'[""]', id="an empty one"),
        pytest.param('["ä","b"]'.encode(), id="one that is not ASCII"),
        pytest.param(b'["a,b","]["]', id="punctuation"),
    ],
)
def test_they_are_what_json_says(json: bytes) -> None:
    names = NodeNames.from_json(json)
    assert names is not None
    want = msgspec.json.decode(json)
    assert (list(names), len(names), names[0], names[-1:]) == (
        want,
        len(want),
        want[0],
        want[-1:],
    )
    assert names == want
    assert names != [*want, "more"]
    assert msgspec.json.decode(names.json_of([len(want) - 1])) == want[-1:]
    assert names.json_of([]) == b"[]"


@pytest.mark.parametrize(
    "json",
    [
        pytest.param(b"[]", id="none"),
        pytest.param(b"null", id="null"),
        pytest.param(b'["a", "b"]', id="a space"),
        pytest.param(b'["a\\"","b"]', id="an escape"),
        pytest.param(b'["a",1,"b"]', id="a number"),
        pytest.param(b'["a",["b"],"c"]', id="a list"),
        pytest.param(b'["a"', id="no end"),
        pytest.param(b'["a":"b"]', id="a colon"),
        pytest.param(b'["a","b","]', id="an odd quote"),
    ],
)
def test_with_this_in_it_a_list_is_read_by_others(json: bytes) -> None:
    assert NodeNames.from_json(json) is None


@given(table=st.lists(NAMES, unique=True), asked=st.lists(NAMES))
@example(table=["node-1"], asked=["node-1", "node-10", "node-1node-1", "node-"])
def test_each_is_found_where_it_stands(table: list[str], asked: list[str]) -> None:
    found = NameTable(NodeNames.made_of(table)).find(NodeNames.made_of([*asked, *table]))
    want = [table.index(name) if name in table else -1 for name in [*asked, *table]]
    assert found.tolist() == want


@given(st.lists(NAMES, min_size=1))
def test_that_one_stands_there_twice_is_never_overlooked(names: list[str]) -> None:
    made = NodeNames.made_of(names)
    assert made == names
    assert made.may_repeat or len(set(names)) == len(names)


def test_of_many_none_is_mistaken_for_another() -> None:
    names = NodeNames.made_of([f"pool-{number % 7}-node-{number}" for number in range(50_000)])
    assert not names.may_repeat
    found = NameTable(names).find(NodeNames.made_of(reversed(names)))
    assert np.array_equal(found, np.arange(50_000)[::-1])
    others = NodeNames.made_of([f"{name}x" for name in names])
    assert set(NameTable(names).find(others).tolist()) == {-1}


def test_names_of_one_hash_are_told_apart() -> None:
    class Alike(NodeNames):
        def hashes(self, seed: int = 0) -> np.ndarray:  # type: ignore[type-arg]
            return np.full(len(self), 7, np.uint64) if seed < 2 else super().hashes(seed)

    table = NameTable(Alike.made_of(["a", "b"]))
    assert table.find(Alike.made_of(["b", "c", "a"])).tolist() == [1, -1, 0]
