"""What Prometheus would say is made up by `make_values`; nothing has to run."""

from quiet_disks import QuietDisks, QuietDisksArgs

from lowtide.testing import (
    Cluster,
    check_plugin,
    make_node,
    make_pod,
    make_state,
    make_values,
    place,
    scores,
)

PLUGIN = QuietDisks(QuietDisksArgs(prometheus_address="http://prometheus:9090"))
(BUSY,) = PLUGIN.readings
NODES = [make_node("idle"), make_node("busy"), make_node("unknown")]
READINGS = {BUSY: make_values({"idle": 0.1, "busy": 0.9})}


def test_idle_disks_score_highest() -> None:
    want = {"idle": 90, "busy": 10, "unknown": 50}
    assert scores(PLUGIN, make_pod(), make_state(NODES, readings=READINGS)) == want
    assert place([PLUGIN], make_pod(), NODES, readings=READINGS).node_name == "idle"


def test_before_the_first_answer_it_has_no_opinion() -> None:
    assert scores(PLUGIN, make_pod(), make_state(NODES)) is None
    assert scores(PLUGIN, make_pod(), make_state(NODES, readings={BUSY: make_values({})})) is None


def test_the_next_pod_goes_by_the_newest_reading() -> None:
    cluster = Cluster([PLUGIN], NODES)
    cluster.publish(BUSY, READINGS[BUSY])
    cluster.add(make_pod("first"))
    cluster.take_turns()
    cluster.publish(BUSY, make_values({"idle": 0.9, "busy": 0.2, "unknown": 0.8}))
    cluster.add(make_pod("second"))
    cluster.take_turns()
    assert cluster.bound == {"first": "idle", "second": "busy"}


def test_its_answers_may_be_kept() -> None:
    check_plugin(PLUGIN)
