"""Nulls where a list, an object or a text is expected, as real servers and manifests have them."""

import msgspec
import pytest

from lowtide.objects.decoding import ObjectDecoder, without_nulls
from lowtide.objects.meta import ObjectMeta
from lowtide.objects.node import ContainerImage, Node, NodeStatus
from lowtide.objects.pod import Pod, PodSpec
from lowtide.objects.volumes import Volume


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param(
            b'{"metadata":{"name":"a"},"status":{"images":[{"names":null,"sizeBytes":5}]}}',
            Node(
                metadata=ObjectMeta(name="a"),
                status=NodeStatus(images=[ContainerImage(size_bytes=5)]),
            ),
            id="is an empty list for an image without a tag",
        ),
        pytest.param(
            b'{"metadata":{"name":"a","labels":null,"namespace":null},"spec":null}',
            Node(metadata=ObjectMeta(name="a")),
            id="is what the field has when nothing is said",
        ),
    ],
)
def test_a_null(body: bytes, want: Node) -> None:
    assert ObjectDecoder(Node).decode(body) == want
    assert ObjectDecoder(Node).decode(msgspec.Raw(body)) == want


def test_a_null_where_nothing_may_stand_is_read_at_once() -> None:
    pod = ObjectDecoder(Pod).decode(b'{"spec":{"volumes":[{"name":"a","ephemeral":null}]}}')
    assert pod == Pod(spec=PodSpec(volumes=[Volume(name="a")]))


def test_what_is_wrong_besides_nulls_is_told() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"^Expected `object`, got `int` - at `\$.sp"):
        ObjectDecoder(Node).decode(b'{"metadata":null,"spec":7}')


def test_without_nulls_goes_into_lists_and_leaves_what_they_count() -> None:
    data = {"a": None, "b": [{"c": None, "d": 0}, None, ""], "e": {"f": None}}
    assert without_nulls(data) == {"b": [{"d": 0}, None, ""], "e": {}}
