"""Processes that are killed or frozen: the scheduler, the API server, etcd."""

import random
import signal
import time

from faults.arena import Arena, Trial
from faults.auditor import WIRE_SECONDS
from faults.supervisor import Replica
from realparts.process import Process

SEED = 7


def scheduler_killed_in_a_drain(arena: Arena) -> None:
    """kill -9 when so many pods are bound, at numbers drawn once."""
    size = arena.size
    chance = random.Random(SEED)
    moments = sorted(chance.sample(range(1, size.drain_pods * 9 // 10), size.kills))
    with arena.trial("killed") as trial:
        trial.post(size.drain_pods)
        before = arena.auditor.bound_count
        trial.start_schedulers()
        (replica,) = trial.supervisor.replicas
        for number, moment in enumerate(moments, start=1):
            _wait_for_count(trial, before + moment)
            killed_at = time.time()
            trial.supervisor.kill(replica)
            _wait_for_restart(trial, replica, killed_at)
            arrived_at = replica.began_at + WIRE_SECONDS
            trial.note(f"scheduler killed ({number})", killed_at, killed_at, after=arrived_at)


def scheduler_frozen(arena: Arena) -> None:
    with arena.trial("frozen") as trial:
        trial.start()
        (replica,) = trial.supervisor.replicas
        trial.post(arena.size.burst_pods)
        with trial.inject("scheduler frozen"):
            _freeze(replica.process, arena.size.freeze_seconds)


def scheduler_terminated_in_a_drain(arena: Arena) -> None:
    """What it had bound has its Events, and the next one goes on."""
    with arena.trial("terminated") as trial:
        trial.post(arena.size.drain_pods // 2)
        before = arena.auditor.bound_count
        trial.start_schedulers()
        (replica,) = trial.supervisor.replicas
        _wait_for_count(trial, before + arena.size.drain_pods // 4)
        asked_at = time.time()
        trial.supervisor.replace(replica)
        trial.note("scheduler terminated", asked_at, asked_at, after=replica.began_at)
        if replica.ends != [0]:
            arena.auditor.object_to(f"SIGTERM ended the scheduler with {replica.ends}")


def api_server_killed(arena: Arena) -> None:
    with arena.trial("apiserver") as trial:
        trial.start()
        trial.post(arena.size.burst_pods)
        with trial.inject("API server killed"):
            arena.plane.kill_api_server()
            time.sleep(2.0)
            arena.plane.restart_api_server()


def api_server_frozen(arena: Arena) -> None:
    with arena.trial("apiserver-frozen") as trial:
        trial.start()
        trial.post(arena.size.burst_pods)
        with trial.inject("API server frozen"):
            _freeze(arena.plane.processes["kube-apiserver"], arena.size.freeze_seconds)


def etcd_killed(arena: Arena) -> None:
    etcd = arena.plane.processes["etcd"]
    with arena.trial("etcd") as trial:
        trial.start()
        trial.post(arena.size.burst_pods)
        with trial.inject("etcd killed"):
            etcd.kill()
            time.sleep(2.0)
            etcd.start()


def etcd_frozen(arena: Arena) -> None:
    with arena.trial("etcd-frozen") as trial:
        trial.start()
        trial.post(arena.size.burst_pods)
        with trial.inject("etcd frozen"):
            _freeze(arena.plane.processes["etcd"], arena.size.freeze_seconds)


def _wait_for_count(trial: Trial, bound_count: int) -> None:
    trial.wait(lambda: trial.auditor.bound_count >= bound_count, "the drain goes on")


def _wait_for_restart(trial: Trial, replica: Replica, killed_at: float) -> None:
    trial.wait(lambda: replica.began_at > killed_at, "it is restarted")


def _freeze(process: Process, seconds: float) -> None:
    process.send(signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        process.send(signal.SIGCONT)
