"""What is told of a drain that was seen."""

from collections.abc import Callable

import pytest

from drain import LOWTIDE, Drain, DrainResult, Spent, rest
from drain_observing import Seen
from realparts.control_plane import ControlPlane
from workloads import Workload


@pytest.mark.parametrize(
    ("bound_at", "event_at", "want"),
    [
        # 3 pods in 2 seconds, and in 4 with their Events
        pytest.param([10.0, 11.0, 12.0], [11.0, 14.0], (1.5, 0.75), id="counts from the first"),
        pytest.param([10.0, 10.0], [10.0], (None, None), id="is not told of one moment"),
        pytest.param([10.0, 10.0], [11.0], (None, 2.0), id="may be told of Events alone"),
        pytest.param([10.0, 12.0], [], (1.0, None), id="has no Events where none came"),
    ],
)
def test_the_pace(
    bound_at: list[float], event_at: list[float], want: tuple[float | None, float | None]
) -> None:
    seen = Seen(
        pods=len(bound_at),
        begun_at=bound_at[0],
        bound_at={f"pod-{number}": moment for number, moment in enumerate(bound_at)},
        event_at=event_at,
        nodes_used=1,
        # The churner is one of ours too: 0.5 s of 2 s.
        cpu_seconds={
            "scheduler": 0.1,
            "api_server": 0.1,
            "etcd": 0.1,
            "churner": 0.1,
            "machine": 2.0,
        },
        own_cpu_seconds=0.1,
    )
    result = DrainResult.from_seen(
        Workload.named("basic", 20),
        seen,
        Spent(cpu_seconds=1.0, rss_bytes=1),
        scheduler=LOWTIDE,
        round=1,
        started_at=9.0,
    )
    assert (result.pods_per_second, result.pods_per_second_with_events) == want
    assert result.others_cpu_share == pytest.approx(0.75)


class Interrupted(Drain):
    """While its server is filled."""

    def __init__(self, stop: Callable[[], object]) -> None:
        super().__init__(Workload.named("basic", 20))
        self._stop = stop

    def _set_up(self) -> None:
        self._stack.callback(self._stop)
        raise KeyboardInterrupt


def test_what_is_interrupted_before_its_first_turn_is_stopped() -> None:
    stopped = []
    drain = Interrupted(lambda: stopped.append("server"))
    with pytest.raises(KeyboardInterrupt), drain:
        pass
    assert stopped == ["server"]


@pytest.mark.real("etcd", "kube-apiserver")
def test_an_api_server_at_rest_has_collected_its_garbage() -> None:
    with ControlPlane(has_controllers=False, has_kwok=False) as plane:
        moments = [_last_collection_at(plane)]
        for _ in range(3):
            rest(plane)
            moments.append(_last_collection_at(plane))
    assert sorted(set(moments)) == moments


def _last_collection_at(plane: ControlPlane) -> float:
    told = plane.client().text("GET", "/metrics").splitlines()
    moments = [line for line in told if line.startswith("go_memstats_last_gc_time_seconds ")]
    return float(moments[0].partition(" ")[2])
