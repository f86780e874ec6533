"""What two objects have in common is kept once, and neither looks different for it."""

import copy

import msgspec

from lowtide.objects.meta import ObjectMeta, OwnerReference
from lowtide.objects.pod import (
    Affinity,
    Container,
    NodeAffinity,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    Toleration,
)
from lowtide.objects.sharing import share
from lowtide.objects.volumes import Volume


def make(number: int, **labels: str) -> Pod:
    """Made anew each time, so that nothing is shared yet."""
    pod = Pod(
        ObjectMeta(
            name=f"web-{number}",
            namespace="shop",
            labels={"app": "web", **labels},
            owner_references=[OwnerReference(kind="ReplicaSet", name="web", controller=True)],
        ),
        PodSpec(
            containers=[Container(name="main", image="web:v1")],
            node_name=f"node-{number}",
            tolerations=[Toleration(key="spot")],
            volumes=[Volume(name="config"), Volume(name=f"token-{number}")],
        ),
        PodStatus(
            phase="Running",
            conditions=[
                PodCondition(type="Initialized", status="True", last_transition_time="monday"),
                PodCondition(type="Ready", status="True", last_transition_time=f"day {number}"),
            ],
        ),
    )
    return msgspec.json.decode(msgspec.json.encode(pod), type=Pod)


def test_equal_parts_are_the_same_objects() -> None:
    found, like = make(1), make(2)
    share(found, like)
    assert found.metadata.namespace is like.metadata.namespace
    assert found.metadata.labels is like.metadata.labels
    assert found.metadata.owner_references is like.metadata.owner_references
    assert found.spec.containers is like.spec.containers
    assert found.spec.tolerations is like.spec.tolerations
    assert found.spec.init_containers is like.spec.init_containers
    assert found.spec.volumes[0] is like.spec.volumes[0]
    assert found.status.conditions[0] is like.status.conditions[0]
    assert found.status.phase is like.status.phase


def test_both_are_as_they_were() -> None:
    found, like = make(1, tier="front"), make(2)
    before = copy.deepcopy((found, like))
    share(found, like)
    assert (found, like) == before
    assert found.metadata.labels == {"app": "web", "tier": "front"}
    assert like.metadata.labels == {"app": "web"}


def test_a_status_that_only_one_has_stays_its_own() -> None:
    class Thing(msgspec.Struct):
        name: str
        status: PodStatus | None = None

    one, other = Thing("a", PodStatus(phase="Running")), Thing("a")
    share(one, other)
    share(other, one)
    assert (one, other) == (Thing("a", PodStatus(phase="Running")), Thing("a"))


def test_what_only_one_has_stays_its_own() -> None:
    found, like = make(1), make(2)
    one = msgspec.structs.replace(
        found, spec=msgspec.structs.replace(found.spec, affinity=Affinity(NodeAffinity()))
    )
    more = msgspec.structs.replace(
        like, spec=msgspec.structs.replace(like.spec, containers=[*like.spec.containers] * 2)
    )
    before = copy.deepcopy((one, more))
    share(one, more)
    share(more, one)
    assert (one, more) == before
    assert more.spec.containers[0] is one.spec.containers[0]
