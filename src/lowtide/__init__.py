"""Lowtide places Kubernetes pods on nodes whose network is quiet.

`run` is the command line; pass your own plugins to it."""

import collections.abc
import typing

__all__ = ["run"]


def run(*, plugins: collections.abc.Mapping[str, type[typing.Any]] | None = None) -> None:
    """Does what the command line asks for, and ends the process. `plugins` are plugins by name: a
    configuration may then enable them as if they were built in."""
    # What is needed depends on the command, and `import lowtide` is to cost nothing.
    import os
    import signal
    import sys

    # Until a mode has taken over, Ctrl-C ends the process without a word.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for stream in ("stdout", "stderr"):
        if getattr(sys, stream) is None:  # closed by the caller
            setattr(sys, stream, open(os.devnull, "w"))  # noqa: SIM115

    from lowtide.cli import main

    main(plugins)
