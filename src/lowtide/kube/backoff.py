"""How long to wait after failures in a row: 0.8 s, doubled each time, never above 30 s."""

FIRST_SECONDS = 0.8
LONGEST_SECONDS = 30.0


class Backoff:
    def __init__(self) -> None:
        self.failures = 0

    def next_seconds(self) -> float:
        seconds = min(FIRST_SECONDS * 2.0 ** min(self.failures, 16), LONGEST_SECONDS)
        self.failures += 1
        return seconds

    def reset(self) -> None:
        self.failures = 0
