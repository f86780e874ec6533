"""The observer of a drain as a process of its own: how drain starts it and what it says in the end.

See drain_observer, which is that process."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from realparts.control_plane import ControlPlane

HERE = Path(__file__).resolve().parent
LONGEST_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Seen:
    """Moments of the machine's one monotonic clock, and CPU from the beginning to the end.

    It begins with the first binding, or with an eviction that makes room for it."""

    pods: int
    begun_at: float
    bound_at: dict[str, float]
    event_at: list[float]
    nodes_used: int
    cpu_seconds: dict[str, float]
    own_cpu_seconds: float


class Observer:
    """Watches the pods and Events of a namespace from `__enter__` on."""

    def __init__(self, plane: ControlPlane, namespace: str, victims_namespace: str) -> None:
        self._plane = plane
        self._namespace = namespace
        self._victims_namespace = victims_namespace
        self._child: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        folder = f"/api/v1/namespaces/{self._namespace}"
        listed = {
            kind: self._plane.request("GET", f"{folder}/{kind}?limit=1")["metadata"]
            for kind in ("pods", "events")
        }
        self._child = subprocess.Popen(
            [
                *(sys.executable, str(HERE / "drain_observer.py"), *access_flags(self._plane)),
                f"--namespace={self._namespace}",
                f"--victims-namespace={self._victims_namespace}",
                *(f"--{kind}-version={each['resourceVersion']}" for kind, each in listed.items()),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is not for it: `__exit__` ends it
        )
        try:
            self._answer()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        assert self._child is not None
        self._child.kill()
        self._child.communicate()

    def see(self, *, pods: int, pids: Mapping[str, int], has_events: bool) -> Seen:
        """What was seen until so many pods were bound and had their Events."""
        assert self._child is not None
        assert self._child.stdin is not None
        order = {
            "pods": pods,
            "pids": pids,
            "has_events": has_events,
            "longest_seconds": LONGEST_SECONDS,
        }
        self._child.stdin.write(json.dumps(order) + "\n")
        self._child.stdin.flush()
        return Seen(pods=pods, **self._answer())

    def _answer(self) -> dict[str, Any]:
        assert self._child is not None
        assert self._child.stdout is not None
        answer: dict[str, Any] = json.loads(self._child.stdout.readline())
        return answer


def access_flags(plane: ControlPlane) -> list[str]:
    return [f"--url={plane.url}", f"--ca-file={plane.ca_file}", f"--token={plane.admin_token}"]
