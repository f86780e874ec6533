"""A recording of a large cluster is decided again, all the same; bench/replay says how fast."""

from pathlib import Path

import numpy as np
import pytest
from tests.records.recorded_run import RecordedRun
from tests.records.test_replaying import WITH_TRAFFIC, ours, traffic

from lowtide.scheduler.events import ReadingPublished
from lowtide.testing import make_node

NODES, PODS, SIGNATURES = 5_000, 10_000, 50
PODS_PER_READING = 1_000


def record_large(file: Path) -> RecordedRun:
    random = np.random.default_rng(1)
    with RecordedRun(file, WITH_TRAFFIC) as run:
        (source,) = (each for profile in run.profiles.values() for each in profile.readings)
        for number in range(NODES):
            labels = {"topology.kubernetes.io/zone": f"zone-{number % 3}"}
            run.add(make_node(f"node-{number}", cpu="64", memory="256Gi", labels=labels))
        run.listed()
        for number in range(PODS):
            if number % PODS_PER_READING == 0:
                values = (random.random(NODES) * 1e8).tolist()
                run.step(ReadingPublished(source, traffic(values, 1000.0 + number)))
            app = f"web-{number % SIGNATURES}"
            run.add(ours(f"{app}-{number}", cpu="100m", labels={"app": app}))
            run.place_all()
    return run


@pytest.mark.long
@pytest.mark.timeout(600)
def test_5000_nodes_and_10000_pods_are_decided_the_same_again(tmp_path: Path) -> None:
    made = record_large(tmp_path / "run").replayed()
    assert (made.differences, made.decision_count) == ((), PODS)
