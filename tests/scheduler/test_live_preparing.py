"""Pods that wait for what rules prepare, volumes say: they hold up nobody, and may be refused."""

import asyncio

from tests.scheduler.test_live import Bench, assigned, breathe

from lowtide.framework.plugin import Pod


class WaitsForVolumes:
    """Prepares pods that say so until the test lets them go, or says why it cannot."""

    name = "WaitsForVolumes"

    def __init__(self) -> None:
        self.answers: dict[str, asyncio.Future[str | None]] = {}

    async def pre_bind(self, pod: Pod, node_name: str) -> str | None:
        if pod.labels.get("waits") != "yes":
            return None
        self.answers[pod.name] = asyncio.get_running_loop().create_future()
        return await self.answers[pod.name]


async def test_pods_that_wait_for_volumes_hold_up_nobody() -> None:
    rule = WaitsForVolumes()
    bench = Bench(rule, most_bindings=1)
    names = [f"pod-{number}" for number in range(3)]
    async with bench.running():
        bench.add(*names, labels={"waits": "yes"})
        await bench.until(lambda: len(bench.writes.asked) == 3)
        await breathe()
        assert (sorted(rule.answers), bench.live.is_busy) == (names, False)
        bench.add("plain")
        await bench.until(lambda: bench.writes.notes == [assigned("plain")])
        assert bench.live.machine.binding_count == 3
        for name in names:
            rule.answers[name].set_result(None)
        await bench.until(lambda: len(bench.writes.notes) == 4)
    assert bench.writes.notes[1:] == [assigned(name) for name in names]


async def test_why_a_pod_cannot_be_prepared_is_told_and_the_pod_tried_again() -> None:
    rule = WaitsForVolumes()
    bench = Bench(rule)
    error = 'running PreBind plugin "WaitsForVolumes": no volume was made'
    async with bench.running():
        bench.add("web", labels={"waits": "yes"})
        await bench.until(lambda: bench.writes.asked == ["web"])
        await breathe()
        rule.answers["web"].set_result("no volume was made")
        await bench.until(lambda: bench.writes.conditions == [("web", error)])
        assert bench.binder.started == []
        bench.clock.advance(2)
        bench.live.wake()
        await bench.until(lambda: len(bench.writes.asked) == 2)
        await breathe()
        rule.answers["web"].set_result(None)
        await bench.until(lambda: bench.writes.notes == [error, assigned("web")])
