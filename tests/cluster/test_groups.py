"""Groups: members by a shared key, without empty groups."""

from lowtide.cluster.groups import Groups


def test_members_are_found_by_their_key() -> None:
    groups: Groups[str, str, int] = Groups()
    for key, member, value in (("a", "x", 1), ("a", "y", 2), ("b", "x", 3), ("a", "x", 4)):
        groups.put(key, member, value)
    assert groups.group("a") == {"x": 4, "y": 2}
    assert groups.group("b") == {"x": 3}
    assert groups.group("c") == {}


def test_an_empty_group_is_not_kept() -> None:
    groups: Groups[str, str, int] = Groups()
    groups.put("a", "x", 1)
    groups.drop("a", "unknown")
    groups.drop("unknown", "x")
    assert groups == {"a": {"x": 1}}
    groups.drop("a", "x")
    assert groups == {}
    assert groups.group("a") == {}
    assert groups == {}
