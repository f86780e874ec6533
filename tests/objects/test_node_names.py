"""Node names as a request has them."""

import msgspec
import pytest

from lowtide.objects.node_names import NodeNames


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
    names = NodeNames.of(json)
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
    ],
)
def test_with_this_in_it_a_list_is_read_by_others(json: bytes) -> None:
    assert NodeNames.of(json) is None
