"""The table of real parts and `obtain`, which builds or installs what is missing and keeps it.

Called by the test fixtures, by bench, and as `python tools/realparts/parts.py [NAME ...]` before
a virtual environment exists, so it needs nothing but the standard library. A program of Kubernetes
is to be had in other versions than the one of the table too: `kube-apiserver@v1.28.2`."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))

from realparts import kubernetes_modules  # noqa: E402
from realparts.steps import (  # noqa: E402
    MissingPart,
    Say,
    Step,
    cache_folder,
    find_go,
    locked_cache,
    run_step,
    say_on_stderr,
)


@dataclass(frozen=True, slots=True)
class GoModule:
    """Built in a folder whose go.mod pins `module`, because `go install` rejects `replace`."""

    name: str
    folder: str
    module: str
    package: str
    version_variables: tuple[str, ...] = ()
    release_of: Callable[[str], str] = str  # what a program of that module version calls itself

    @property
    def version(self) -> str:
        text = (HERE / self.folder / "go.mod").read_text()
        found = re.search(rf"^\s*(?:require )?{re.escape(self.module)} (v\S+)", text, re.MULTILINE)
        if found is None:
            raise MissingPart(f"{self.folder}/go.mod does not require {self.module}; add it")
        return found.group(1)


@dataclass(frozen=True, slots=True)
class OtherVersion:
    """Built as `program` is, with a go.mod made of that version's own and kept in the cache."""

    program: GoModule
    version: str

    @property
    def name(self) -> str:
        return self.program.name


@dataclass(frozen=True, slots=True)
class GoCommand:
    """Built by `go install package@version`."""

    name: str
    package: str
    version: str


@dataclass(frozen=True, slots=True)
class GoFolder:
    """A folder with files that a module brings along."""

    name: str
    module: str
    version: str
    path: str


@dataclass(frozen=True, slots=True)
class DebianFile:
    """Found where Debian puts it, else unpacked from Debian's package into the cache.

    Unpacked and not installed: the package would start a service, and installing needs root."""

    name: str
    package: str
    path: str
    version: str = "debian"


@dataclass(frozen=True, slots=True)
class DebianTool:
    """A command on the PATH, else installed from Debian's package."""

    name: str
    package: str


Kept = GoModule | OtherVersion | GoCommand | GoFolder | DebianFile
Part = Kept | DebianTool

COMPONENT_VERSION = "k8s.io/component-base/version.gitVersion"
CLIENT_VERSION = "k8s.io/client-go/pkg/version.gitVersion"
PROMETHEUS_VERSION = "github.com/prometheus/common/version.Version"


def _prometheus_release(module_version: str) -> str:
    """The module of release 3.15.0 is v0.315.0: Go wants another path from v2 on."""
    found = re.fullmatch(r"v0\.(\d)(\d\d)\.(\d+)", module_version)
    if found is None:
        raise MissingPart(f"Prometheus's module is {module_version}; it should be like v0.315.0")
    major, minor, patch = (int(number) for number in found.groups())
    return f"{major}.{minor}.{patch}"


def _kubernetes(name: str) -> GoModule:
    return GoModule(
        name,
        folder="kubernetes",
        module=kubernetes_modules.MODULE,
        package=f"{kubernetes_modules.MODULE}/cmd/{name}",
        version_variables=(COMPONENT_VERSION, CLIENT_VERSION),
    )


PARTS: tuple[Part, ...] = (
    GoModule(
        "etcd", "etcd", module="go.etcd.io/etcd/server/v3", package="go.etcd.io/etcd/server/v3"
    ),
    _kubernetes("kube-apiserver"),
    _kubernetes("kube-controller-manager"),
    _kubernetes("kube-scheduler"),
    _kubernetes("kubectl"),
    GoCommand("kwok", "sigs.k8s.io/kwok/cmd/kwok", "v0.8.0"),
    GoCommand("metrics-server", "sigs.k8s.io/metrics-server/cmd/metrics-server", "v0.9.0"),
    GoCommand("helm", "helm.sh/helm/v4/cmd/helm", "v4.3.1"),
    GoFolder(
        "prometheus-operator-crds",
        module="github.com/prometheus-operator/prometheus-operator",
        version="v0.93.0",
        path="example/prometheus-operator-crd",
    ),
    DebianFile("prometheus", "prometheus", "/usr/bin/prometheus"),
    DebianFile("promtool", "prometheus", "/usr/bin/promtool"),
    GoModule(
        "prometheus-3",
        folder="prometheus3",
        module="github.com/prometheus/prometheus",
        package="github.com/prometheus/prometheus/cmd/prometheus",
        version_variables=(PROMETHEUS_VERSION,),
        release_of=_prometheus_release,
    ),
    DebianFile("node_exporter", "prometheus-node-exporter", "/usr/bin/prometheus-node-exporter"),
    DebianTool("ip", "iproute2"),
    DebianTool("tc", "iproute2"),
    DebianTool("faketime", "faketime"),
    DebianTool("chromium", "chromium"),
)


def obtain(*names: str, say: Say = say_on_stderr) -> dict[str, Path]:
    """The path of each named part, after building or installing those that are missing.

    Safe to call from several processes at once; raises MissingPart."""
    wanted = {name: part_named(name) for name in names}
    return {name: _obtain_one(part, say) for name, part in wanted.items()}


def part_named(name: str) -> Part:
    """`kube-apiserver` is the table's, `kube-apiserver@v1.28.2` the same of another version."""
    table = {part.name: part for part in PARTS}
    own_name, at, version = name.partition("@")
    part = table.get(own_name)
    if part is None:
        raise MissingPart(f"no part is called {own_name}; there are {', '.join(table)}")
    if not at:
        return part
    if not isinstance(part, GoModule) or part.module != kubernetes_modules.MODULE:
        raise MissingPart(f"{name}: only programs of Kubernetes are to be had in other versions")
    if re.fullmatch(r"v1\.\d+\.\d+", version) is None:
        raise MissingPart(f"{name}: {version!r} is no version of Kubernetes; one is like v1.36.4")
    return part if version == part.version else OtherVersion(part, version)


def _obtain_one(part: Part, say: Say) -> Path:
    found = _find(part)
    if found is not None:
        return found
    with locked_cache():
        found = _find(part)  # another process may have built it while this one waited
        if found is not None:
            return found
        version = "" if isinstance(part, DebianTool) else f" {part.version}"
        say(f"real parts: getting {part.name}{version} ...")
        begin = time.monotonic()
        _get(part, say)
        say(f"real parts: {part.name}{version} is ready after {time.monotonic() - begin:.0f} s")
    found = _find(part)
    if found is None:
        raise MissingPart(
            f"{part.name} is missing even after it was installed; see the lines above"
        )
    return found


def _find(part: Part) -> Path | None:
    if isinstance(part, DebianTool):
        # A user's PATH often lacks the administrator's folders.
        found = shutil.which(part.name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
        return Path(found) if found else None
    if isinstance(part, DebianFile) and os.access(part.path, os.X_OK):
        return Path(part.path)
    kept = _place(part)
    return kept if os.access(kept, os.X_OK) else None


def _place(part: Kept) -> Path:
    return _kept_at(part.name, part.version)


def _kept_at(name: str, version: str) -> Path:
    return cache_folder() / f"{name}-{version}" / name


def _get(part: Part, say: Say) -> None:
    if isinstance(part, DebianTool):
        _install_debian_package(part, say)
        return
    with tempfile.TemporaryDirectory(prefix="getting-", dir=cache_folder()) as scratch:
        match part:
            case GoModule():
                file = _build_module(part, Path(scratch), say)
            case OtherVersion():
                file = _build_other_version(part, Path(scratch), say)
            case GoCommand():
                file = _build_command(part, Path(scratch), say)
            case GoFolder():
                file = _copy_folder(part, Path(scratch), say)
            case DebianFile():
                file = _unpack_debian_package(part, Path(scratch), say)
        place = _place(part)
        place.parent.mkdir(exist_ok=True)
        file.replace(place)  # atomic: nobody sees half a binary


def _build_module(part: GoModule, scratch: Path, say: Say) -> Path:
    build = _build_step(part, part.version, scratch / part.name, say)
    run_step(build, say, folder=HERE / part.folder)
    return scratch / part.name


def _build_other_version(part: OtherVersion, scratch: Path, say: Say) -> Path:
    folder = cache_folder() / f"kubernetes-{part.version}"
    module_file = folder / "go.mod"
    if not module_file.exists():
        version = part.version.removeprefix("v")
        upstream = kubernetes_modules.upstream_module_text(version, say)
        text = kubernetes_modules.module_text("lowtide/realparts/kubernetes", version, upstream)
        folder.mkdir(exist_ok=True)
        module_file.write_text(text)
    build = _build_step(part.program, part.version, scratch / part.name, say, "-mod=mod")
    run_step(build, say, folder=folder)
    return scratch / part.name


def _build_step(part: GoModule, version: str, target: Path, say: Say, *flags: str) -> Step:
    variables = [f"-X {name}={part.release_of(version)}" for name in part.version_variables]
    link_flags = " ".join(["-s", "-w", *variables])
    command = [str(find_go(say)), "build", *flags, "-trimpath", "-ldflags", link_flags]
    remedy = _network_or_copy(part.name, version)
    return Step(part.name, [*command, "-o", str(target), part.package], remedy)


def _build_command(part: GoCommand, scratch: Path, say: Say) -> Path:
    arguments = ["install", "-trimpath", "-ldflags", "-s -w", f"{part.package}@{part.version}"]
    build = Step(
        part.name, [str(find_go(say)), *arguments], remedy=_network_or_copy(part.name, part.version)
    )
    run_step(build, say, folder=scratch, environment={**os.environ, "GOBIN": str(scratch)})
    return scratch / part.package.rpartition("/")[2]


def _copy_folder(part: GoFolder, scratch: Path, say: Say) -> Path:
    go = str(find_go(say))
    remedy = _network_or_copy(part.name, part.version)
    download = [go, "mod", "download", f"{part.module}@{part.version}"]
    run_step(Step(part.name, download, remedy), say, folder=scratch)
    modules = subprocess.run(
        [go, "env", "GOMODCACHE"], capture_output=True, text=True, check=True
    ).stdout.strip()
    target = scratch / part.name
    shutil.copytree(Path(modules) / f"{part.module}@{part.version}" / part.path, target)
    target.chmod(0o755)
    return target


def _network_or_copy(name: str, version: str) -> str:
    return f"its modules must be downloaded once, or a copy be put at {_kept_at(name, version)}"


def _unpack_debian_package(part: DebianFile, scratch: Path, say: Say) -> Path:
    remedy = f"install Debian's package {part.package} by hand"
    _refresh_package_lists(part, say)
    run_step(Step(part.name, ["apt-get", "download", part.package], remedy), say, folder=scratch)
    (archive,) = scratch.glob("*.deb")
    unpack = ["dpkg-deb", "--extract", str(archive), str(scratch / "files")]
    run_step(Step(part.name, unpack, remedy), say)
    return scratch / "files" / part.path.lstrip("/")


def _install_debian_package(part: DebianTool, say: Say) -> None:
    if os.geteuid() != 0:
        raise MissingPart(f"{part.name} is missing: as root, apt-get install {part.package}")
    _refresh_package_lists(part, say)
    command = ["apt-get", "install", "-y", "--no-install-recommends", part.package]
    install = Step(part.name, command, remedy=f"install the package {part.package} by hand")
    run_step(install, say, environment={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})


def _refresh_package_lists(part: DebianFile | DebianTool, say: Say) -> None:
    remedy = f"install the package {part.package} by hand"
    if shutil.which("apt-get") is None:
        raise MissingPart(f"{part.name} is missing and so is apt-get to fetch it with: {remedy}")
    if os.geteuid() == 0:
        run_step(Step(part.name, ["apt-get", "update"], remedy), say)


def main(names: list[str]) -> int:
    try:
        paths = obtain(*(names or [part.name for part in PARTS]))
    except MissingPart as missing:
        say_on_stderr(f"real parts: {missing}")
        return 1
    for name, path in paths.items():
        print(f"{name}\t{path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
