"""A made-up cluster as the page's API tells it: any number of nodes, always the same for the same
numbers. The browser tests and `make bench ONLY=page` show it."""

import math
import random
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

NODES_OF_A_RACK = 40
TEN_GIGABIT = 1.25e9
BEST = 20
HISTORY = 60
EVERY_SECONDS = 15
BEGIN = 1_800_000_000.0
HOT = 0.8
# Of each plugin: its weight, and whether it tells nodes apart here.
PLUGINS = {
    "NetworkTraffic": (9, True),
    "NodeResourcesBalancedAllocation": (1, True),
    "NodeResourcesFit": (1, True),
    "ImageLocality": (1, True),
    "InterPodAffinity": (2, False),
    "NodeAffinity": (2, False),
    "PodTopologySpread": (2, False),
    "TaintToleration": (3, False),
}
FINDINGS = [
    {
        "severity": "fault",
        "code": "label-mismatch",
        "text": "the series of these nodes carry another name; it should be the node's",
        "nodes": ["node-0001", "node-0002"],
        "node_count": 25,
        "fix": "# in the args of NetworkTraffic\nnodeLabel: kubernetes_node",
    },
    {
        "severity": "note",
        "code": "query-rejected",
        "text": "something could not be checked: it is rejected",
        "nodes": [],
        "node_count": 0,
        "fix": "",
    },
]


@dataclass(slots=True)
class MadeCluster:
    """`round` stands for time: with another one, the same nodes carry other traffic."""

    nodes: int
    mode: str = "demo"
    version: int = 1
    round: int = 0
    is_examined: bool = True
    stale_watches: Json | None = None
    findings: list[Json] = field(default_factory=lambda: list(FINDINGS))
    decisions: list[Json] = field(default_factory=list)
    unplaced: dict[str, str] = field(default_factory=dict)  # the message for each pod
    names: list[str] = field(init=False)
    zones: list[str] = field(init=False)
    racks: list[str] = field(init=False)
    states: list[str] = field(init=False)
    usual_shares: list[float] = field(init=False)

    def __post_init__(self) -> None:
        chance = random.Random(self.nodes)
        self.names = [f"node-{number:04}" for number in range(self.nodes)]
        self.zones = [f"zone-{'abc'[number % 3]}" for number in range(self.nodes)]
        self.racks = [f"rack-{number // NODES_OF_A_RACK:03}" for number in range(self.nodes)]
        self.states = [_state(number) for number in range(self.nodes)]
        self.usual_shares = [min(max(chance.betavariate(1.6, 5.0), 0.04), 0.7) for _ in self.names]
        # So that a small cluster has a hot node too.
        for number in range(3, self.nodes, 211):
            self.usual_shares[number] = 0.93 - 0.0001 * number

    def share(self, number: int) -> float | None:
        if self.states[number] in "mi":
            return None
        swing = 0.03 * math.sin(0.7 * self.round + number)
        return round(max(self.usual_shares[number] + swing, 0.0), 4)

    def capacity(self, number: int) -> float:
        return TEN_GIGABIT * (2.5 if number % 50 == 1 else 1)

    def received(self, number: int) -> float | None:
        share = self.share(number)
        return None if share is None else round(share * self.capacity(number), 1)

    def sent(self, number: int) -> float | None:
        share = self.share(number)
        return None if share is None else round(0.4 * share * self.capacity(number), 1)

    # The answers.

    def cluster_answer(self, known: str | None) -> Json:
        every = range(self.nodes)
        shares = [self.share(number) for number in every]
        lists = {"names": self.names, "zones": self.zones, "racks": self.racks}
        return {
            "time": BEGIN + self.round,
            "mode": self.mode,
            "version": self.version,
            **({} if known == str(self.version) else lists),
            "share": shares,
            "receive": [self.received(number) for number in every],
            "transmit": [self.sent(number) for number in every],
            "capacity": [self.capacity(number) for number in every],
            "expected_receive": [0.0] * self.nodes,
            "expected_transmit": [0.0] * self.nodes,
            "state": "".join(self.states),
            "is_hot": "".join("1" if (share or 0.0) > HOT else "0" for share in shares),
            "pods": [number % 7 for number in every],
            "cpu": [round((number % 10) / 10, 2) for number in every],
        }

    def decide(self, pod: str, *, message: str | None = None) -> Json:
        """One more decision, told by /api/decisions; with a message it fits nowhere."""
        number = len(self.decisions) + 1
        attempt = 1 + sum(each["pod"] == pod for each in self.decisions)
        record = self._record(number, pod, attempt, message)
        self.decisions.append(record)
        if message is not None:
            self.unplaced[pod] = message
        return record

    def decisions_answer(self, after: int, limit: int) -> Json:
        newer = self.decisions[after:][-limit:]
        return {"last": len(self.decisions), "decisions": [_in_short(each) for each in newer]}

    def pod_answer(self, pod: str) -> Json | None:
        records = [each for each in reversed(self.decisions) if each["pod"] == pod]
        return {"pod": pod, "records": records} if records else None

    def node_answer(self, name: str) -> Json | None:
        if name not in self.names:
            return None
        number = self.names.index(name)
        pods = [
            {
                "pod": f"team/worker-{number}-{each}",
                "cpu": 500,
                "memory": 2**29,
                "is_assumed": False,
            }
            for each in range(number % 7)
        ]
        return {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "topology.kubernetes.io/zone": self.zones[number],
                "topology.kubernetes.io/rack": self.racks[number],
            },
            "unschedulable": number % 50 == 3,
            "taints": ["dedicated=batch:NoSchedule"] if number % 50 == 4 else [],
            "allocatable": {"cpu": 16_000, "memory": 64 * 2**30, "pods": 110},
            "requested": {
                "cpu": 500 * len(pods),
                "memory": 2**29 * len(pods),
                "pods": len(pods),
            },
            "pods": pods,
            "reading": self._measured(number),
            "history": self._history(number),
            "rejections": [
                {
                    "pod": pod,
                    "plugin": "NodeResourcesFit",
                    "reasons": ["Insufficient cpu", "Insufficient memory"],
                }
                for pod in self.unplaced
            ],
        }

    def health_answer(self) -> Json:
        states = "".join(self.states)
        words = {"fresh": "f", "stale": "s", "missing": "m", "implausible": "i"}
        return {
            "queue": {
                "active": 2,
                "backoff": 1,
                "unschedulable": len(self.unplaced),
                "gated": 4,
            },
            "bindings_in_flight": 3,
            "is_leader": True,
            "readings": [
                {
                    "source": "NetworkTraffic of http://127.0.0.1:9090",
                    "age_seconds": 4.2,
                    "window_seconds": 60.0,
                    **{word: states.count(letter) for word, letter in words.items()},
                    "is_ignored": False,
                    "error": None,
                }
            ],
            "diagnosis": {"age_seconds": 75.0 + self.round, "findings": self.findings}
            if self.is_examined
            else None,
            "stale_watches": self.stale_watches,
        }

    # Parts of them.

    def _measured(self, number: int) -> Json:
        words = {"f": "fresh", "s": "stale", "m": "missing", "i": "implausible"}
        return {
            "share": self.share(number),
            "receive": self.received(number),
            "transmit": self.sent(number),
            "capacity": self.capacity(number),
            "is_capacity_guessed": number % 50 == 1,
            "state": words[self.states[number]],
            "added_receive": 2.5e7 if number % 2 else 0.0,
            "added_transmit": 0.0,
        }

    def _history(self, number: int) -> Json:
        share = self.share(number)
        if share is None:
            return {"times": [], "receive": [], "transmit": [], "share": [], "capacity": None}
        capacity = self.capacity(number)
        now = BEGIN + self.round
        times = [now - EVERY_SECONDS * (HISTORY - 1 - each) for each in range(HISTORY)]
        shares = [max(share + 0.05 * math.sin(0.3 * each), 0.0) for each in range(HISTORY)]
        return {
            "times": times,
            "receive": [each * capacity for each in shares],
            "transmit": [0.4 * each * capacity for each in shares],
            "share": shares,
            "capacity": capacity,
        }

    def _record(self, number: int, pod: str, attempt: int, message: str | None) -> Json:
        best = [] if message else self._best()
        margin = best[0]["total"] - best[1]["total"] if len(best) > 1 else None
        feasible = 0 if message else self.nodes - self.nodes // 10
        rejected = self.nodes - feasible
        return {
            "seq": number,
            "time": BEGIN + number,
            "pod": pod,
            "uid": f"uid-{number}",
            "scheduler": "lowtide",
            "attempt": attempt,
            "waited_seconds": 0.021,
            "node": best[0]["node"] if best else None,
            "nodes": self.nodes,
            "feasible": feasible,
            "margin": margin,
            "runner_up": best[1]["node"] if len(best) > 1 else None,
            "by_nomination": False,
            "best": best,
            "reading": {
                "age_seconds": 4.2,
                "window_seconds": 60.0,
                "expected_receive": 2.5e7,
                "expected_transmit": 1.0e6,
            },
            "reasons": {"Insufficient cpu": rejected - 1, "node(s) were unschedulable": 1}
            if rejected > 1
            else {},
            "message": message,
            "unschedulable_plugins": ["NodeResourcesFit"] if rejected > 1 else [],
            "preemption": None,
            "seconds": 0.00042,
            "seconds_by_plugin": {
                plugin: 0.00012 / (each + 1) for each, plugin in enumerate(PLUGINS)
            },
        }

    def _best(self) -> list[Json]:
        def scored(number: int) -> Json:
            share = self.share(number)
            base = 50 if share is None else round(100 * (1 - share))
            plugins = {}
            for plugin, (weight, is_telling) in PLUGINS.items():
                if plugin == "NetworkTraffic":
                    points = base
                else:
                    points = (37 * number + len(plugin)) % 20 + 60 if is_telling else 100
                plugins[plugin] = {
                    "raw": 10 * points,
                    "normalized": points,
                    "weighted": weight * points,
                }
            total = sum(each["weighted"] for each in plugins.values())
            return {"node": self.names[number], "total": total, "scores": plugins}

        ranked = sorted(map(scored, range(self.nodes)), key=lambda each: -each["total"])[:BEST]
        for each in ranked:
            each["measured"] = self._measured(self.names.index(each["node"]))
        return ranked


def _state(number: int) -> str:
    if number % 193 == 5:
        return "m"
    if number % 389 == 7:
        return "i"
    return "s" if number % 97 == 9 else "f"


def _in_short(record: Json) -> Json:
    best = record["best"]
    names = ("seq", "time", "pod", "node", "margin", "runner_up", "attempt", "message")
    return {
        **{name: record[name] for name in names},
        "total": best[0]["total"] if best else None,
        "share": best[0]["measured"]["share"] if best else None,
    }
