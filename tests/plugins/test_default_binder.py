"""DefaultBinder: hands the binding to the binder that it was given."""

from lowtide.framework.plugin import BindOutcome, Pod
from lowtide.plugins.default_binder import DefaultBinder
from lowtide.testing import make_pod


class RecordingBinder:
    def __init__(self) -> None:
        self.bound: list[tuple[str, str]] = []

    async def bind(self, pod: Pod, node_name: str) -> BindOutcome:
        self.bound.append((pod.key, node_name))
        return BindOutcome(error="409 Conflict", is_gone=True)


async def test_bind() -> None:
    binder = RecordingBinder()
    outcome = await DefaultBinder(binder).bind(make_pod("p"), "a")
    assert outcome == BindOutcome(error="409 Conflict", is_gone=True)
    assert binder.bound == [("default/p", "a")]
