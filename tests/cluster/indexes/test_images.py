"""Images: which nodes hold an image and how large it is there, kept as nodes come and go."""

import msgspec

from lowtide.cluster.state import ClusterState
from lowtide.objects.node import Node
from lowtide.testing import make_node, make_state


def sizes(state: ClusterState, image: str) -> dict[str, int]:
    nodes = state.nodes()
    return dict(zip(nodes.names, nodes.image_sizes(image).tolist(), strict=True))


def held_by(state: ClusterState, image: str) -> int:
    return state.nodes().image_node_count(image)


def test_an_image_without_a_size_is_held_too() -> None:
    state = make_state([make_node("a", images={"x": 0}), make_node("b", images={"x": 5})])
    assert (sizes(state, "x"), held_by(state, "x")) == ({"a": 0, "b": 5}, 2)


def test_a_column_is_kept_true_after_its_first_use() -> None:
    state = make_state([make_node("a", images={"x": 5}), make_node("b", images={"y": 7})])
    assert (sizes(state, "x"), held_by(state, "x")) == ({"a": 5, "b": 0}, 1)
    state.update_node(make_node("b", images={"x": 6, "y": 7}))
    assert (sizes(state, "x"), held_by(state, "x")) == ({"a": 5, "b": 6}, 2)
    state.update_node(make_node("a", images={"y": 7}))
    assert (sizes(state, "x"), held_by(state, "x")) == ({"a": 0, "b": 6}, 1)
    state.add_node(make_node("c", images={"x": 1}))
    state.remove_node("a")
    assert (sizes(state, "x"), held_by(state, "x")) == ({"c": 1, "b": 6}, 2)
    assert (sizes(state, "y"), held_by(state, "y")) == ({"c": 0, "b": 7}, 1)
    state.remove_node("b")
    assert (sizes(state, "y"), held_by(state, "y")) == ({"c": 0}, 0)


def test_a_size_that_changes_is_seen() -> None:
    state = make_state([make_node("a", images={"x": 5})])
    assert sizes(state, "x") == {"a": 5}
    state.update_node(make_node("a", images={"x": 8}))
    assert sizes(state, "x") == {"a": 8}


def test_a_name_listed_twice_counts_as_it_stands_first() -> None:
    listed = [{"names": ["x", "x@sha256:0"], "sizeBytes": 3}, {"names": ["x"], "sizeBytes": 4}]
    node = msgspec.convert({"metadata": {"name": "a"}, "status": {"images": listed}}, Node)
    state = make_state([node])
    assert (sizes(state, "x"), sizes(state, "x@sha256:0")) == ({"a": 3}, {"a": 3})
    state.remove_node("a")
    assert held_by(state, "x") == 0


def test_a_column_that_was_let_go_is_made_anew() -> None:
    names = [f"image-{number}" for number in range(600)]
    state = make_state([make_node("a", images=dict.fromkeys(names, 2))])
    assert [sizes(state, name) for name in names] == [{"a": 2}] * 600
    assert len(list(state.images.columns)) == 512
    state.update_node(make_node("a", images={names[0]: 3}))
    assert (sizes(state, names[0]), sizes(state, names[599])) == ({"a": 3}, {"a": 0})


def test_rows_have_room_for_nodes_that_come_later() -> None:
    state = make_state([make_node("first", images={"x": 1})])
    assert sizes(state, "x") == {"first": 1}
    for number in range(200):
        state.add_node(make_node(f"n{number}", images={"x": number}))
    assert sizes(state, "x") == {"first": 1, **{f"n{number}": number for number in range(200)}}
