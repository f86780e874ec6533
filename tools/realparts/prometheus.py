"""A real Prometheus on loopback that scrapes a stated list of targets.

Used by the fixtures of tests/real and by bench; the targets may be in network namespaces."""

import json
import shutil
import ssl
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from realparts.parts import obtain
from realparts.process import Process, free_port, wait_until

TIMEOUT_SECONDS = 10.0


class QueryError(Exception):
    """Prometheus rejected a query; its own words are told."""


@dataclass(frozen=True, slots=True)
class Target:
    """`host:port` of an exporter, and the labels its series get."""

    address: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WebAccess:
    """The file of `--web.config.file`, which may ask for TLS and a password, and what to show
    to a server that has it."""

    config_file: Path
    tls: ssl.SSLContext
    authorization: str


class Prometheus:
    """Start it, ask it, change its targets, stop it.

    The part `prometheus` is version 2, `prometheus-3` is version 3."""

    def __init__(
        self,
        targets: Iterable[Target] = (),
        *,
        scrape_interval_seconds: int = 1,
        job_name: str = "node-exporter",
        flags: Sequence[str] = (),
        host: str = "127.0.0.1",
        web: WebAccess | None = None,
        part: str = "prometheus",
    ) -> None:
        self.targets = list(targets)
        self.scrape_interval_seconds = scrape_interval_seconds
        self.job_name = job_name
        self.flags = list(flags)
        self.host = host
        self.web = web
        self.part = part
        self._process: Process | None = None

    def start(self) -> None:
        program = obtain(self.part)[self.part]
        folder = Path(tempfile.mkdtemp(prefix="lowtide-prometheus-"))
        port = free_port()
        command: list[str | Path] = [
            program,
            f"--config.file={folder / 'prometheus.json'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={self.host}:{port}",
            "--web.enable-lifecycle",
            "--log.level=warn",
            *self.flags,
        ]
        url = f"http://{self.host}:{port}"
        if self.web is not None:
            command.append(f"--web.config.file={self.web.config_file}")
            url = url.replace("http:", "https:")
        self._process = Process("prometheus", command, folder=folder, url=url)
        try:
            self._write_config()
            self._process.start()
            self._process.wait_until_ready(lambda: bool(self._get("/-/ready")))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()
            shutil.rmtree(self._process.folder, ignore_errors=True)
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def process(self) -> Process:
        if self._process is None:
            raise RuntimeError("Prometheus does not run; call start() first")
        return self._process

    @property
    def url(self) -> str:
        return self.process.url

    def query(self, promql: str) -> list[dict[str, Any]]:
        """The `result` of an instant query: `[{"metric": {...}, "value": [time, "1.5"]}]`."""
        answer = json.loads(self._get(f"/api/v1/query?{urllib.parse.urlencode({'query': promql})}"))
        result: list[dict[str, Any]] = answer["data"]["result"]
        return result

    def values(self, promql: str, label: str) -> dict[str, float]:
        """An instant query's values by one label of their series."""
        return {row["metric"].get(label, ""): float(row["value"][1]) for row in self.query(promql)}

    def reload(self, targets: Iterable[Target]) -> None:
        """Scrapes these targets from now on and no others."""
        self.targets = list(targets)
        self._write_config()
        with self._open("/-/reload", method="POST"):
            pass

    def healthy_targets(self) -> set[str]:
        """The addresses whose last scrape went well."""
        answer = json.loads(self._get("/api/v1/targets?state=active"))
        return {
            target["discoveredLabels"]["__address__"]
            for target in answer["data"]["activeTargets"]
            if target["health"] == "up"
        }

    def wait_until_scraped(self, timeout_seconds: float = 30.0) -> None:
        """Returns when every target was scraped well at least once.

        Prometheus takes new targets up every five seconds, so this lasts about six."""
        wanted = {target.address for target in self.targets}
        wait_until(
            lambda: self.healthy_targets() >= wanted,
            timeout_seconds=timeout_seconds,
            what=f"Prometheus scraped {', '.join(sorted(wanted))}",
        )

    def _get(self, path: str) -> str:
        try:
            with self._open(path) as response:
                return str(response.read().decode())
        except urllib.error.HTTPError as rejection:
            with rejection:
                words = rejection.read().decode(errors="replace")[:500]
            if rejection.code in (400, 422):
                raise QueryError(f"GET {path} was answered {rejection.code}: {words}") from None
            raise ConnectionError(f"GET {path} was answered {rejection.code}: {words}") from None

    def _open(self, path: str, method: str = "GET") -> Any:
        headers = {} if self.web is None else {"Authorization": self.web.authorization}
        request = urllib.request.Request(f"{self.url}{path}", headers=headers, method=method)
        context = None if self.web is None else self.web.tls
        return urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS, context=context)

    def _write_config(self) -> None:
        """JSON, which is YAML too."""
        interval = f"{self.scrape_interval_seconds}s"
        config = {
            "global": {"scrape_interval": interval, "scrape_timeout": interval},
            "scrape_configs": [
                {
                    "job_name": self.job_name,
                    "static_configs": [
                        {"targets": [target.address], "labels": dict(target.labels)}
                        for target in self.targets
                    ],
                }
            ],
        }
        (self.process.folder / "prometheus.json").write_text(json.dumps(config, indent=2))
