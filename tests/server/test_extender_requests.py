"""What is made of requests about nodes, and what is said of those that cannot be used."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from lowtide.advisor.advice import Asked
from lowtide.objects.extender import (
    NodeList,
    NodeSeen,
)
from lowtide.objects.meta import ObjectMeta
from lowtide.objects.pod import Pod, PodSpec
from lowtide.server.bad_request import BadRequestError, TooMuchAskedError
from lowtide.server.extender_requests import (
    NodesRequest,
    nodes_request,
    preemption_request,
    quick_nodes_request,
    read_names,
)
from lowtide.server.name_lists import NameLists
from lowtide.server.request_limits import MOST_COMMAS, MOST_NODES, MOST_OBJECT_BYTES, MOST_VALUES


def read(body: bytes) -> NodesRequest:
    return nodes_request(body)


POD = Pod(metadata=ObjectMeta(name="web"))
ONE, TWO = (NodeSeen(metadata=ObjectMeta(name=name)) for name in ("one", "two"))
NODES_FORM = "expected an object with Pod, and Nodes or NodeNames"
NESTED = "[" * 100_000
DIGITS = "9" * 5000


def raw(data: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(data))


def node_items(*names: str) -> list[dict[str, Any]]:
    return [{"metadata": {"name": name}, "images": [name]} for name in names]


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param(
            {
                "Pod": {"metadata": {"name": "web"}},
                "Nodes": None,
                "NodeNames": ["one", "two"],
            },
            NodesRequest(Asked(POD, ["one", "two"]), None, is_by_name=True),
            id="has names where names are asked",
        ),
        pytest.param(
            {
                "Pod": {"metadata": {"name": "web"}},
                "Nodes": {"metadata": {"resourceVersion": "7"}, "items": node_items("one", "two")},
                "NodeNames": None,
            },
            NodesRequest(
                Asked(POD, ["one", "two"], [ONE, TWO]),
                NodeList(
                    raw({"resourceVersion": "7"}), [raw(each) for each in node_items("one", "two")]
                ),
                is_by_name=False,
            ),
            id="has nodes where nodes are asked",
        ),
        pytest.param(
            {
                "Pod": {"metadata": {"name": "web"}},
                "Nodes": {"items": node_items("one")},
                "NodeNames": ["one", "two"],
            },
            NodesRequest(
                Asked(POD, ["one"], [ONE]),
                NodeList(items=[raw(each) for each in node_items("one")]),
                is_by_name=True,
            ),
            id="goes by the nodes where names are asked too",
        ),
        pytest.param(
            {"pod": {"metadata": {"name": "web"}}, "nodeNAMES": ["one"], "trace": {"id": 1}},
            NodesRequest(Asked(POD, ["one"]), None, is_by_name=True),
            id="is read in any case",
        ),
        pytest.param(
            {
                "Pod": {
                    "metadata": {"name": "web", "labels": None},
                    "spec": {"containers": None, "priority": None},
                },
                "Nodes": {"items": [{"metadata": {"name": "one"}, "spec": {"taints": None}}]},
            },
            NodesRequest(
                Asked(POD, ["one"], [ONE]),
                NodeList(items=[raw({"metadata": {"name": "one"}, "spec": {"taints": None}})]),
                is_by_name=False,
            ),
            id="takes nulls in objects for what is not set",
        ),
        pytest.param(
            {"Pod": {"metadata": {"name": "web"}}, "Nodes": {"metadata": {}, "items": None}},
            NodesRequest(Asked(POD, [], []), NodeList(items=None), is_by_name=False),
            id="has no nodes where Go has a nil list",
        ),
        pytest.param(
            {"Pod": {"metadata": {"name": "web"}, "spec": {"priority": -(2**31)}}, "NodeNames": []},
            NodesRequest(
                Asked(Pod(metadata=POD.metadata, spec=PodSpec(priority=-(2**31))), []),
                None,
                is_by_name=True,
            ),
            id="takes the least priority there is",
        ),
    ],
)
def test_a_request_about_nodes(body: Any, want: NodesRequest) -> None:
    assert read(msgspec.json.encode(body)) == want


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param("", f"the body is empty; {NODES_FORM}", id="nothing"),
        pytest.param(
            "{]",
            f"the body is not JSON: object keys must be strings (byte 1); {NODES_FORM}",
            id="not JSON",
        ),
        pytest.param(
            '{"Pod":', f"the body is not JSON: input data was truncated; {NODES_FORM}", id="half"
        ),
        pytest.param("[1]", f"the body is [1]; {NODES_FORM}", id="not an object"),
        pytest.param(
            NESTED, f"the body cannot be read; {NODES_FORM}", id="nothing but open brackets"
        ),
        pytest.param("{}", f"the body has no Pod; {NODES_FORM}", id="no pod"),
        pytest.param(
            '{"Pod":null,"NodeNames":[]}', "Pod is null; expected an object", id="a null pod"
        ),
        pytest.param(
            '{"POD":["web"],"NodeNames":[]}',
            'Pod is ["web"]; expected an object',
            id="a pod that is a list",
        ),
        pytest.param(
            '{"Pod":{}}', f"the body has neither Nodes nor NodeNames; {NODES_FORM}", id="no nodes"
        ),
        pytest.param(
            '{"Pod":{},"NodeNames":"one"}',
            'NodeNames is "one"; expected a list',
            id="names that are no list",
        ),
        pytest.param(
            '{"Pod":{},"Nodes":null,"NodeNames":"' + "a" * 2**20 + '"}',
            "NodeNames cannot be read; expected a list",
            id="names that are no list, in a body too large to look into",
        ),
        pytest.param(
            '{"Pod":{},"nodenames":["one",2]}',
            "NodeNames[1] is 2; expected a string",
            id="a name that is a number",
        ),
        pytest.param(
            '{"Pod":{},"NodeNames":["one",""]}',
            "NodeNames[1] is missing or empty; expected the name of a node",
            id="a name that is empty",
        ),
        pytest.param(
            f'{{"Pod":{{}},"NodeNames":["one","{"x" * 254}"]}}',
            f'NodeNames[1] is "{"x" * 59}... and has 254 characters; '
            "expected the name of a node, of at most 253",
            id="a name that is too long",
        ),
        pytest.param(
            f'{{"Pod":{{}},"Nodes":{{"items":[{{"metadata":{{"name":"{"x" * 254}"}}}}]}}}}',
            f'Nodes.items[0].metadata.name is "{"x" * 59}... and has 254 characters; '
            "expected the name of a node, of at most 253",
            id="a name that is too long, of a whole node",
        ),
        pytest.param(
            '{"Pod":{},"NodeNames":["one","two","one"]}',
            'NodeNames[2] is "one" as NodeNames[0] is; expected the name of a node, each once',
            id="a name twice",
        ),
        pytest.param('{"Pod":{},"Nodes":[]}', "Nodes is []; expected an object", id="a bare list"),
        pytest.param(
            '{"Pod":{},"Nodes":{"items":{}}}',
            "Nodes.items is {}; expected a list",
            id="items that are no list",
        ),
        pytest.param(
            '{"Pod":{},"Nodes":{"items":[null]}}',
            "Nodes.items[0] is null; expected an object",
            id="a node that is null",
        ),
        pytest.param(
            '{"Pod":{},"Nodes":{"items":[{"metadata":{"name":"one"}},{"metadata":{}}]}}',
            "Nodes.items[1].metadata.name is missing or empty; expected the name of a node",
            id="a node without a name",
        ),
        pytest.param(
            '{"Pod":{},"Nodes":{"items":[{"metadata":{"name":"one","labels":{"a":"b","c":5}}}]}}',
            'Nodes.items[0].metadata.labels["c"] is 5; expected a string',
            id="a label that is a number",
        ),
        pytest.param(
            '{"Pod":{"spec":{"containers":[{},{"ports":[{"hostPort":"80"}]}]}},"NodeNames":[]}',
            'Pod.spec.containers[1].ports[0].hostPort is "80"; expected a whole number',
            id="a port that is a text",
        ),
        pytest.param(
            '{"Pod":{"spec":{"overhead":{"cpu":"1","memory":{"a":1}}}},"NodeNames":[]}',
            'Pod.spec.overhead["memory"] is {"a":1}; expected a whole number, a number or a string',
            id="an amount that is an object",
        ),
        pytest.param(
            '{"Pod":{"spec":{"nodeName":[' + '"a",' * 100 + '"a"]}},"NodeNames":[]}',
            "Pod.spec.nodeName is [" + '"a",' * 14 + '"a"...; expected a string',
            id="a long value, cut",
        ),
        pytest.param(
            '{"Pod":{"spec":{"priority":2147483648}},"NodeNames":[]}',
            "Pod.spec.priority is 2147483648; "
            "expected a whole number from -2147483648 to 2147483647",
            id="a priority beyond 32 bits",
        ),
        pytest.param(
            '{"Pod":{"spec":{"affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuring'
            'Execution":[{"weight":1},{"weight":-99999999999999999999}]}}}},"NodeNames":[]}',
            "Pod.spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[1]"
            ".weight is -99999999999999999999; "
            "expected a whole number from -2147483648 to 2147483647",
            id="a weight beyond 64 bits",
        ),
        pytest.param(
            f'{{"Pod":{{"spec":{{"priority":{DIGITS}}}}},"NodeNames":[]}}',
            "Pod.spec.priority cannot be read: integer value out of range",
            id="a number of 5000 digits",
        ),
        pytest.param(
            '{"Pod":{"spec":{"priority":1e400}},"NodeNames":[]}',
            "Pod.spec.priority cannot be read: number out of range",
            id="a number beyond floats",
        ),
        pytest.param(
            '{"Pod":{"spec":{"priority":NaN}},"NodeNames":[]}',
            f"the body is not JSON: invalid character (byte 27); {NODES_FORM}",
            id="NaN",
        ),
        pytest.param(
            f'{{"Pod":{{"unknown":{NESTED}}},"NodeNames":[]}}',
            f"the body is nested too deeply; {NODES_FORM}",
            id="deep nesting in what nobody reads",
        ),
        pytest.param(
            f'{{"Pod":{{}},"nodes":{NESTED}}}',
            f"the body is nested too deeply; {NODES_FORM}",
            id="deep nesting in odd spelling",
        ),
    ],
)
def test_a_request_about_nodes_that_cannot_be_used(body: str, problem: str) -> None:
    with pytest.raises(BadRequestError) as error:
        read(body.encode())
    assert str(error.value) == problem


@pytest.mark.parametrize(
    ("body", "at"),
    [
        pytest.param(b'{"Pod":{"x":"\xff"},"NodeNames":[]}', 13, id="in what nobody reads"),
        pytest.param(
            b'{"Pod":{},"Nodes":{"items":["' + b"a" * 2**20 + b'\xc3"]}}',
            29 + 2**20,
            id="far behind",
        ),
        pytest.param(b'{"Pod":{},"NodeNames":["\xc3', 24, id="at the end"),
    ],
)
def test_what_is_not_utf8_cannot_be_used(body: bytes, at: int) -> None:
    with pytest.raises(
        BadRequestError, match=r"the body is not UTF-8: .* near byte (\d+)"
    ) as error:
        read(body)
    assert str(error.value).rsplit(" ", 1)[1] == str(at)


def test_letters_that_lie_across_what_is_checked_at_once_are_fine() -> None:
    head = b'{"Pod":{"x":"'
    letters = "a" * (2**20 - len(head) - 1) + "潮"
    body = head + letters.encode() + b'"},"NodeNames":["one"]}'
    assert read(body).asked.names == ["one"]


# How much is answered at once.


def asked_by_name(count: int) -> dict[str, Any]:
    return {"NodeNames": [f"node-{at}" for at in range(count)]}


def asked_whole(count: int) -> dict[str, Any]:
    return {"Nodes": {"items": [{"metadata": {"name": f"node-{at}"}} for at in range(count)]}}


def victims_on_nodes(count: int) -> dict[str, Any]:
    return {"NodeNameToMetaVictims": {f"node-{at}": {} for at in range(count)}}


def victims_in_all(count: int) -> dict[str, Any]:
    pods = [{"metadata": {"uid": f"u-{at}"}} for at in range(count)]
    return {"NodeNameToVictims": {"one": {"Pods": pods[1:]}}}  # one is the node


@pytest.mark.parametrize(
    ("take", "asked", "what"),
    [
        pytest.param(read, asked_by_name, "NodeNames", id="names"),
        pytest.param(read, asked_whole, "Nodes.items", id="whole nodes"),
        pytest.param(
            preemption_request, victims_on_nodes, "the victims by node", id="nodes with victims"
        ),
        pytest.param(
            preemption_request,
            victims_in_all,
            "the victims by node",
            id="victims in all",
        ),
    ],
)
def test_too_much_at_once(
    take: Callable[[bytes], Any], asked: Callable[[int], Any], what: str
) -> None:
    take(msgspec.json.encode({"Pod": {}, **asked(MOST_NODES)}))
    with pytest.raises(TooMuchAskedError) as error:
        take(msgspec.json.encode({"Pod": {}, **asked(MOST_NODES + 1)}))
    assert (error.value.status, str(error.value)) == (
        413,
        f"{what} has more than 150000 entries",
    )


def test_too_much_at_once_is_rejected_before_it_is_read() -> None:
    """What comes after that is no JSON."""
    items = b"{}," * (MOST_NODES + 1)
    with pytest.raises(TooMuchAskedError):
        read(b'{"Pod": {}, "Nodes": {"items": [' + items + b"!")


def of_values(count: int) -> list[dict[str, Any]]:
    """Of a list, counted with it."""
    return [{}] * ((count - 1) // 2)


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        pytest.param(
            {"Pod": {"spec": {"tolerations": of_values(MOST_VALUES + 8)}}, "NodeNames": []},
            "Pod has more than 50000 values in it",
            id="a pod of many values",
        ),
        pytest.param(
            {"Pod": {"metadata": {"annotations": {"a": "x" * MOST_OBJECT_BYTES}}}, "NodeNames": []},
            f"Pod has {MOST_OBJECT_BYTES + 37} bytes; expected at most {MOST_OBJECT_BYTES}",
            id="a large pod",
        ),
        pytest.param(
            {"Pod": {}, "Nodes": {"items": [{}, {"spec": {"taints": of_values(MOST_VALUES + 8)}}]}},
            "Nodes.items[1] has more than 50000 values in it",
            id="a node of many values",
        ),
    ],
)
def test_an_object_that_no_api_server_has_is_rejected(asked: Any, problem: str) -> None:
    with pytest.raises(TooMuchAskedError) as error:
        read(msgspec.json.encode(asked))
    assert (error.value.status, str(error.value)) == (413, problem)


def test_many_values_in_all_are_rejected() -> None:
    with pytest.raises(TooMuchAskedError) as error:
        read(b'{"Pod": {}, "Nodes": [' + b"," * (MOST_COMMAS + 1))
    assert str(error.value) == "the body has more than 4000000 values in it"


def test_the_largest_objects_are_read() -> None:
    many = {"spec": {"tolerations": of_values(MOST_VALUES - 8)}}
    large = {"metadata": {"name": "one", "annotations": {"a": "x" * (MOST_OBJECT_BYTES - 100)}}}
    request = read(msgspec.json.encode({"Pod": many, "Nodes": {"items": [large]}}))
    assert request.asked.names == ["one"]


def test_nodes_that_take_long_to_read_are_given_up() -> None:
    body = msgspec.json.encode({"Pod": {}, **asked_whole(3)})
    with pytest.raises(TooMuchAskedError) as error:
        nodes_request(body, within_seconds=-1.0)
    assert str(error.value) == "of the 3 Nodes only 1 were read in -1 s"


@pytest.mark.parametrize(
    ("asked", "is_quick"),
    [
        pytest.param({"Pod": {}, "NodeNames": ["one"]}, True, id="names"),
        pytest.param({"Pod": {}, "NodeNames": ["one", "one"]}, False, id="what is wrong"),
        pytest.param({"Pod": {}, "nodenames": ["one"]}, False, id="another spelling"),
        pytest.param({"Pod": {}, **asked_whole(1)}, False, id="whole nodes"),
        pytest.param(
            {"Pod": {"metadata": {"name": "x" * 16_384}}, "NodeNames": []}, False, id="a large pod"
        ),
        pytest.param({"Pod": {}, **asked_by_name(500_000)}, False, id="a large body"),
    ],
)
def test_is_read_at_once(asked: Any, *, is_quick: bool) -> None:
    body = msgspec.json.encode(asked)
    found = quick_nodes_request(body, NameLists(read_names))
    assert found == (nodes_request(body) if is_quick else None)


def test_a_large_body_is_not_read_in_any_case() -> None:
    asked = {"pod": {}, "NodeNames": [], "trace": "x" * 1024 * 1024}
    with pytest.raises(BadRequestError) as error:
        read(msgspec.json.encode(asked))
    assert str(error.value) == "the body cannot be read: object contains unknown field `pod`"
