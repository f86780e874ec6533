"""The requests that a real kube-scheduler sends to an extender, kept word for word.

Called by `python tools/recorder requests`; needs the virtual environment, as real parts do."""

import http.server
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from realparts.control_plane import ControlPlane
from realparts.process import wait_until
from recorder import extender_pods as cluster

VERBS = ("filter", "prioritize", "preempt", "bind")
PATIENCE_SECONDS = 60.0
PODS = f"/api/v1/namespaces/{cluster.NAMESPACE}/pods"
# What differs from run to run and tells nothing.
HOST = "127.0.0.1:8001"


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request: `path` is the verb's under the prefix, the body as it came."""

    verb: str
    knows_nodes: bool  # nodeCacheCapable
    pod_name: str
    headers: dict[str, str]
    body: str

    @property
    def name(self) -> str:
        return f"{self.verb}-{'names' if self.knows_nodes else 'nodes'}-{self.pod_name}"

    def document(self) -> dict[str, Any]:
        return {
            "verb": self.verb,
            "nodeCacheCapable": self.knows_nodes,
            "path": f"/scheduler/{self.verb}",
            "headers": self.headers,
            "body": self.body,
        }


def record_requests(folder: Path) -> list[Path]:
    """One file for each verb, each pod and both ways to name nodes; those of before are gone."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.json"):
        old.unlink()
    written: list[Path] = []
    for knows_nodes in (True, False):
        with ControlPlane() as plane:
            _prepare(plane)
            for request in _requests(plane, knows_nodes=knows_nodes):
                file = folder / f"{request.name}.json"
                file.write_text(json.dumps(request.document(), indent=1, ensure_ascii=False) + "\n")
                written.append(file)
    return written


def _prepare(plane: ControlPlane) -> None:
    for node in cluster.nodes():
        plane.request("POST", "/api/v1/nodes", node)
    for name, value in cluster.PRIORITIES.items():
        priority = {"metadata": {"name": name}, "value": value}
        plane.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", priority)
    volume, claim = cluster.volume_and_claim()
    claims = f"/api/v1/namespaces/{cluster.NAMESPACE}/persistentvolumeclaims"
    plane.request("POST", "/api/v1/persistentvolumes", volume)
    plane.request("POST", claims, claim)
    for pod in cluster.victims():
        plane.request("POST", PODS, pod)
    budgets = f"/apis/policy/v1/namespaces/{cluster.NAMESPACE}/poddisruptionbudgets"
    plane.request("POST", budgets, cluster.budget())
    _wait(lambda: _nodes_are_ready(plane), "the nodes are ready")
    _wait(lambda: _phase(plane, f"{claims}/shelf") == "Bound", "the claim is bound")
    for pod in cluster.victims():
        _wait_until_it_runs(plane, pod)
    budget = f"{budgets}/protects-one"
    _wait(lambda: plane.request("GET", budget)["status"]["currentHealthy"] == 1, "the budget holds")


def _nodes_are_ready(plane: ControlPlane) -> bool:
    nodes = plane.request("GET", "/api/v1/nodes")["items"]
    wanted = sum(len(node["spec"]["taints"]) for node in cluster.nodes())
    return sum(len(node["spec"].get("taints") or ()) for node in nodes) == wanted


def _wait_until_it_runs(plane: ControlPlane, pod: Mapping[str, Any]) -> None:
    path = f"{PODS}/{pod['metadata']['name']}"
    _wait(lambda: _phase(plane, path) == "Running", f"{path} runs")


def _phase(plane: ControlPlane, path: str) -> str:
    return str(plane.request("GET", path)["status"].get("phase"))


def _wait(check: Callable[[], bool], what: str) -> None:
    wait_until(check, timeout_seconds=PATIENCE_SECONDS, what=what)


def _requests(plane: ControlPlane, *, knows_nodes: bool) -> list[Recorded]:
    with _onlooker(plane, knows_nodes=knows_nodes) as (url, requests):
        extender = {f"{verb}Verb": verb for verb in VERBS}
        said = {"urlPrefix": url, "weight": 1, "nodeCacheCapable": knows_nodes, **extender}
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "extenders": [said],
        }
        plane.kube_scheduler(json.dumps(config))
        for pod in cluster.asked_about():
            plane.request("POST", PODS, pod)
            _wait_until_it_runs(plane, pod)
    return list(requests.values())


@contextmanager
def _onlooker(
    plane: ControlPlane, *, knows_nodes: bool
) -> Iterator[tuple[str, dict[str, Recorded]]]:
    """A server that keeps the last request of each verb and pod and has no opinion.

    The last, because a pod that evicted others is asked about again with its nominated node."""
    kept: dict[str, Recorded] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            asked = json.loads(body)
            verb = self.path.rpartition("/")[2]
            pod_name = asked["PodName"] if verb == "bind" else asked["Pod"]["metadata"]["name"]
            headers = {**dict(self.headers.items()), "Host": HOST}
            recorded = Recorded(verb, knows_nodes, pod_name, headers, body)
            kept[recorded.name] = recorded
            if verb == "bind":
                _bind(plane, asked)
            answer = json.dumps(_neutral(verb, asked)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/scheduler", kept
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _bind(plane: ControlPlane, asked: dict[str, Any]) -> None:
    binding = {
        "metadata": {"name": asked["PodName"], "uid": asked["PodUID"]},
        "target": {"kind": "Node", "name": asked["Node"]},
    }
    path = f"/api/v1/namespaces/{asked['PodNamespace']}/pods/{asked['PodName']}/binding"
    plane.request("POST", path, binding)


def _neutral(verb: str, asked: dict[str, Any]) -> Any:
    match verb:
        case "filter":
            return {"Nodes": asked["Nodes"], "NodeNames": asked["NodeNames"]}
        case "prioritize":
            return []
        case "preempt":
            by_node = asked["NodeNameToMetaVictims"] or {
                node_name: {
                    "Pods": [{"UID": pod["metadata"]["uid"]} for pod in victims["Pods"]],
                    "NumPDBViolations": victims["NumPDBViolations"],
                }
                for node_name, victims in asked["NodeNameToVictims"].items()
            }
            return {"NodeNameToMetaVictims": by_node}
        case _:
            return {"Error": ""}
