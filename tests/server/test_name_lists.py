"""Lists of names, known again by their bytes."""

import gc

import msgspec
import pytest

from lowtide.objects.node_names import NodeNames
from lowtide.server.extender_requests import read_names
from lowtide.server.name_lists import MOST_LISTS, NameLists


def test_the_same_bytes_give_the_same_list() -> None:
    read: list[bytes] = []

    def names(json: bytes) -> list[str]:
        read.append(json)
        return msgspec.json.decode(json, type=list[str])

    lists = NameLists(names)
    first = lists.read_names(b'["a","b"]')
    assert first == ["a", "b"]
    assert lists.read_names(b'["a","b"]') is first
    assert lists.read_names(b'["b","a"]') == ["b", "a"]
    assert read == [b'["a","b"]', b'["b","a"]']


def test_the_oldest_are_forgotten() -> None:
    read: list[bytes] = []

    def names(json: bytes) -> list[str]:
        read.append(json)
        return []

    lists = NameLists(names, most_bytes=6)
    for json in (b"[1]", b"[2]", b"[1]", b"[3]", b"[1]", b"[2]"):
        lists.read_names(json)
    assert read == [b"[1]", b"[2]", b"[3]", b"[2]"]


def test_what_cannot_be_read_is_not_kept() -> None:
    lists = NameLists(lambda json: msgspec.json.decode(json, type=list[str]))
    for _ in range(2):
        with pytest.raises(msgspec.ValidationError):
            lists.read_names(b"[1]")


def test_of_many_short_lists_few_are_kept() -> None:
    before = _live_name_lists()
    lists = NameLists(read_names)
    for number in range(1000):
        lists.read_names(b'["a","b-%d"]' % number)
    assert _live_name_lists() - before == MOST_LISTS


@pytest.mark.parametrize(
    ("limits", "want"),
    [
        pytest.param({"most_names": 5}, 2, id="names"),
        pytest.param({"most_bytes": 30}, 2, id="bytes"),
        pytest.param({"most_lists": 3}, 3, id="lists"),
        pytest.param({"most_names": 1}, 1, id="lists but the newest, however long it is"),
    ],
)
def test_it_keeps_only_so_many(limits: dict[str, int], want: int) -> None:
    before = _live_name_lists()
    lists = NameLists(read_names, **limits)
    for number in range(10):
        lists.read_names(b'["a","b-%d"]' % number)
    assert _live_name_lists() - before == want


def _live_name_lists() -> int:
    gc.collect()
    return sum(type(each) is NodeNames for each in gc.get_objects())
