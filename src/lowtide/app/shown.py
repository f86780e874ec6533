"""What the page and `explain` show of a running process: made of what it believes when somebody
asks. `server/api_routes` serves it."""

from collections.abc import Callable, Mapping
from itertools import islice
from operator import is_

import msgspec
import numpy as np

from lowtide.app.decider import Decider
from lowtide.app.diagnosing import Diagnosis
from lowtide.cluster.columns import FloatArray
from lowtide.cluster.placed import PlacedPod
from lowtide.framework.plugin import PluginError
from lowtide.kube.following import StaleWatches
from lowtide.objects.node import Node
from lowtide.objects.quantity import QuantityError
from lowtide.objects.requests import CPU, MEMORY, node_amounts
from lowtide.readings.columns import (
    CAPACITY,
    IS_GUESSED,
    IS_HOT,
    RECEIVE_COLUMN,
    SHARE,
    STATE,
    TRANSMIT_COLUMN,
)
from lowtide.readings.demand import EXPECTED_RECEIVE, EXPECTED_TRANSMIT
from lowtide.readings.judging import share_with
from lowtide.readings.reading import STATES, State
from lowtide.records.explaining import Explanation, explained, needs_now
from lowtide.records.history import History, NodeHistory
from lowtide.records.measured import traffic_request_of
from lowtide.records.record import DecisionLine, DecisionRecord
from lowtide.records.ring import Ring
from lowtide.telemetry.metrics import MeasuredNumbers

ZONE = "topology.kubernetes.io/zone"
RACKS = ("topology.kubernetes.io/rack", "rack")
MOST_REJECTIONS = 20
MOST_DECISIONS = 500
_LETTERS = np.frombuffer("".join(state.value[0] for state in STATES).encode(), "S1")


class ClusterShown(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Every list has an element per node; the names are left out where the asker knows them."""

    time: float
    mode: str
    version: int
    names: list[str] | None = None
    zones: list[str | None] | None = None
    racks: list[str | None] | None = None
    share: list[float]
    receive: list[float]
    transmit: list[float]
    capacity: list[float]
    expected_receive: list[float]
    expected_transmit: list[float]
    state: str
    is_hot: str
    pods: list[int]
    cpu: list[float]


class DecisionsShown(msgspec.Struct, frozen=True):
    last: int
    decisions: list[DecisionLine]


class PodShown(msgspec.Struct, frozen=True):
    pod: str
    records: list[DecisionRecord]


class PodOnNode(msgspec.Struct, frozen=True):
    pod: str
    cpu: int
    memory: int
    is_assumed: bool


class RejectionShown(msgspec.Struct, frozen=True):
    pod: str
    plugin: str
    reasons: list[str]


class NodeReadingShown(msgspec.Struct, frozen=True, kw_only=True):
    share: float | None
    receive: float | None
    transmit: float | None
    capacity: float | None
    is_capacity_guessed: bool
    state: str
    added_receive: float
    added_transmit: float


class NodeShown(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    labels: Mapping[str, str]
    unschedulable: bool
    taints: list[str]
    allocatable: Mapping[str, int]  # cpu in thousandths, memory in bytes
    requested: Mapping[str, int]
    pods: list[PodOnNode]
    reading: NodeReadingShown | None
    history: NodeHistory
    rejections: list[RejectionShown]


class ReadingHealth(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    age_seconds: float | None
    window_seconds: float | None = None
    fresh: int = 0
    stale: int = 0
    missing: int = 0
    implausible: int = 0
    is_ignored: bool | None = None
    error: str | None = None


class HealthShown(msgspec.Struct, frozen=True, kw_only=True):
    queue: Mapping[str, int]
    bindings_in_flight: int | None
    is_leader: bool | None  # None: there is no lease to hold
    readings: list[ReadingHealth]
    diagnosis: Diagnosis | None  # None: nothing was examined yet
    stale_watches: StaleWatches | None  # what the API server does not tell of at present


class Shown:
    def __init__(
        self,
        decider: Decider,
        ring: Ring,
        history: History,
        *,
        mode: str,
        clock: Callable[[], float],
        measured: Callable[[], MeasuredNumbers],
        is_leader: Callable[[], bool | None],
        diagnosis: Callable[[], Diagnosis | None],
        stale_watches: Callable[[], StaleWatches | None],
    ) -> None:
        self._decider = decider
        self._ring = ring
        self._history = history
        self._mode = mode
        self._clock = clock
        self._measured = measured
        self._is_leader = is_leader
        self._diagnosis = diagnosis
        self._stale_watches = stale_watches
        self._request = traffic_request_of(decider.profiles.values())
        self._named: list[tuple[str, str | None, str | None]] | None = None  # not looked at yet
        self._nodes: list[Node] = []
        self._version = 0

    def cluster(self, known_version: int) -> ClusterShown:
        state, count = self._decider.state, self._decider.state.count
        self._look_at_names()
        is_known = known_version == self._version
        columns = self._columns()
        allocatable = np.maximum(state.allocatable(CPU)[:count], 1)
        codes = np.where(np.isnan(columns[STATE]), STATES.index(State.MISSING), columns[STATE])
        names, zones, racks = zip(*self._named, strict=True) if self._named else ((), (), ())
        return ClusterShown(
            time=self._clock(),
            mode=self._mode,
            version=self._version,
            names=None if is_known else list(names),
            zones=None if is_known else list(zones),
            racks=None if is_known else list(racks),
            share=self._share(columns).round(4).tolist(),
            receive=columns[RECEIVE_COLUMN].round().tolist(),
            transmit=columns[TRANSMIT_COLUMN].round().tolist(),
            capacity=columns[CAPACITY].round().tolist(),
            expected_receive=columns[EXPECTED_RECEIVE].round().tolist(),
            expected_transmit=columns[EXPECTED_TRANSMIT].round().tolist(),
            state=_LETTERS[codes.astype(np.intp)].tobytes().decode(),
            is_hot="".join("1" if each else "0" for each in (columns[IS_HOT] > 0).tolist()),
            pods=state.pod_count.array[:count].tolist(),
            cpu=(state.requested(CPU)[:count] / allocatable).round(4).tolist(),
        )

    def decisions(self, after: int, limit: int) -> DecisionsShown:
        """The newest of those that came later; all where the asker knows of more than there are:
        that was another process."""
        most = min(limit, MOST_DECISIONS)
        last = self._ring.last_number
        kept = self._ring.after(max(after if after <= last else 0, last - most))
        return DecisionsShown(last, [DecisionLine.from_kept(each) for each in kept])

    def pod(self, key: str) -> PodShown | None:
        records = [DecisionRecord.from_kept(kept) for kept in self._ring.decisions_about(key)]
        return PodShown(key, records) if records else None

    def explanation(self, key: str, node_name: str | None) -> Explanation | None:
        """None where nothing is known of the pod."""
        kept = list(self._ring.decisions_about(key))
        queued = next((each for each in self._decider.queue if each.pod.key == key), None)
        others = [DecisionRecord.from_kept(each) for each in islice(self._ring.evicting(key), 1)]
        pod = queued.pod if queued else kept[0].decided.decision.pod if kept else None
        records = [DecisionRecord.from_kept(each) for each in kept]
        if pod is None and not others:
            return None
        gate = None if queued is None else self._decider.gate_of(queued.pod)
        waits = None
        if gate is not None:
            plugin, rejection = gate
            waits = f"{plugin} keeps it out of the queue: {rejection.reason}"
        now = None
        if pod is not None and waits is None and needs_now(records, pod.uid, node_name):
            try:
                now = self._decider.decided_now(pod, self._clock())
            except (PluginError, QuantityError) as error:
                waits = f"it cannot be judged now: {error}"
        return explained(
            key,
            records,
            others,
            uid="" if pod is None else pod.uid,
            node_name=node_name,
            now=now,
            state=self._decider.state,
            waits=waits,
        )

    def node(self, name: str) -> NodeShown | None:
        state = self._decider.state
        row = state.row_of(name)
        if row is None:
            return None
        node, placed = state.node_at(row), state.placed_on(name).values()
        return NodeShown(
            name=name,
            labels=dict(node.labels),
            unschedulable=node.spec.unschedulable,
            taints=[f"{each.key}={each.value}:{each.effect}" for each in node.spec.taints],
            allocatable=dict(node_amounts(node.status.allocatable).by_resource),
            requested={
                CPU: int(state.requested(CPU)[row]),
                MEMORY: int(state.requested(MEMORY)[row]),
                "pods": len(placed),
            },
            pods=[_pod_on_node(each) for each in placed],
            reading=self._reading(row),
            history=self._history.node_history(name),
            rejections=self._rejections(name),
        )

    def health(self) -> HealthShown:
        queue = self._decider.queue.lengths()
        return HealthShown(
            queue=queue,
            bindings_in_flight=self._decider.binding_count,
            is_leader=self._is_leader(),
            readings=self._readings(),
            diagnosis=self._diagnosis(),
            stale_watches=self._stale_watches(),
        )

    # Parts of it.

    def _look_at_names(self) -> None:
        state = self._decider.state
        nodes = [state.node_at(row) for row in range(state.count)]
        if self._named is not None and _are_the_same(nodes, self._nodes):
            return
        self._nodes = nodes
        named = [_named(node) for node in nodes]
        if named != self._named:
            self._named = named
            self._version += 1

    def _columns(self) -> dict[str, FloatArray]:
        """Of the first traffic request; NaN where nothing was measured."""
        state = self._decider.state
        ledger = None if self._request is None else state.ledgers.ledger(self._request)
        columns = {} if ledger is None else ledger.columns
        return {
            field: columns[field].array[: state.count]
            if field in columns
            else np.full(state.count, np.nan)
            for field in (
                *(SHARE, RECEIVE_COLUMN, TRANSMIT_COLUMN, CAPACITY, IS_GUESSED, STATE, IS_HOT),
                *(EXPECTED_RECEIVE, EXPECTED_TRANSMIT),
            )
        }

    def _share(self, columns: Mapping[str, FloatArray]) -> FloatArray:
        """Of each link's capacity, with what was placed since."""
        if self._request is None:
            return columns[SHARE]
        receive = columns[RECEIVE_COLUMN] + columns[EXPECTED_RECEIVE]
        transmit = columns[TRANSMIT_COLUMN] + columns[EXPECTED_TRANSMIT]
        return share_with(self._request, receive, transmit, columns[CAPACITY], columns[SHARE])

    def _reading(self, row: int) -> NodeReadingShown | None:
        columns = self._columns()
        code = columns[STATE][row]
        if np.isnan(code):
            return None
        return NodeReadingShown(
            share=_known(self._share(columns)[row]),
            receive=_known(columns[RECEIVE_COLUMN][row]),
            transmit=_known(columns[TRANSMIT_COLUMN][row]),
            capacity=_known(columns[CAPACITY][row]),
            is_capacity_guessed=bool(columns[IS_GUESSED][row] > 0),
            state=STATES[int(code)].value,
            added_receive=_known(columns[EXPECTED_RECEIVE][row]) or 0.0,
            added_transmit=_known(columns[EXPECTED_TRANSMIT][row]) or 0.0,
        )

    def _rejections(self, node_name: str) -> list[RejectionShown]:
        """Of some pods that were rejected everywhere: why this node is none for them. To ask about
        each costs what a decision does."""
        found: list[RejectionShown] = []
        rejected = (each for each in self._decider.queue if each.is_rejected)
        for queued in islice(rejected, MOST_REJECTIONS):
            try:
                rejection = self._decider.rejection_of(queued.pod, node_name)
            except (PluginError, QuantityError) as error:
                found.append(RejectionShown(queued.pod.key, "", [str(error)]))
                continue
            if rejection is not None:
                reasons = list(rejection.reasons)
                found.append(RejectionShown(queued.pod.key, rejection.plugin, reasons))
        return found

    def _readings(self) -> list[ReadingHealth]:
        if self._request is None:
            return []
        numbers = self._measured()
        nodes = {state: numbers.traffic.nodes_by_state.get(state.value, 0) for state in STATES}
        return [
            ReadingHealth(
                source="traffic, by Prometheus",
                age_seconds=numbers.traffic.age_seconds,
                window_seconds=self._request.window_seconds,
                fresh=nodes[State.FRESH],
                stale=nodes[State.STALE],
                missing=nodes[State.MISSING],
                implausible=nodes[State.IMPLAUSIBLE],
                is_ignored=numbers.is_traffic_ignored,
            )
        ]


def _are_the_same(some: list[Node], others: list[Node]) -> bool:
    """Nodes seldom change, and what they are called and where they stand more seldom still."""
    return len(some) == len(others) and all(map(is_, some, others))


def _named(node: Node) -> tuple[str, str | None, str | None]:
    labels = node.labels
    rack = next((labels[key] for key in RACKS if key in labels), None)
    return node.name, labels.get(ZONE), rack


def _pod_on_node(placed: PlacedPod) -> PodOnNode:
    requests = placed.footprint.requests
    cpu, memory = requests.get(CPU, 0), requests.get(MEMORY, 0)
    return PodOnNode(placed.pod.key, cpu, memory, placed.is_assumed)


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
