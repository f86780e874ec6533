"""How much CPU this machine has spent, whoever spent it: beside what the processes of a benchmark
took, it tells what others took meanwhile."""

import os
from pathlib import Path


def machine_cpu_seconds() -> float:
    """Since its start. Only the standard library is here: who looks on is to take little."""
    first_line, _, _ = Path("/proc/stat").read_text().partition("\n")
    user, nice, system, _idle, _waiting, *interrupts_and_stolen = first_line.split()[1:9]
    ticks = map(int, (user, nice, system, *interrupts_and_stolen))
    return sum(ticks) / os.sysconf("SC_CLK_TCK")
