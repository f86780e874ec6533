"""The entry point: `lowtide` and `python -m lowtide`."""

import os
import signal
import sys


def main() -> None:
    # Until a mode has taken over, Ctrl-C ends the process without a word.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for stream in ("stdout", "stderr"):
        if getattr(sys, stream) is None:  # closed by the caller
            setattr(sys, stream, open(os.devnull, "w"))  # noqa: SIM115

    from lowtide.cli import main as run

    run()


if __name__ == "__main__":
    main()
