"""Lists of names, known again by their bytes."""

import msgspec
import pytest

from lowtide.server.name_lists import NameLists


def test_the_same_bytes_give_the_same_list() -> None:
    read: list[bytes] = []

    def names(json: bytes) -> list[str]:
        read.append(json)
        return msgspec.json.decode(json, type=list[str])

    lists = NameLists(names)
    first = lists.of(b'["a","b"]')
    assert first == ["a", "b"]
    assert lists.of(b'["a","b"]') is first
    assert lists.of(b'["b","a"]') == ["b", "a"]
    assert read == [b'["a","b"]', b'["b","a"]']


def test_the_oldest_are_forgotten() -> None:
    read: list[bytes] = []

    def names(json: bytes) -> list[str]:
        read.append(json)
        return []

    lists = NameLists(names, most_bytes=6)
    for json in (b"[1]", b"[2]", b"[1]", b"[3]", b"[1]", b"[2]"):
        lists.of(json)
    assert read == [b"[1]", b"[2]", b"[3]", b"[2]"]


def test_what_cannot_be_read_is_not_kept() -> None:
    lists = NameLists(lambda json: msgspec.json.decode(json, type=list[str]))
    for _ in range(2):
        with pytest.raises(msgspec.ValidationError):
            lists.of(b"[1]")
