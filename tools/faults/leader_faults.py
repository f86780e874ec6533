"""The leader of several replicas is killed, frozen or asked to end; or all are replaced."""

import signal
import time
from contextlib import AbstractContextManager

from faults.arena import Arena, Setting, Trial
from faults.report import Injected

TAKEOVER_SECONDS = 60.0


def leader_killed(arena: Arena, replicas: int) -> None:
    with _elected(arena, f"leader-killed-{replicas}", replicas) as trial:
        trial.start()
        leader = trial.leader()
        trial.post(arena.size.burst_pods)
        killed_at = time.time()
        trial.supervisor.kill(leader)
        seconds = _takeover(trial, f"leader of {replicas} killed", killed_at)
        figures = arena.figures
        figures.leader_killed_to_next_binding_seconds = max(
            figures.leader_killed_to_next_binding_seconds, seconds
        )


def leader_frozen(arena: Arena, replicas: int) -> None:
    """Until another one leads and has bound: what it has on the wire may still be accepted, and it
    must send no more when it goes on. That is counted when the trial settles."""
    with _elected(arena, f"leader-frozen-{replicas}", replicas) as trial:
        trial.start()
        leader = trial.leader()
        trial.post(arena.size.burst_pods)
        frozen_at = time.time()
        leader.process.send(signal.SIGSTOP)
        try:
            _takeover(trial, f"leader of {replicas} frozen", frozen_at)
            trial.post(arena.size.burst_pods)
        finally:
            leader.process.send(signal.SIGCONT)
        trial.wait(lambda: leader.ends == [1], "the former leader ends by itself")


def leader_terminated(arena: Arena, replicas: int) -> None:
    with _elected(arena, f"leader-terminated-{replicas}", replicas) as trial:
        trial.start()
        leader = trial.leader()
        trial.post(arena.size.burst_pods * 4)
        asked_at = time.time()
        leader.process.send(signal.SIGTERM)
        seconds = _takeover(trial, f"leader of {replicas} terminated", asked_at)
        figures = arena.figures
        figures.leader_terminated_to_next_binding_seconds = max(
            figures.leader_terminated_to_next_binding_seconds, seconds
        )


def upgraded_and_rolled_back(arena: Arena) -> None:
    """Three replicas, each replaced by a new process, one after the other, and then again."""
    with _elected(arena, "upgraded", 3) as trial:
        trial.start()
        trial.wait_for_standbys()
        trial.post(arena.size.burst_pods)
        for name in ("upgraded", "rolled back"):
            with trial.inject(name):
                for replica in trial.supervisor.replicas:
                    trial.replace(replica)
        ends = [code for replica in trial.supervisor.replicas for code in replica.ends]
        if any(ends):
            arena.auditor.object_to(f"replicas that were replaced ended with {ends}")


def _elected(arena: Arena, name: str, replicas: int) -> AbstractContextManager[Trial]:
    return arena.trial(name, Setting(replicas=replicas, elects=True))


def _takeover(trial: Trial, name: str, moment: float) -> float:
    """Seconds to the next leader's first binding."""
    auditor = trial.auditor
    trial.wait(
        lambda: auditor.takeover_after(moment) is not None,
        f"{name}: another one binds",
        TAKEOVER_SECONDS,
    )
    takeover = auditor.takeover_after(moment)
    assert takeover is not None
    leadership, binding = takeover
    figures = trial.arena.figures
    figures.longest_leaderless_seconds = max(
        figures.longest_leaderless_seconds, leadership.acquired_at - moment
    )
    trial.keep(Injected(name, moment, moment, binding.at))
    return binding.at - moment
