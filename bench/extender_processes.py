"""`lowtide extender` as a process, and around it the embedded cluster with many whole nodes, and a
Prometheus with canned answers. The benchmark of the extender asks it."""

import json
import re
import shutil
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import yaml

from extender_load import Address
from extender_objects import SCHEDULER_NAMES, Json, label_of
from lowtide.app.registry import make_registry, read_config, requests_of
from lowtide.framework.plugin import Binder
from lowtide.readings.request import TrafficRequest
from machine_cpu import machine_cpu_seconds
from many_nodes import NODES, NowhereBinder, make_nodes
from poll import ANSWERED_AT, listens, write_answers
from realparts.process import Process, free_ports

HERE = Path(__file__).resolve().parent
START_SECONDS = 180.0
PLUGINS = ("PrioritySort", "DefaultBinder", "NodeLabel", "NetworkTraffic")


class RunningExtender:
    """`pending` is how many pods there are to ask about, by the name of their scheduler."""

    def __init__(self, pending: Mapping[str, int]) -> None:
        self._wanted = pending
        self._folder = Path(tempfile.mkdtemp(prefix="lowtide-bench-"))
        self._kubeconfig = self._folder / "kubeconfig"
        self._config = self._folder / "config.yaml"
        port, self._prometheus_port = free_ports(2)
        self.address = Address("127.0.0.1", port)
        self.cluster = Address("", 0)
        self.pending: dict[str, Iterator[Json]] = {}
        self.started: list[Process] = []
        self._url = f"http://{self.address.host}:{port}"
        self.process = self._process(
            "extender",
            ["-m", "lowtide", "extender", f"--config={self._config}"],
            f"--kubeconfig={self._kubeconfig}",
            f"--port={port}",
        )

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def whole_nodes(self) -> list[Json]:
        """As the cluster has them; kube-scheduler leaves out what they are."""
        listed = json.loads(_get(f"{self._cluster_url()}/api/v1/nodes"))["items"]
        return [{key: node[key] for key in ("metadata", "spec", "status")} for node in listed]

    def neutral_answers(self) -> int:
        return int(self._sum_of("lowtide_extender_neutral_answers_total"))

    def peak_memory_mb(self) -> float:
        """Since it was started."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found is not None, "this machine does not tell what a process took at most"
        return int(found[1]) * 1024 / 1e6

    def _start(self) -> None:
        self._config.write_text(yaml.safe_dump(_config(self._prometheus_port)))
        pending = (f"--pending={name}={count}" for name, count in self._wanted.items())
        cluster = self._process(
            "cluster", [HERE / "extender_cluster.py"], self._kubeconfig, *pending
        )
        self._run(cluster)
        cluster.wait_until_ready(self._kubeconfig.exists, START_SECONDS)
        host, _, port = self._cluster_url().removeprefix("http://").partition(":")
        self.cluster = Address(host, int(port))
        self._take_pending()
        self._start_prometheus()
        self._run(self.process)
        self.process.wait_until_ready(self._is_ready, START_SECONDS)

    def _start_prometheus(self) -> None:
        built = make_registry({}).build(read_config(self._config), {Binder: NowhereBinder()})
        (request,) = requests_of(built.profiles.values(), TrafficRequest)
        write_answers(self._folder, request, list(make_nodes()))
        flags = [f"--port={self._prometheus_port}", f"--answered-at={ANSWERED_AT}"]
        prometheus = self._process(
            "prometheus", [HERE / "canned_prometheus.py"], self._folder, *flags
        )
        self._run(prometheus)
        prometheus.wait_until_ready(lambda: listens(self._prometheus_port))

    def _stop(self) -> None:
        for process in reversed(self.started):
            process.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _process(self, name: str, program: Sequence[str | Path], *flags: str | Path) -> Process:
        return Process(name, [sys.executable, *program, *flags], folder=self._folder)

    def _run(self, process: Process) -> None:
        process.start()
        self.started.append(process)

    def _is_ready(self) -> bool:
        """Also with a reading of every node."""
        _get(f"{self._url}/readyz")
        return self._sum_of("lowtide_reading_nodes", 'state="fresh"') == NODES

    def _take_pending(self) -> None:
        url = f"{self._cluster_url()}/api/v1/pods?fieldSelector=spec.nodeName%3D"
        found: list[Json] = json.loads(_get(url))["items"]
        for name in SCHEDULER_NAMES:
            those = [each for each in found if each["spec"]["schedulerName"] == name]
            self.pending[name] = iter(those)

    def _cluster_url(self) -> str:
        kubeconfig = yaml.safe_load(self._kubeconfig.read_text())
        return str(kubeconfig["clusters"][0]["cluster"]["server"])

    def _sum_of(self, metric: str, label: str = "") -> float:
        lines = _get(f"{self._url}/metrics").splitlines()
        samples = (line.rpartition(" ") for line in lines if line.startswith(metric))
        return sum(float(value) for name, _, value in samples if label in name)


class Spent:
    """CPU time since it was made."""

    def __init__(self, extender: RunningExtender) -> None:
        self._extender = extender
        self._began = time.monotonic()
        self._before = self._now()

    def extender_share(self) -> float:
        """Of one core."""
        of_extender, _, _ = self._since()
        return of_extender

    def others_cores(self) -> float:
        """What neither the processes of the benchmark nor this one took: it disturbs them."""
        _, ours, all_cores = self._since()
        return all_cores - ours

    def _since(self) -> tuple[float, float, float]:
        seconds = time.monotonic() - self._began
        of_extender, ours, busy = (
            (now - before) / seconds for now, before in zip(self._now(), self._before, strict=True)
        )
        return of_extender, ours, busy

    def _now(self) -> tuple[float, float, float]:
        """CPU seconds of the extender, of all processes of the benchmark, and of the machine."""
        processes = [each.cpu_seconds() for each in self._extender.started]
        ours = sum(processes) + time.process_time()
        return self._extender.process.cpu_seconds(), ours, machine_cpu_seconds()


def _config(prometheus_port: int) -> Json:
    """Two profiles, which leave different nodes."""
    address = f"http://127.0.0.1:{prometheus_port}"
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": name,
                "plugins": {
                    "multiPoint": {
                        "disabled": [{"name": "*"}],
                        "enabled": [{"name": each} for each in PLUGINS],
                    }
                },
                "pluginConfig": [
                    {"name": "NodeLabel", "args": {"label": label_of(name)}},
                    {"name": "NetworkTraffic", "args": {"prometheusAddress": address}},
                ],
            }
            for name in SCHEDULER_NAMES
        ],
    }


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as response:
        return str(response.read().decode())
