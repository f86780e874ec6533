"""`lowtide extender` as a process of its own, and kube-scheduler's configuration that it prints.

The fixture `lowtide_extender` hands it to the tests of the extender."""

import copy
import re
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from realparts.certificates import KeyPair
from realparts.process import Process, free_port

LOWTIDE = Path(sys.executable).parent / "lowtide"
Json = dict[str, Any]
LABEL = "filter.xy.com"
BUDGET = "1500ms"  # less than the printed httpTimeout
# Only nodes with the label; everything else is left to kube-scheduler.
BY_LABEL: Json = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "schedulerName": "lowtide",
            "plugins": {
                "multiPoint": {
                    "disabled": [{"name": "*"}],
                    "enabled": [
                        {"name": "PrioritySort"},
                        {"name": "DefaultBinder"},
                        {"name": "NodeLabel"},
                    ],
                }
            },
            "pluginConfig": [{"name": "NodeLabel", "args": {"label": LABEL}}],
        }
    ],
}


@dataclass(frozen=True, slots=True)
class Tls:
    """What an extender serves with; `client` is what kube-scheduler must show, if anything."""

    ca_file: Path
    serving: KeyPair
    client: KeyPair | None = None

    def flags(self) -> list[str]:
        flags = [
            f"--tls-cert-file={self.serving.certificate_file}",
            f"--tls-private-key-file={self.serving.key_file}",
        ]
        return flags if self.client is None else [*flags, f"--client-ca-file={self.ca_file}"]

    def as_kube_scheduler_has_it(self) -> Json:
        said = {"caFile": str(self.ca_file)}
        if self.client is not None:
            said["certFile"] = str(self.client.certificate_file)
            said["keyFile"] = str(self.client.key_file)
        return said


class Extender:
    """Start it, ask it, kill it and start it again: it keeps its port and its log."""

    def __init__(
        self,
        name: str,
        config_file: Path,
        kubeconfig: Path,
        *,
        folder: Path,
        tls: Tls | None = None,
        flags: tuple[str, ...] = (),
    ) -> None:
        self.tls = tls
        port = free_port()
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{port}"
        self._command = [str(LOWTIDE), "extender", f"--config={config_file}"]
        self._tls_flags = [] if tls is None else tls.flags()
        self.process = Process(
            name,
            [
                *self._command,
                f"--kubeconfig={kubeconfig}",
                f"--port={port}",
                "-v=2",
                *self._tls_flags,
                *flags,
            ],
            folder=folder,
            url=self.url,
        )

    def start(self) -> None:
        self.process.start()
        self.process.wait_until_ready(lambda: bool(self.get("/readyz")))

    def get(self, path: str) -> str:
        context = None if self.tls is None else ssl.create_default_context(cafile=self.tls.ca_file)
        if context is not None and self.tls is not None and self.tls.client is not None:
            pair = self.tls.client
            context.load_cert_chain(pair.certificate_file, pair.key_file)
        with urllib.request.urlopen(f"{self.url}{path}", timeout=5, context=context) as response:
            return str(response.read().decode())

    def count(self, metric: str, **labels: str) -> float:
        """The sum of a metric's samples that have these labels."""
        found = 0.0
        for line in self.get("/metrics").splitlines():
            sample = re.fullmatch(rf"{metric}(\{{.*\}})? (\S+)", line)
            words = (f'{name}="{value}"' for name, value in labels.items())
            if sample and all(word in (sample[1] or "") for word in words):
                found += float(sample[2])
        return found

    def answers(self, verb: str, code: str = "200") -> float:
        return self.count("lowtide_extender_requests_total", verb=verb, code=code)

    @cached_property
    def printed_config(self) -> Json:
        """What it tells a user to paste, as it came."""
        flags = ["--print-kube-scheduler-config", f"--url={self.url}/scheduler"]
        done = subprocess.run(
            [*self._command, *self._tls_flags, *flags], capture_output=True, text=True, check=True
        )
        config: Json = yaml.safe_load(done.stdout)
        return config

    def kube_scheduler_config(self, scheduler_name: str, **of_extender: object) -> Json:
        """The printed configuration for one of several kube-schedulers of a test, with these
        fields of its extender changed; where files are on this machine is filled in."""
        config = copy.deepcopy(self.printed_config)
        config["leaderElection"] = {"leaderElect": False}
        config["profiles"][0]["schedulerName"] = scheduler_name
        (extender,) = config["extenders"]
        if self.tls is not None:
            extender["tlsConfig"] |= self.tls.as_kube_scheduler_has_it()
        extender.update(of_extender)
        return config


def patient(config: Json) -> Json:
    """The configuration with long budgets: a machine that runs ten servers for a test must not make
    an answer neutral."""
    return _with_settings(config, namesBudget=BUDGET, nodesBudget=BUDGET)


def that_binds(config: Json) -> Json:
    return _with_settings(config, bind=True)


def _with_settings(config: Json, **settings: object) -> Json:
    changed = copy.deepcopy(config)
    for profile in changed["profiles"]:
        entries = profile.setdefault("pluginConfig", [])
        if not any(entry["name"] == "Extender" for entry in entries):
            entries.append({"name": "Extender", "args": {}})
        for entry in entries:
            if entry["name"] == "Extender":
                entry["args"] |= settings
    return changed


StartExtender = Callable[..., Extender]


@contextmanager
def extenders_in(folder: Path) -> Iterator[StartExtender]:
    """Starts extenders; the arguments are a configuration and Extender's other ones.

    In the end each that runs has to stop by itself when asked to, with exit code 0, and none to
    have printed a traceback."""
    started: list[Extender] = []

    def start(config: Json, kubeconfig: Path, **arguments: Any) -> Extender:
        name = f"extender-{len(started) + 1}"
        config_file = folder / f"{name}.yaml"
        config_file.write_text(yaml.safe_dump(patient(config)))
        extender = Extender(name, config_file, kubeconfig, folder=folder, **arguments)
        started.append(extender)
        extender.start()
        return extender

    try:
        yield start
        running = [each.process for each in started if each.process.is_running()]
        ends = {process.name: process.stop() for process in running}
        assert ends == dict.fromkeys(ends, 0)
        logs = [line for each in started for line in each.process.log().splitlines()]
        assert [line for line in logs if line.startswith("Traceback")] == []
    finally:
        for each in started:
            each.process.kill()
