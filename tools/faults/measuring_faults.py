"""What readings come from goes away, is slow, or answers nonsense: Prometheus, while NetworkTraffic
goes by it, and metrics-server, while NodeUsage does."""

import datetime
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from faults import node_metrics
from faults.arena import Arena, Setting, Trial
from faults.switched import BROKEN, Mood, Switched
from realparts.answering import Question
from realparts.api_client import ApiError
from realparts.certificates import Authority
from realparts.metrics_server import NODES_PATH, register, unregister
from realparts.process import wait_until
from realparts.pytest_plugin import usage_rights

REGISTER_SECONDS = 60.0


class Trouble(NamedTuple):
    """What the scheduler's log says when it begins, and when it is over."""

    begins: str
    ends: str


@dataclass(frozen=True, slots=True)
class Source:
    name: str
    switched: Switched
    troubles: Mapping[Mood, Sequence[Trouble]]


NO_USAGE = Trouble("metrics-server gives no usage", '"metrics-server answers"')
UNKNOWN_NODES = Trouble("Nodes without a usage", "metrics-server knows the usage of every node")
NO_TRAFFIC = Trouble("Prometheus gives no traffic", "Prometheus answers again")


def prometheus_fails(arena: Arena) -> None:
    switched = Switched(
        lambda question: _prometheus_says(question, arena.size.nodes), wrong=_broken_json
    )
    source = Source("Prometheus", switched, {mood: [NO_TRAFFIC] for mood in BROKEN})
    args = {"prometheusAddress": switched.server.url}
    with switched.server, arena.trial("prometheus", _by("NetworkTraffic", args)) as trial:
        trial.start()
        for mood in BROKEN:
            _break(source, mood, trial)


def metrics_server_fails(arena: Arena) -> None:
    """Behind the API server, as a cluster has it. What is slow or wrong is what is told of nodes:
    by all else the API server would find it unfit, and pass nothing on that could be slow."""
    authority = Authority(arena.folder, now=datetime.datetime.now(datetime.UTC))
    switched = Switched(
        node_metrics.well(arena.size.nodes),
        node_metrics.wrong(arena.size.nodes),
        always={node_metrics.DISCOVERY_PATH: node_metrics.DISCOVERY},
        certificate=authority.sign_server("metrics-server", ["localhost"], ["127.0.0.1"]),
    )
    troubles = {
        Mood.DOWN: [NO_USAGE],
        Mood.SLOW: [NO_USAGE],
        Mood.WRONG: [NO_USAGE, UNKNOWN_NODES],
    }
    source = Source("metrics-server", switched, troubles)
    setting = _by("NodeUsage", {"cpu": 2, "memory": 1})
    with (
        switched.server,
        _registered(arena, switched.server.port),
        arena.trial("metrics-server", setting) as trial,
    ):
        trial.start()
        for mood in BROKEN:
            _break(source, mood, trial)


@contextmanager
def _registered(arena: Arena, port: int) -> Iterator[None]:
    """Meanwhile the API server passes on to that port what is asked of metrics.k8s.io."""
    arena.grant(usage_rights())
    register(arena.plane, port)
    try:
        wait_until(
            lambda: _is_passed_on(arena), timeout_seconds=REGISTER_SECONDS, what="usage is told"
        )
        yield
    finally:
        unregister(arena.plane)


def _is_passed_on(arena: Arena) -> bool:
    try:
        return bool(arena.plane.request("GET", NODES_PATH)["items"])
    except ApiError:
        return False


def _break(source: Source, mood: Mood, trial: Trial) -> None:
    """For as long as faults last, and until the scheduler has met it: it gives up a slow answer
    after 10 s. Pods are bound all the time; then it has to go by the source again."""
    (replica,) = trial.supervisor.replicas
    name, logged_before = f"{source.name} {mood}", len(replica.process.log())

    def said() -> str:
        return replica.process.log()[logged_before:]

    def is_met() -> bool:
        return all(trouble.begins in said() for trouble in source.troubles[mood])

    def is_over() -> bool:
        log = said()
        return all(
            log.rfind(trouble.begins) < log.rfind(trouble.ends) for trouble in source.troubles[mood]
        )

    with trial.inject(name):
        with source.switched.broken(mood):
            before = trial.auditor.bound_count
            trial.post(trial.size.burst_pods)
            time.sleep(trial.size.cut_seconds)
            if trial.auditor.bound_count == before:
                trial.auditor.object_to(f"{name}: no pod was bound meanwhile")
            trial.wait(is_met, "the scheduler meets it")
        ended_at = time.monotonic()
    trial.wait(is_over, f"{source.name} is used again")
    trial.arena.say(f"  {source.name} is used again after {time.monotonic() - ended_at:.1f} s")


def _by(plugin: str, args: Mapping[str, Any]) -> Setting:
    """Asked every second: each fault is met, however short."""
    return Setting(
        profile={
            "plugins": {"score": {"enabled": [{"name": plugin, "weight": 9}]}},
            "pluginConfig": [{"name": plugin, "args": {**args, "pollInterval": "1s"}}],
        }
    )


def _prometheus_says(question: Question, nodes: int) -> bytes:
    """To every query one value for each node; where it asks for samples, three for one series."""
    (query,) = parse_qs(question.body.decode())["query"]
    now = time.time()
    if query.endswith("[15m]"):
        samples = [[now - seconds, "0"] for seconds in (30, 15, 0)]
        data: dict[str, Any] = {
            "resultType": "matrix",
            "result": [{"metric": {}, "values": samples}],
        }
    else:
        data = {"resultType": "vector", "result": [_sample(number, now) for number in range(nodes)]}
    return json.dumps({"status": "success", "data": data}).encode()


def _sample(number: int, now: float) -> dict[str, Any]:
    labels = {"instance": f"node-{number}", "device": "eth0"}
    return {"metric": labels, "value": [now, str(1000 * number)]}


def _broken_json(question: Question) -> bytes:
    return b'{"status":"success","data":[['
