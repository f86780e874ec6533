"""Pods that wait for another scheduler."""

from msgspec.structs import replace

from lowtide.objects.meta import ObjectMeta
from lowtide.objects.pod import PodCondition, PodStatus
from lowtide.scheduler.unbound_pods import UnboundPods
from lowtide.testing import make_pod

REJECTED = PodStatus(conditions=[PodCondition(type="PodScheduled", status="False")])


def test_they_are_counted_by_why_they_wait() -> None:
    pending = UnboundPods()
    pending.keep(make_pod("new"), 0.0)
    pending.keep(replace(make_pod("rejected"), status=REJECTED), 0.0)
    pending.keep(replace(make_pod("gated", gates=["example.com/wait"]), status=REJECTED), 0.0)
    assert pending.lengths() == {"active": 1, "unschedulable": 1, "gated": 1}
    assert [each.pod.name for each in pending if each.is_rejected] == ["rejected", "gated"]


def test_a_pod_waits_from_when_it_was_seen_first() -> None:
    pending = UnboundPods()
    pending.keep(make_pod("web"), 3.0)
    pending.keep(make_pod("web", labels={"changed": "yes"}), 5.0)
    assert pending.waited_seconds("default/web", 10.0) == 7.0
    dropped = pending.drop("default/web")
    assert dropped is not None
    assert (dropped.pod.labels, dropped.first_seen_at) == ({"changed": "yes"}, 3.0)
    assert pending.waited_seconds("default/web", 10.0) == 0.0
    assert pending.drop("default/web") is None


def test_a_pod_that_was_created_before_it_was_seen_waits_from_then() -> None:
    pending = UnboundPods()
    metadata = ObjectMeta(name="web", uid="1", creation_timestamp="1970-01-01T00:01:00Z")
    pending.keep(replace(make_pod("web"), metadata=metadata), 90.0)
    assert pending.waited_seconds("1", 100.0) == 40.0
