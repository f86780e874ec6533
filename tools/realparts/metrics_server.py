"""A real metrics-server behind a control plane: KWOK stands in for the kubelets that it asks.

Used by the fixture `metrics_server`. The control plane must have been started with
`aggregation_flags`, and each Node be annotated as `node_annotations` says. The fault suite
registers a stand-in."""

import datetime
from pathlib import Path
from typing import Any, Self

from realparts.api_client import ApiError
from realparts.certificates import Authority
from realparts.control_plane import ControlPlane
from realparts.parts import obtain
from realparts.process import Process, free_port, wait_until

GROUP_VERSION = "metrics.k8s.io/v1beta1"
NODES_PATH = f"/apis/{GROUP_VERSION}/nodes"
CPU_ANNOTATION = "lowtide.dev/test-cpu"  # of a pod, read by kwok/usage.yaml
_API_SERVICES_PATH = "/apis/apiregistration.k8s.io/v1/apiservices"
_API_SERVICE = "v1beta1.metrics.k8s.io"
_SERVICES_PATH = "/api/v1/namespaces/kube-system/services"
_SERVICE = "metrics-server"
_READY_SECONDS = 60.0


def aggregation_flags(folder: Path) -> list[str]:
    """For the API server, so that it can pass requests on in its users' names; writes the
    certificates for that into `folder`."""
    authority = Authority(folder, now=datetime.datetime.now(datetime.UTC))
    authority.write_own_certificate()
    pair = authority.sign_client("front-proxy", [])
    return [
        f"--requestheader-client-ca-file={authority.ca_file}",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pair.certificate_file}",
        f"--proxy-client-key-file={pair.key_file}",
    ]


def node_annotations(name: str) -> dict[str, str]:
    """Where metrics-server finds this node's usage on the port that all nodes share."""
    return {"metrics.k8s.io/resource-metrics-path": f"/metrics/nodes/{name}/metrics/resource"}


def register(plane: ControlPlane, port: int) -> None:
    """From here on the API server passes requests for metrics.k8s.io on to that port."""
    plane.request("POST", _SERVICES_PATH, _service(port))
    plane.request("POST", _API_SERVICES_PATH, _api_service(port))


def unregister(plane: ControlPlane) -> None:
    plane.request("DELETE", f"{_API_SERVICES_PATH}/{_API_SERVICE}")
    plane.request("DELETE", f"{_SERVICES_PATH}/{_SERVICE}")


class MetricsServer:
    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self._port = free_port()
        self._process: Process | None = None

    def start(self) -> None:
        """Returns when it runs and the API server knows of it; it has something to tell after two
        scrapes, 10 s apart."""
        self.run_unknown()
        self.install()

    def run_unknown(self) -> None:
        """Runs it and lets it scrape, while the cluster has no metrics.k8s.io."""
        program = obtain("metrics-server")["metrics-server"]
        kubeconfig = self.plane.kubeconfig()
        flags = [
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            f"--cert-dir={self.plane.folder / 'metrics-server'}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            "--kubelet-insecure-tls",
            "--kubelet-use-node-status-port",
            "--kubelet-preferred-address-types=InternalIP",
            "--metric-resolution=10s",  # the shortest that it takes
            "--kubelet-request-timeout=2s",  # it must be shorter than the resolution
        ]
        self._process = Process("metrics-server", [program, *flags], folder=self.plane.folder)
        self._process.start()

    def install(self) -> None:
        register(self.plane, self._port)

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop(grace_seconds=3.0)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def usage(self) -> dict[str, dict[str, str]]:
        """By node, as the API server passes it on; nothing while metrics-server is not ready."""
        try:
            items = self.plane.request("GET", NODES_PATH)["items"]
        except ApiError:
            return {}
        return {item["metadata"]["name"]: item["usage"] for item in items}

    def wait_for_usage(self, count: int) -> dict[str, dict[str, str]]:
        """Once this many nodes are known."""
        wait_until(
            lambda: len(self.usage()) >= count,
            timeout_seconds=_READY_SECONDS,
            what=f"metrics-server knows {count} nodes",
            every_seconds=0.25,
        )
        return self.usage()


def _service(port: int) -> dict[str, Any]:
    """The API server finds metrics-server by a Service, which leads to this machine itself."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": _SERVICE},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    }


def _api_service(port: int) -> dict[str, Any]:
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": _API_SERVICE},
        "spec": {
            "group": "metrics.k8s.io",
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,
            "service": {"namespace": "kube-system", "name": _SERVICE, "port": port},
        },
    }
