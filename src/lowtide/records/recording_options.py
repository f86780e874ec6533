"""What a user asks for who wants a recording. Read by the command line, used by `app/recording`."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RecordingOptions:
    """`annotations` are kept besides those that Lowtide's own plugins read."""

    file: Path
    hashes_names: bool = False
    annotations: tuple[str, ...] = ()
