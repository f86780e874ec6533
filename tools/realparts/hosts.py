"""Several hosts on one machine: network namespaces with shaped links and real node_exporters.

Used by the fixtures of tests/real and by bench, as root. The namespaces have no name in the file
system and live as long as the processes inside: a killed test run leaves nothing behind."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from realparts.parts import MissingPart, obtain
from realparts.process import Process, free_port

INTERFACE = "eth0"
EXPORTER_PORT = 9100
BLOCKS = 256
HOSTS_IN_A_BLOCK = 64  # each link is a /30 of the block's /24
BYTES_PER_MEGABYTE = 1_000_000
TRAFFIC_PROGRAM = Path(__file__).resolve().parent / "traffic.py"

Direction = Literal["receive", "transmit"]


class HostsError(Exception):
    """A command that builds the hosts failed; its own words are told."""


@dataclass(frozen=True, slots=True)
class Host:
    """One host: its name, both ends of its link, and the process that keeps it alive."""

    name: str
    address: str
    gateway_address: str
    gateway_interface: str
    keeper: Process

    @property
    def exporter_address(self) -> str:
        return f"{self.address}:{EXPORTER_PORT}"

    def inside(self, *command: str | Path) -> list[str | Path]:
        """The command line that runs `command` on this host; it replaces itself, forks nothing."""
        enter = ["nsenter", "--net", "--uts", "--mount", f"--target={self.keeper.pid}", "--"]
        return [*enter, *command]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that flow through one host's link until the time is over or `stop` is called."""

    host_name: str
    ends: tuple[Process, Process]

    def is_running(self) -> bool:
        return all(end.is_running() for end in self.ends)

    def stop(self) -> None:
        for end in self.ends:
            end.stop(grace_seconds=2.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Hosts:
    """As many hosts as names; each link is shaped to `rate` (tc's spelling) both ways."""

    def __init__(self, names: Sequence[str], *, rate: str = "100mbit") -> None:
        self.names = list(names)
        self.rate = rate
        self.by_name: dict[str, Host] = {}
        self.exporters: dict[str, Process] = {}
        self._traffic: list[Traffic] = []
        self._paths: dict[str, Path] = {}
        self._folder: Path | None = None

    def start(self) -> None:
        """When this returns, every exporter answers. Raises MissingPart without root."""
        rejection = _run("unshare", "--net", "--uts", "--mount", "true")
        if os.geteuid() != 0 or rejection:
            reason = rejection or "this user is not root"
            raise MissingPart(f"root is missing: it makes the network namespaces ({reason})")
        if len(self.names) > HOSTS_IN_A_BLOCK:
            raise HostsError(f"{len(self.names)} hosts are too many; {HOSTS_IN_A_BLOCK} fit")
        self._paths = obtain("ip", "tc", "node_exporter")
        self._folder = Path(tempfile.mkdtemp(prefix="lowtide-hosts-"))
        try:
            for index, name in enumerate(self.names):
                self._start_host(index, name)
            for host in self.by_name.values():
                self._wait_for_exporter(host)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        for traffic in self._traffic:
            traffic.stop()
        for exporter in self.exporters.values():
            exporter.stop()
        for host in self.by_name.values():
            # Both ends go at once; the end of a namespace would remove them too, but later.
            _run(self._paths["ip"], "link", "delete", host.gateway_interface)
            host.keeper.kill()
        self._traffic.clear()
        self.exporters.clear()
        self.by_name.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def pull(
        self,
        name: str,
        *,
        megabytes_per_second: float,
        seconds: float,
        direction: Direction = "receive",
    ) -> Traffic:
        """Real TCP bytes over that host's link, as the host sees them; they flow on return.

        At most `megabytes_per_second * seconds` are sent, less where the link is narrower."""
        host = self.by_name[name]
        number = len(self._traffic)
        port = free_port()
        program: list[str | Path] = [sys.executable, TRAFFIC_PROGRAM]
        pace = [str(int(megabytes_per_second * BYTES_PER_MEGABYTE)), str(seconds)]
        address = [host.gateway_address, str(port)]
        outside_does, host_does = ("send", "take") if direction == "receive" else ("take", "send")
        listener = self._process(
            f"traffic-{number}-listen", [*program, "listen", *address, outside_does, *pace]
        )
        listener.start()
        listener.wait_until_ready(lambda: "listening" in listener.log())
        dialler = self._process(
            f"traffic-{number}-dial",
            host.inside(*program, "dial", *address, host_does, *pace),
        )
        dialler.start()
        traffic = Traffic(name, (dialler, listener))
        self._traffic.append(traffic)
        dialler.wait_until_ready(lambda: "flowing" in dialler.log())
        return traffic

    def _start_host(self, index: int, name: str) -> None:
        keeper = self._process(
            f"keeper-{name}",
            [
                *("unshare", "--net", "--uts", "--mount", "sh", "-ec"),
                # /sys shows the devices of the namespace it was mounted in.
                'mount -t sysfs sysfs /sys; hostname "$0"; "$1" link set lo up; echo kept; '
                "exec sleep infinity",
                name,
                self._paths["ip"],
            ],
        )
        keeper.start()
        keeper.wait_until_ready(lambda: "kept" in keeper.log())
        host = self._linked_host(index, name, keeper)
        self.by_name[name] = host
        self._shape_link(host)
        exporter = self._process(
            f"exporter-{name}",
            host.inside(
                self._paths["node_exporter"],
                "--collector.disable-defaults",
                "--collector.netdev",
                "--collector.netclass",
                "--collector.uname",
                f"--web.listen-address={host.exporter_address}",
            ),
        )
        exporter.start()
        self.exporters[name] = exporter

    def _linked_host(self, index: int, name: str, keeper: Process) -> Host:
        """Makes the veth pair. The kernel rejects a second interface of one name, so the first
        name it takes tells a block of addresses that no other run on this machine uses."""
        taken = self._block()
        candidates = range(BLOCKS) if taken is None else (taken,)
        for block in candidates:
            interface = f"lowtide-{block}-{index}"
            peer = ["peer", "name", INTERFACE, "netns", str(keeper.pid)]
            if not _run(self._paths["ip"], "link", "add", interface, "type", "veth", *peer):
                gateway = f"10.231.{block}.{4 * index + 1}"
                return Host(name, f"10.231.{block}.{4 * index + 2}", gateway, interface, keeper)
        keeper.kill()
        raise HostsError(f"no interface lowtide-N-{index} can be made; `ip link` tells why")

    def _block(self) -> int | None:
        for host in self.by_name.values():
            return int(host.address.split(".")[2])
        return None

    def _shape_link(self, host: Host) -> None:
        shape = ["root", "tbf", "rate", self.rate, "burst", "64k", "latency", "50ms"]
        ip, tc = self._paths["ip"], self._paths["tc"]
        outside = host.gateway_interface
        for command in (
            [ip, "address", "add", f"{host.gateway_address}/30", "dev", outside],
            [ip, "link", "set", outside, "up"],
            [tc, "qdisc", "add", "dev", outside, *shape],
            host.inside(ip, "address", "add", f"{host.address}/30", "dev", INTERFACE),
            host.inside(ip, "link", "set", INTERFACE, "up"),
            host.inside(tc, "qdisc", "add", "dev", INTERFACE, *shape),
        ):
            complaint = _run(*command)
            if complaint:
                raise HostsError(f"{' '.join(str(word) for word in command)}: {complaint}")

    def _wait_for_exporter(self, host: Host) -> None:
        exporter = self.exporters[host.name]
        exporter.wait_until_ready(lambda: _accepts(host.address, EXPORTER_PORT))

    def _process(self, name: str, command: list[str | Path]) -> Process:
        if self._folder is None:
            raise RuntimeError("the hosts do not run; call start() first")
        return Process(name, command, folder=self._folder)


def _run(*command: str | Path) -> str:
    """What the command complained of; nothing when it went well."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    return done.stderr.strip() or f"it ended with {done.returncode}"


def _accepts(address: str, port: int) -> bool:
    with socket.create_connection((address, port), timeout=1.0):
        return True
