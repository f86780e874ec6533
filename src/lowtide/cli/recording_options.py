"""The options of a command that can record what it does."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from lowtide.records.recording_options import RecordingOptions


def recording_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds them; the command is given `recording`, which is None where nothing is recorded."""

    @click.option(
        "--record",
        "record_file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Records all events and decisions for `lowtide replay`.",
    )
    @click.option("--record-hash-names", is_flag=True, help="With names that nobody can read.")
    @click.option(
        "--record-annotation",
        "record_annotations",
        multiple=True,
        metavar="KEY",
        help="An annotation to record besides those that Lowtide's plugins read.",
    )
    @wraps(command)
    def with_recording(
        *arguments: Any,
        record_file: Path | None,
        record_hash_names: bool,
        record_annotations: tuple[str, ...],
        **options: Any,
    ) -> Any:
        if record_file is None and (record_hash_names or record_annotations):
            raise click.UsageError("--record-hash-names and --record-annotation need --record FILE")
        recording = (
            None
            if record_file is None
            else RecordingOptions(record_file, record_hash_names, record_annotations)
        )
        return command(*arguments, recording=recording, **options)

    return with_recording
