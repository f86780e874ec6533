import msgspec
import pytest

from lowtide.objects.extender import (
    BindingArgs,
    ExtenderArgs,
    HostPriority,
    MetaPod,
    NodeList,
    NodeSeen,
    ObjectNamed,
    PreemptionArgs,
    Victims,
    WordsDecoder,
)
from lowtide.objects.meta import ObjectMeta
from lowtide.objects.node import NodeAddress

BINDING = BindingArgs("web", "default", "u-1", "one")


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param(
            '{"PodName":"web","PodNamespace":"default","PodUID":"u-1","Node":"one"}',
            BINDING,
            id="reads Go's spelling",
        ),
        pytest.param(
            '{"podname":"web","PODNAMESPACE":"default","podUid":"u-1","nodE":"one"}',
            BINDING,
            id="reads keys in any case",
        ),
        pytest.param(
            '{"PodName\\u017f":1,"PodName":"web","PodName\\u017fpace":"no",'
            '"PodName\\u017fpace":null,"podName\\u017fPACE":"default","PodUID":"u-1","Node":"one"}',
            BINDING,
            id="folds letters as Go does",
        ),
        pytest.param(
            '{"podName":"no","PodName":"web","podname":"no","PodNamespace":"default",'
            '"PodUID":"u-1","Node":"one"}',
            BINDING,
            id="prefers the exact spelling",
        ),
        pytest.param(
            '{"podname":"no","podName":"web","PodNamespace":"no","PodNamespace":"default",'
            '"PodUID":"u-1","Node":"one"}',
            BINDING,
            id="takes the last of two",
        ),
        pytest.param(
            '{"PodName":3,"PodName":"web","PodNamespace":"default","PodUID":"u-1","Node":"one"}',
            BINDING,
            id="takes the last of two where the first is of a wrong type",
        ),
        pytest.param(
            '{"PodName":"web","PodNamespace":"default","PodUID":"u-1","Node":"one","Pod":[{}]}',
            BINDING,
            id="ignores unknown keys",
        ),
        pytest.param(
            '{"PodName":"web","Node": null ,"PodUID":null}',
            BindingArgs("web"),
            id="takes null for missing",
        ),
        pytest.param("null", BindingArgs(), id="takes null for an object without fields"),
    ],
)
def test_words(body: str, want: BindingArgs) -> None:
    assert WordsDecoder(BindingArgs).decode(body.encode()) == want


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param(
            '[{"Host":"a","Score":3},{"host":"b","SCORE":4},{}]',
            [HostPriority("a", 3), HostPriority("b", 4), HostPriority()],
            id="reads each item in any case",
        ),
        pytest.param("null", [], id="takes null for an empty list"),
    ],
)
def test_lists_of_words(body: str, want: list[HostPriority]) -> None:
    assert WordsDecoder(list[HostPriority]).decode(body.encode()) == want


def test_words_within_words_are_read_in_any_case_too() -> None:
    body = (
        b'{"pod":{"b":1},"nodenametometavictims":{"One":{"pods":[{"uid":"u-1"}],"numPdbViolations"'
        b':2},"two":null},"NodeNameToVictims":{"One":{"PODS":[{"metadata":{"uid":"u-1"}}]}}}'
    )
    assert WordsDecoder(PreemptionArgs[msgspec.Raw, ObjectNamed]).decode(body) == PreemptionArgs(
        msgspec.Raw(b'{"b":1}'),
        {"One": Victims([msgspec.convert({"metadata": {"uid": "u-1"}}, ObjectNamed)])},
        {"One": Victims([MetaPod("u-1")], 2), "two": Victims()},
    )


def test_keys_of_api_objects_are_read_exactly() -> None:
    body = b'{"POD":{"Metadata":{}},"Nodes":{"Items":[1],"items":[{"a":1}]}}'
    got = WordsDecoder(ExtenderArgs[NodeSeen]).decode(body)
    assert got == ExtenderArgs(NodeSeen(), NodeList(items=[msgspec.Raw(b'{"a":1}')]))


@pytest.mark.parametrize("holder", [bytes, bytearray, memoryview])
@pytest.mark.parametrize("key", [b"NodeNames", b"nodeNames"])
def test_a_body_may_be_held_in_any_way(holder: type[bytes], key: bytes) -> None:
    body = holder(b'{"Pod":{},"' + key + b'":["a"]}')
    got = WordsDecoder(ExtenderArgs[msgspec.Raw]).decode(body)
    assert got == ExtenderArgs(msgspec.Raw(b"{}"), None, ["a"])


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param(
            b'{"podname":["a"]}', "Expected `str`, got `array` - at `$.PodName`", id="a wrong type"
        ),
        pytest.param(b"[]", "Expected `object`, got `array`", id="no object"),
        pytest.param(b'{"podname":', "Input data was truncated", id="half of it"),
    ],
)
def test_what_does_not_fit_is_told_in_gos_spelling(body: bytes, problem: str) -> None:
    with pytest.raises(msgspec.DecodeError) as error:
        WordsDecoder(BindingArgs).decode(body)
    assert str(error.value) == problem


def test_words_are_written_in_gos_spelling() -> None:
    args = PreemptionArgs[msgspec.Raw, msgspec.Raw](
        msgspec.Raw(b"{}"), node_name_to_meta_victims={"a": Victims([MetaPod("u-1")])}
    )
    assert msgspec.json.encode(args) == (
        b'{"Pod":{},"NodeNameToVictims":null,'
        b'"NodeNameToMetaVictims":{"a":{"Pods":[{"UID":"u-1"}],"NumPDBViolations":0}}}'
    )


def test_of_a_node_the_images_are_not_read() -> None:
    body = (
        b'{"metadata":{"name":"a","labels":{"x":"y"}},"spec":{},"status":{"allocatable":{"cpu":"4"'
        b'},"addresses":[{"type":"InternalIP","address":"192.0.2.1"}],"images":"not even a list"}}'
    )
    node = msgspec.json.decode(body, type=NodeSeen)
    assert (node.name, node.labels) == ("a", {"x": "y"})
    assert node.metadata == ObjectMeta(name="a", labels={"x": "y"})
    assert node.status.allocatable == {"cpu": "4"}
    assert node.status.addresses == [NodeAddress("InternalIP", "192.0.2.1")]
