"""What kube-scheduler really sends, read and put into the client's words again."""

import json
from typing import Any

import msgspec
import pytest
from tests.server.recorded_extender import Recorded, recorded_requests

from lowtide.objects.extender import (
    ExtenderArgs,
    NodeSeen,
    PreemptionArgs,
)
from lowtide.objects.pod import Pod
from lowtide.server.extender_requests import (
    NodesRequest,
    binding_request,
    nodes_request,
    preemption_request,
)


def read(body: bytes) -> NodesRequest:
    return nodes_request(body)


def raw(data: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(data))


@pytest.mark.parametrize(
    "recorded", recorded_requests("filter", "prioritize"), ids=lambda each: each.name
)
def test_recorded_questions_about_nodes(recorded: Recorded) -> None:
    request = read(recorded.body)
    data = recorded.data
    assert request.is_by_name == recorded.is_by_name
    args = ExtenderArgs(
        raw(data["Pod"]), request.nodes, list(request.asked.names) if request.is_by_name else None
    )
    assert json.loads(msgspec.json.encode(args)) == data
    assert [request.asked.pod] == msgspec.convert([data["Pod"]], list[Pod])
    if not recorded.is_by_name:
        assert request.asked.nodes == msgspec.convert(data["Nodes"]["items"], list[NodeSeen])
        assert request.asked.names == [n["metadata"]["name"] for n in data["Nodes"]["items"]]


@pytest.mark.parametrize("recorded", recorded_requests("preempt"), ids=lambda each: each.name)
def test_recorded_questions_about_victims(recorded: Recorded) -> None:
    request = preemption_request(recorded.body)
    data = recorded.data
    whole, brief = data["NodeNameToVictims"], data["NodeNameToMetaVictims"]
    if whole is not None:
        brief = {
            name: {
                "Pods": [{"UID": pod["metadata"]["uid"]} for pod in victims["Pods"]],
                "NumPDBViolations": victims["NumPDBViolations"],
            }
            for name, victims in whole.items()
        }
    args = PreemptionArgs[msgspec.Raw, msgspec.Raw](
        raw(data["Pod"]), node_name_to_meta_victims=request.victims
    )
    want = {**data, "NodeNameToVictims": None, "NodeNameToMetaVictims": brief}
    assert json.loads(msgspec.json.encode(args)) == want
    assert request.asked.pod == msgspec.convert(data["Pod"], Pod)
    assert request.asked.victims == {
        name: tuple(pod["UID"] for pod in victims["Pods"]) for name, victims in brief.items()
    }


@pytest.mark.parametrize("recorded", recorded_requests("bind"), ids=lambda each: each.name)
def test_recorded_questions_to_bind(recorded: Recorded) -> None:
    request = binding_request(recorded.body)
    assert recorded.data == {
        "PodName": request.pod.name,
        "PodNamespace": request.pod.namespace,
        "PodUID": request.pod.uid,
        "Node": request.node_name,
    }


def test_every_verb_was_recorded_both_ways() -> None:
    assert {(each.verb, each.is_by_name) for each in recorded_requests()} == {
        (verb, is_by_name)
        for verb in ("filter", "prioritize", "preempt", "bind")
        for is_by_name in (False, True)
    }
