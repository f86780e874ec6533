"""What is made of requests about victims and to bind, or said of those that cannot be used."""

import json
from typing import Any

import msgspec
import pytest

from lowtide.advisor.advice import AskedPreemption
from lowtide.objects.extender import (
    MetaPod,
    Victims,
)
from lowtide.objects.meta import ObjectMeta
from lowtide.objects.pod import Pod
from lowtide.server.bad_request import BadRequestError
from lowtide.server.extender_requests import (
    BindingRequest,
    PreemptionRequest,
    binding_request,
    preemption_request,
)

POD = Pod(metadata=ObjectMeta(name="web"))
VICTIMS_FORM = "expected an object with Pod, and NodeNameToVictims or NodeNameToMetaVictims"
NAME_FORM = "expected a name as Kubernetes has them"
VICTIMS = {"one": Victims([MetaPod("u-1"), MetaPod("u-2")], 1), "two": Victims([MetaPod("u-3")])}
ASKED_PREEMPTION = PreemptionRequest(
    AskedPreemption(POD, {"one": ("u-1", "u-2"), "two": ("u-3",)}), VICTIMS
)


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param(
            {
                "Pod": {"metadata": {"name": "web"}},
                "NodeNameToVictims": None,
                "NodeNameToMetaVictims": {
                    "one": {"Pods": [{"UID": "u-1"}, {"UID": "u-2"}], "NumPDBViolations": 1},
                    "two": {"Pods": [{"UID": "u-3"}], "NumPDBViolations": 0},
                },
            },
            ASKED_PREEMPTION,
            id="has victims by uid",
        ),
        pytest.param(
            {
                "Pod": {"metadata": {"name": "web"}},
                "NodeNameToVictims": {
                    "one": {
                        "Pods": [{"metadata": {"uid": "u-1"}}, {"metadata": {"uid": "u-2"}}],
                        "NumPDBViolations": 1,
                    },
                    "two": {"Pods": [{"metadata": {"uid": "u-3"}, "spec": 1}]},
                },
                "NodeNameToMetaVictims": None,
            },
            ASKED_PREEMPTION,
            id="has whole victims",
        ),
        pytest.param(
            {
                "pod": {"metadata": {"name": "web", "labels": None}},
                "nodeNameToMetaVictims": {
                    "one": {"pods": [{"uid": "u-1"}, {"Uid": "u-2"}], "numPdbViolations": 1},
                    "two": {"PODS": [{"UID": "u-3"}]},
                },
            },
            ASKED_PREEMPTION,
            id="is read in any case",
        ),
        pytest.param(
            {
                "Pod": {"metadata": {"name": "web"}},
                "NodeNameToVictims": {"one": None, "two": {"Pods": None}},
            },
            PreemptionRequest(
                AskedPreemption(POD, {"one": (), "two": ()}),
                {"one": Victims([]), "two": Victims([])},
            ),
            id="has no victims where Go has nil",
        ),
    ],
)
def test_a_request_about_victims(body: Any, want: PreemptionRequest) -> None:
    assert preemption_request(msgspec.json.encode(body)) == want


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param("{}", f"the body has no Pod; {VICTIMS_FORM}", id="no pod"),
        pytest.param(
            '{"Pod":{}}',
            f"the body has neither NodeNameToVictims nor NodeNameToMetaVictims; {VICTIMS_FORM}",
            id="no victims",
        ),
        pytest.param(
            '{"Pod":{"spec":5},"NodeNameToVictims":{}}',
            "Pod.spec is 5; expected an object",
            id="a pod without a spec",
        ),
        pytest.param(
            '{"Pod":{"spec":{"priority":2147483648}},"NodeNameToVictims":{}}',
            "Pod.spec.priority is 2147483648; "
            "expected a whole number from -2147483648 to 2147483647",
            id="a priority beyond 32 bits",
        ),
        pytest.param(
            '{"Pod":{},"NodeNameToMetaVictims":{"one":{},"two":{"Pods":[{"uid":7}]}}}',
            'NodeNameToMetaVictims["two"].Pods[0].UID is 7; expected a string',
            id="a uid that is a number",
        ),
        pytest.param(
            '{"Pod":{},"NodeNameToMetaVictims":{"one":{"Pods":[{}]},"two":{"Pods":[{},7]}}}',
            'NodeNameToMetaVictims["two"].Pods[1] is 7; expected an object',
            id="a victim that is a number, where others have fewer",
        ),
        pytest.param(
            '{"Pod":{},"NodeNameToVictims":{"one":{"Pods":[{"metadata":{"name":"a"}}]}}}',
            'the uid of Pods[0], victims on node "one", is missing or empty; '
            "expected the uid of a pod",
            id="a victim without a uid",
        ),
        pytest.param(
            '{"Pod":{},"NodeNameToMetaVictims":{"one":{"Pods":[{"UID":"u"},{"UID":"u"}]}}}',
            'the uid of Pods[1], victims on node "one", is "u" as '
            'the uid of Pods[0], victims on node "one", is; expected the uid of a pod, '
            "each once",
            id="a victim twice",
        ),
        pytest.param(
            '{"Pod":{},"NodeNameToMetaVictims":{"":{}}}',
            "a key of the victims by node is missing or empty; expected the name of a node",
            id="a node without a name",
        ),
        pytest.param(
            '{"Pod":{},"NodeNameToMetaVictims":{"one":{"NumPDBViolations":9223372036854775808}}}',
            'NodeNameToMetaVictims["one"].NumPDBViolations is 9223372036854775808; '
            "expected a whole number <= 9223372036854775807",
            id="more violations than Go can count",
        ),
    ],
)
def test_a_request_about_victims_that_cannot_be_used(body: str, problem: str) -> None:
    with pytest.raises(BadRequestError) as error:
        preemption_request(body.encode())
    assert str(error.value) == problem


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            '{"PodName":"web","PodNamespace":"default","PodUID":"u-1","Node":"one.example"}',
            id="as Go spells it",
        ),
        pytest.param(
            '{"podName":"web","podNamespace":"default","podUid":"u-1","node":"one.example"}',
            id="in any case",
        ),
    ],
)
def test_a_request_to_bind(body: str) -> None:
    meta = ObjectMeta(name="web", namespace="default", uid="u-1")
    assert binding_request(body.encode()) == BindingRequest(Pod(metadata=meta), "one.example")


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        pytest.param({"PodName": None}, f"the body has no PodName; {NAME_FORM}", id="no pod"),
        pytest.param(
            {"PodNamespace": ""}, f"the body has no PodNamespace; {NAME_FORM}", id="no namespace"
        ),
        pytest.param({"Node": ""}, f"the body has no Node; {NAME_FORM}", id="no node"),
        pytest.param({"Node": 5}, "Node is 5; expected a string", id="a node by number"),
        pytest.param(
            {"PodName": "../../nodes/one"},
            f'PodName is "../../nodes/one"; {NAME_FORM}',
            id="a name that leads elsewhere in the API",
        ),
        pytest.param(
            {"PodNamespace": "default?dryRun=All"},
            f'PodNamespace is "default?dryRun=All"; {NAME_FORM}',
            id="a name with a query behind it",
        ),
        pytest.param(
            {"Node": 'one"},"x":{"y":"'},
            'Node is "one\\"},\\"x\\":{\\"y\\":\\""; ' + NAME_FORM,
            id="a name with JSON in it",
        ),
        pytest.param(
            {"Node": "one\n"}, f'Node is "one\\n"; {NAME_FORM}', id="a name with a line break"
        ),
        pytest.param(
            {"PodName": "a" * 254}, f'PodName is "{"a" * 59}...; {NAME_FORM}', id="a long name"
        ),
        pytest.param(
            {"PodUID": 'u","name":"x'},
            'PodUID is "u\\",\\"name\\":\\"x"; expected the uid of the pod',
            id="a uid with JSON in it",
        ),
    ],
)
def test_a_request_to_bind_that_cannot_be_used(fields: dict[str, Any], problem: str) -> None:
    right = {"PodName": "web", "PodNamespace": "default", "PodUID": "u-1", "Node": "one"}
    with pytest.raises(BadRequestError) as error:
        binding_request(json.dumps({**right, **fields}).encode())
    assert str(error.value) == problem
