"""Builds the Go program that holds kube-scheduler of one version of Kubernetes, and keeps it.

Called by __main__. The real parts' cache and Go are used; standard library only."""

import hashlib
import os
import re
import tempfile
import time
from pathlib import Path

from realparts import kubernetes_modules
from realparts.steps import MissingPart, Say, Step, cache_folder, find_go, locked_cache, run_step

HERE = Path(__file__).resolve().parent
PROGRAM = HERE / "program"
VERSIONS = HERE / "versions"
# The minor versions from which a file of the program with that build tag takes over.
TAGGED_MINORS = (37,)


def obtain_recorder(kubernetes: str, say: Say) -> Path:
    """The path of the program for a version such as 1.36.4; raises MissingPart."""
    if re.fullmatch(r"1\.\d+\.\d+", kubernetes) is None:
        raise MissingPart(f"{kubernetes!r} is no version of Kubernetes; one is like 1.36.4")
    module_file = pinned_module_file(kubernetes)
    with locked_cache():
        if module_file is None:
            module_file = _written_module_file(kubernetes, say)
        if not os.access(_place(kubernetes, module_file), os.X_OK):
            _build(kubernetes, module_file, say)
        return _place(kubernetes, module_file)  # the build may have completed the module file


def pinned_module_file(kubernetes: str) -> Path | None:
    """The committed go.mod that requires this version, if there is one."""
    for file in (PROGRAM / "go.mod", VERSIONS / f"{kubernetes}.mod"):
        if file.exists() and f"\t{kubernetes_modules.MODULE} v{kubernetes}\n" in file.read_text():
            return file
    return None


def build_tags(kubernetes: str) -> list[str]:
    minor = int(kubernetes.split(".")[1])
    return [f"kubernetes_1_{tagged}" for tagged in TAGGED_MINORS if tagged <= minor]


def module_text(kubernetes: str, upstream: str) -> str:
    """A go.mod for a version; upstream is that version's own."""
    return (
        "// The recorder with kube-scheduler of one version of Kubernetes: see README.md.\n"
        + kubernetes_modules.module_text("lowtide/recorder", kubernetes, upstream)
    )


def _written_module_file(kubernetes: str, say: Say) -> Path:
    file = cache_folder() / f"recorder-{kubernetes}.mod"
    if not file.exists():
        say(f"recorder: looking up the modules of Kubernetes {kubernetes} ...")
        file.write_text(
            module_text(kubernetes, kubernetes_modules.upstream_module_text(kubernetes, say))
        )
    return file


def _place(kubernetes: str, module_file: Path) -> Path:
    """A program is built anew when its source or the modules it is made of changed."""
    digest = hashlib.sha256()
    for file in [*sorted(PROGRAM.glob("*.go")), *sorted(PROGRAM.glob("*.s")), module_file]:
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    fingerprint = digest.hexdigest()[:12]
    return cache_folder() / f"recorder-{kubernetes}-{fingerprint}" / "recorder"


def _build(kubernetes: str, module_file: Path, say: Say) -> None:
    say(f"recorder: building it with kube-scheduler {kubernetes}; the first time takes minutes ...")
    begin = time.monotonic()
    modules = "readonly" if module_file.is_relative_to(HERE) else "mod"
    with tempfile.TemporaryDirectory(prefix="getting-", dir=cache_folder()) as scratch:
        target = Path(scratch) / "recorder"
        command = [str(find_go(say)), "build", "-trimpath", "-ldflags", "-s -w"]
        command += [f"-modfile={module_file}", f"-mod={modules}"]
        command += ["-tags", ",".join(build_tags(kubernetes)), "-o", str(target), "."]
        remedy = (
            "its modules must be downloaded once; if a name is not there in that version, "
            "add a file for it beside program/version_1_37.go"
        )
        run_step(Step(f"recorder {kubernetes}", command, remedy), say, folder=PROGRAM)
        place = _place(kubernetes, module_file)
        place.parent.mkdir(exist_ok=True)
        target.replace(place)
    say(f"recorder: built after {time.monotonic() - begin:.0f} s")
