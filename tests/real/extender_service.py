"""A stand-in for the Service of several extenders, and for the kubelet that runs them.

Used by the tests in which replicas are killed."""

import random
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

from tests.extender_process import Extender, Json

from realparts.control_plane import ControlPlane

_PIECE_BYTES = 65_536


class Service:
    """One address that leads to any of the extenders in `behind`; to nobody where there is none."""

    def __init__(self) -> None:
        self.behind: list[Extender] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._accept, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _accept(self) -> None:
        with suppress(OSError):  # how it ends
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            if not self.behind:
                return
            address = urlsplit(random.choice(self.behind).url)
            with socket.create_connection((address.hostname or "", address.port or 0)) as server:
                back = threading.Thread(target=_pass_on, args=(server, client), daemon=True)
                back.start()
                _pass_on(client, server)
                back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    """Until one side ends; then the other is told."""
    with suppress(OSError):
        while piece := source.recv(_PIECE_BYTES):
            target.sendall(piece)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


class Kubelet:
    """Runs an extender for each running pod that the selector finds, as often as it is told to."""

    def __init__(
        self,
        plane: ControlPlane,
        pods_path: str,
        start: Callable[[], Extender],
        service: Service,
    ) -> None:
        self._plane = plane
        self._pods_path = pods_path
        self._start = start
        self._service = service
        self._extenders: dict[str, Extender] = {}  # by the pod's uid

    def running_pods(self) -> dict[str, Json]:
        pods = self._plane.request("GET", self._pods_path)["items"]
        return {
            pod["metadata"]["uid"]: pod for pod in pods if pod["status"].get("phase") == "Running"
        }

    def sync(self) -> list[str]:
        """Starts what should run; the uids of the pods that do."""
        pods = self.running_pods()
        for uid in pods.keys() - self._extenders.keys():
            self._extenders[uid] = self._start()
        self._service.behind = [self._extenders[uid] for uid in pods]
        return list(pods)

    def kill_all(self) -> None:
        """As when their nodes are lost: the processes end at once, and the pods are deleted."""
        self._service.behind = []
        for uid, pod in self.running_pods().items():
            if uid in self._extenders:
                self._extenders.pop(uid).process.kill()
            meta = pod["metadata"]
            path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
            self._plane.request("DELETE", f"{path}?gracePeriodSeconds=0")
