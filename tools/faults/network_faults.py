"""What a network does to the scheduler's connections, and what is gone when they are back."""

import json
import time
import urllib.request

from faults.arena import Arena, Setting
from faults.workload import PODS
from realparts.api_client import ApiError

THROUGH_PROXY = Setting(is_through_proxy=True)
LATENCY_SECONDS = 0.2
RESETS = 10
PODS_LISTED_AGAIN = "The watch of /api/v1/pods starts again with a list"


def connections_reset(arena: Arena) -> None:
    with arena.trial("reset", THROUGH_PROXY) as trial:
        trial.start()
        trial.post(arena.size.burst_pods)
        with trial.inject("connections reset"):
            for _ in range(RESETS):
                arena.proxy.reset_all()
                time.sleep(arena.size.cut_seconds / RESETS)


def latency_added(arena: Arena) -> None:
    with arena.trial("latency", THROUGH_PROXY) as trial:
        trial.start()
        with trial.inject("200 ms added"):
            arena.proxy.delay(LATENCY_SECONDS)
            try:
                trial.post(arena.size.burst_pods)
                time.sleep(arena.size.cut_seconds)
            finally:
                arena.proxy.delay(0.0)


def cut_off(arena: Arena) -> None:
    with arena.trial("cut", THROUGH_PROXY) as trial:
        trial.start()
        trial.post(arena.size.burst_pods)
        with trial.inject("cut off"):
            arena.proxy.cut()
            time.sleep(arena.size.cut_seconds)
            arena.proxy.fix()


def silent(arena: Arena) -> None:
    with arena.trial("silent", THROUGH_PROXY) as trial:
        trial.start()
        trial.post(arena.size.burst_pods)
        with trial.inject("connections silent"):
            arena.proxy.fall_silent()
            time.sleep(arena.size.cut_seconds)
            arena.proxy.speak_again()


def watches_expired(arena: Arena) -> None:
    """Cut off while the history is thrown away: an API server that was restarted knows nothing of
    what was before, and answers an older version with 410."""
    with arena.trial("expired", Setting(is_through_proxy=True, flags=["-v=2"])) as trial:
        trial.start()
        trial.post(arena.size.burst_pods)
        version = _version(arena)
        with trial.inject("watches expired (410)"):
            arena.proxy.cut()
            trial.post(arena.size.burst_pods)
            _compact(arena)
            arena.plane.restart_api_server()
            arena.proxy.fix()
        if not _is_expired(arena, version):
            arena.auditor.object_to(f"watches expired: version {version} is still known")
        (replica,) = trial.supervisor.replicas
        trial.wait(lambda: PODS_LISTED_AGAIN in replica.process.log(), "pods are listed again")


def _version(arena: Arena) -> str:
    answer = arena.plane.request("GET", f"{PODS}?limit=1")
    return str(answer["metadata"]["resourceVersion"])


def _is_expired(arena: Arena, version: str) -> bool:
    """By what the API server says to a watch from there."""
    path = f"{PODS}?watch=true&resourceVersion={version}&timeoutSeconds=1"
    try:
        return '"code":410' in arena.plane.client().text("GET", path)
    except ApiError as rejection:
        return rejection.status == 410


def _compact(arena: Arena) -> None:
    """Up to the present version, which is etcd's revision."""
    request = urllib.request.Request(
        f"{arena.plane.site.etcd_url}/v3/kv/compaction",
        data=json.dumps({"revision": _version(arena)}).encode(),
        method="POST",
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        answer.read()
