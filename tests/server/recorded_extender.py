"""What a real kube-scheduler sent to an extender, as recorded."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).resolve().parent / "recorded_requests"


@dataclass(frozen=True, slots=True)
class Recorded:
    name: str
    verb: str
    is_by_name: bool
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)


def recorded_requests(*verbs: str) -> list[Recorded]:
    """Those of these verbs, in the order of their names; all without a verb."""
    files = sorted(_FOLDER.glob("*.json"))
    read = [(file.stem, json.loads(file.read_text())) for file in files]
    return [
        Recorded(name, said["verb"], said["nodeCacheCapable"], said["body"].encode())
        for name, said in read
        if not verbs or said["verb"] in verbs
    ]
