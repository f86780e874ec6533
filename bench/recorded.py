"""How long `lowtide decide` takes for every recorded decision of kube-scheduler, as a user runs it:
one process, all families, from the first import to the last line."""

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "tests" / "oracle" / "data"


@dataclass(frozen=True, slots=True)
class RecordedResult:
    workload: str
    scheduler: str
    cases: int
    round: int
    seconds: float

    @property
    def ms_per_case(self) -> float:
        return 1000 * self.seconds / self.cases


def decide_recorded(number: int) -> RecordedResult:
    files = sorted(str(path) for path in DATA.glob("*.jsonl.gz"))
    command = [sys.executable, "-m", "lowtide", "decide", "--output", "json", *files]
    started = time.monotonic()
    # Ctrl-C is not for it: `run` ends it.
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, start_new_session=True)
    seconds = time.monotonic() - started
    return RecordedResult("recorded", "lowtide", len(done.stdout.splitlines()), number, seconds)
