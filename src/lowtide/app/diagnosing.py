"""The doctor's verdicts in a running process: now and then what is measured is examined, on the
nodes and pods that are known. `measuring` runs it; the page shows what was found."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from lowtide.app.clocks import Clock
from lowtide.app.known_cluster import KnownCluster
from lowtide.framework.profile import Profile
from lowtide.logs import Log
from lowtide.readings.reading import TrafficReading
from lowtide.readings.request import TrafficRequest
from lowtide.readings.rest import Rest
from lowtide.readings.series import Series
from lowtide.telemetry.prometheus import KubeServiceProxy, OffThread

if TYPE_CHECKING:  # a scheduler starts sooner without the doctor
    from lowtide.app.examining import Examining
    from lowtide.doctor.evidence import ScrapedPod
    from lowtide.doctor.findings import Finding

log = Log("scheduler")

LOOK_SECONDS: Final = 10.0
EVERY_SECONDS: Final = 600.0
AT_LEAST_SECONDS: Final = 60.0  # from one examination to the next, whatever changes
LONGEST_SECONDS: Final = 120.0
NODES_NAMED: Final = 20
FINDINGS_SHOWN: Final = 50
_FAULT: Final = "fault"


class FindingShown(msgspec.Struct, frozen=True, kw_only=True):
    """As the doctor's Finding, with the first of its nodes."""

    severity: str
    code: str
    text: str
    nodes: list[str]
    node_count: int
    fix: str


class Diagnosis(msgspec.Struct, frozen=True):
    age_seconds: float
    findings: list[FindingShown]


class Diagnosing:
    """It examines after the first reading, then seldom, and when the readings' states (fresh,
    stale, missing ...) are others than before. Whatever fails is logged, and tried again."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        *,
        known: KnownCluster,
        proxy: KubeServiceProxy,
        clock: Clock,
        wall_clock: Clock,
        off_thread: OffThread,
        rest: Rest,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._profiles = profiles
        self._known = known
        self._proxy = proxy
        self._clock = clock
        self._wall_clock = wall_clock
        self._sleep = sleep
        self._off_thread = off_thread
        self._rest = rest
        self._states: dict[TrafficRequest, frozenset[int]] = {}
        self._has_changed = False
        self._examined_at = -math.inf
        self._found: list[FindingShown] | None = None
        self._found_at = 0.0

    def diagnosis(self) -> Diagnosis | None:
        """None while nothing was examined."""
        if self._found is None:
            return None
        return Diagnosis(self._clock() - self._found_at, self._found)

    def note(self, reading: TrafficReading) -> None:
        states = frozenset(np.unique(reading.state).tolist())
        if self._states.get(reading.request) != states:
            self._states[reading.request] = states
            self._has_changed = True

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._sleep(LOOK_SECONDS)
            if not self._is_due():
                continue
            self._examined_at, self._has_changed = self._clock(), False
            try:
                async with asyncio.timeout(LONGEST_SECONDS):
                    await self.examine()
            except Exception as error:  # what is measured counts all the same
                log.warning("What is measured cannot be examined", err=repr(error))

    def _is_due(self) -> bool:
        if not self._states:
            return False
        seconds = self._clock() - self._examined_at
        return seconds >= (AT_LEAST_SECONDS if self._has_changed else EVERY_SECONDS)

    async def examine(self) -> None:
        examining = await self._off_thread(self._make_examining)  # the first time that takes long
        from lowtide.app.examining import wanted_of

        findings: list[Finding] = []
        for wanted in wanted_of(self._profiles):
            findings += (await examining.examine(wanted, self._known.nodes())).findings
        found = _shown(findings)
        self._log_new(found)
        self._found, self._found_at = found, self._clock()

    def _make_examining(self) -> "Examining":
        from lowtide.app.examining import Examining

        return Examining(
            clock=self._clock,
            wall_clock=self._wall_clock,
            proxy=self._proxy,
            pods_of=self._pods_of,
            off_thread=self._off_thread,
            rest=self._rest,
        )

    async def _pods_of(self, targets: Sequence[Series]) -> "Sequence[ScrapedPod]":
        """Those that the targets' labels name. Their addresses are not known here."""
        pods = list(self._known.pods())

        def named() -> "list[ScrapedPod]":
            from lowtide.doctor.evidence import ScrapedPod

            names = {
                (one.labels.get("namespace", ""), one.labels.get("pod", "")) for one in targets
            }
            return [
                ScrapedPod(
                    namespace=pod.namespace,
                    name=pod.name,
                    node_name=pod.spec.node_name,
                    is_on_host_network=pod.spec.host_network,
                    addresses=(),
                )
                for pod in pods
                if (pod.namespace, pod.name) in names
            ]

        return await self._off_thread(named)

    def _log_new(self, found: Sequence[FindingShown]) -> None:
        before = {(each.code, each.text) for each in self._found or ()}
        for each in found:
            if each.severity == _FAULT and (each.code, each.text) not in before:
                log.warning(
                    "The doctor found a fault; the page and `lowtide doctor` say what fixes it",
                    code=each.code,
                    fault=each.text,
                    nodes=each.node_count,
                )


def _shown(findings: "Sequence[Finding]") -> list[FindingShown]:
    """Without notes that nothing fixes: who looks at a page can do nothing about them."""
    from lowtide.doctor.findings import Severity, worst_first

    useful = [each for each in findings if each.fix or each.severity is Severity.FAULT]
    return [
        FindingShown(
            severity=each.severity.value,
            code=each.code.value,
            text=each.text,
            nodes=list(each.nodes[:NODES_NAMED]),
            node_count=len(each.nodes),
            fix=each.fix,
        )
        for each in worst_first(useful)[:FINDINGS_SHOWN]
    ]
