"""Which recorded pods stand for others that live on."""

from msgspec.structs import replace

from lowtide.objects.meta import OwnerReference
from lowtide.objects.pod import Pod, PodCondition
from lowtide.simulator.spared import Spared, is_preempted
from lowtide.testing import make_pod


def owned(name: str, owner: str = "rs") -> Pod:
    pod = make_pod(name, uid=name)
    reference = OwnerReference(kind="ReplicaSet", name=owner, uid=owner, controller=True)
    return replace(pod, metadata=replace(pod.metadata, owner_references=[reference]))


def test_a_newcomer_stands_for_one_of_its_owner() -> None:
    spared = Spared()
    spared.add(owned("old"))
    assert not spared.replaced_by(owned("stranger", owner="other"))
    assert not spared.replaced_by(make_pod("alone"))
    assert spared.replaced_by(owned("new"))
    assert not spared.replaced_by(owned("newer"))  # one for one
    assert (spared.stands_for("new"), spared.stands_for("newer")) == ("old", None)


def test_who_lives_on_no_longer_frees_its_replacement() -> None:
    spared = Spared()
    spared.add(owned("old"))
    spared.replaced_by(owned("new"))
    assert "old" in spared
    assert spared.forget("old") == "new"
    assert "old" not in spared
    assert spared.stands_for("new") is None


def test_who_goes_before_its_replacement_comes_has_none() -> None:
    spared = Spared()
    spared.add(owned("old"))
    assert spared.forget("old") is None
    assert not spared.replaced_by(owned("new"))


def test_only_a_schedulers_eviction_is_a_preemption() -> None:
    def told(reason: str) -> Pod:
        pod = make_pod()
        conditions = [PodCondition("DisruptionTarget", "True", reason)]
        return replace(pod, status=replace(pod.status, conditions=conditions))

    assert is_preempted(told("PreemptionByScheduler"))
    assert not is_preempted(told("EvictionByEvictionAPI"))
    assert not is_preempted(make_pod())
