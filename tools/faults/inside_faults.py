"""What goes wrong around the scheduler and in it: the clock jumps, disks are full, plugins fail."""

import errno
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faults.arena import Arena, Setting
from faults.misbehaving import MOOD_FILE
from realparts.parts import MissingPart, obtain

TOOLS = Path(__file__).resolve().parent.parent
JUMPS_SECONDS = (3600, -1800)  # the certificates of tests are an hour old
HANGS = "Misbehaving.filter hangs"
WATCHDOG_SECONDS = 90.0
FULL_AFTER = "1m"


def clock_jumps(arena: Arena) -> None:
    """The wall clock alone: nothing sets a monotonic clock."""
    try:
        obtain("faketime")
    except MissingPart as missing:
        arena.figures.left_out.append(f"clock jumps: {missing}")
        return
    (library,) = Path("/usr/lib").glob("*/faketime/libfaketime.so.1")
    offset = arena.folder / "clock"
    offset.write_text("+0")
    environment = {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    with arena.trial("clock", Setting(elects=True, environment=environment)) as trial:
        trial.start()
        for jump_seconds in JUMPS_SECONDS:
            trial.post(arena.size.burst_pods)
            with trial.inject(f"clock jumps by {jump_seconds} s"):
                offset.write_text(f"{jump_seconds:+d}")
                time.sleep(arena.size.cut_seconds)


def disk_full(arena: Arena) -> None:
    """Of logs, decisions and the recording: all on one small file system."""
    try:
        with _small_disk(arena.folder / "small") as disk:
            flags = [f"--decisions-file={disk / 'decisions'}", f"--record={disk / 'recording'}"]
            with arena.trial("disk", Setting(flags=[*flags, "-v=2"], folder=disk)) as trial:
                trial.start()
                filler = disk / "filler"
                with trial.inject("disk full"):
                    _fill(filler)
                    before = arena.auditor.bound_count
                    trial.post(arena.size.burst_pods)
                    time.sleep(arena.size.cut_seconds)
                    if arena.auditor.bound_count == before:
                        arena.auditor.object_to("disk full: no pod was bound meanwhile")
                    filler.unlink()
    except PermissionError as rejection:
        arena.figures.left_out.append(f"disk full: {rejection}")


def plugin_fails(arena: Arena) -> None:
    with _misbehaving(arena) as mood, arena.trial("plugin", _plugin_setting(mood)) as trial:
        trial.start()
        for words in ("raises", "talks nonsense"):
            with trial.inject(f"a plugin {words}"):
                mood.write_text(words)
                trial.post(arena.size.burst_pods)
                time.sleep(arena.size.cut_seconds)
                mood.write_text("")


def plugin_hangs(arena: Arena) -> None:
    """The watchdog ends the process, and the next one finds the plugin well again."""
    with _misbehaving(arena) as mood, arena.trial("hang", _plugin_setting(mood)) as trial:
        trial.start()
        (replica,) = trial.supervisor.replicas
        with trial.inject("a plugin hangs"):
            mood.write_text("hangs")
            trial.wait(lambda: bool(replica.ends), "the watchdog ends it", WATCHDOG_SECONDS)
            mood.write_text("")
        if HANGS not in replica.process.log():
            arena.auditor.object_to("a plugin hangs: the log does not name it")


@contextmanager
def _misbehaving(arena: Arena) -> Iterator[Path]:
    mood = arena.folder / "mood"
    mood.write_text("")
    yield mood


def _plugin_setting(mood: Path) -> Setting:
    plugin = {"name": "faults.misbehaving:Misbehaving"}
    return Setting(
        may_print_tracebacks=True,
        profile={"plugins": {"filter": {"enabled": [plugin]}, "score": {"enabled": [plugin]}}},
        environment={MOOD_FILE: str(mood), "PYTHONPATH": str(TOOLS)},
    )


@contextmanager
def _small_disk(folder: Path) -> Iterator[Path]:
    """A file system of its own; PermissionError where none may be mounted."""
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={FULL_AFTER}", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PermissionError(f"no file system can be mounted: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)


def _fill(file: Path) -> None:
    with file.open("wb", buffering=0) as filler:
        for size in (4096, 1):
            try:
                while True:
                    filler.write(b"-" * size)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
