"""A plugin that does what a file tells it: nothing, raise, hang, or talk nonsense.

Named in the configuration of the schedulers that `inside_faults` tries it on."""

import os
import time
from pathlib import Path

from lowtide.framework.plugin import OneNode, Pod, filter_each, score_each

MOOD_FILE = "FAULTS_MOOD_FILE"  # the environment variable that names it


class Misbehaving:
    name = "Misbehaving"

    @filter_each
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        match _mood():
            case "raises":
                raise RuntimeError(f"the plugin fails at {pod.metadata.name}")
            case "hangs":
                while True:
                    time.sleep(1.0)
        return None

    @score_each
    def score(self, pod: Pod, node: OneNode) -> int:
        return -(10**30) if _mood() == "talks nonsense" else 0


def _mood() -> str:
    return Path(os.environ[MOOD_FILE]).read_text()
