"""A token bucket: at most so many requests a second after a burst; used by connection when set."""

from collections.abc import Callable


class RateLimit:
    def __init__(self, *, per_second: float, burst: int, clock: Callable[[], float]) -> None:
        if per_second <= 0 or burst < 1:
            raise ValueError(
                f"A rate limit of {per_second} per second with a burst of {burst} lets nothing "
                f"through; both must be above zero"
            )
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._counted_at = clock()

    def reserve_seconds(self) -> float:
        """Takes one token and tells how long to wait before using it."""
        now = self._clock()
        gained = max(now - self._counted_at, 0.0) * self._per_second
        self._tokens = min(self._tokens + gained, float(self._burst)) - 1.0
        self._counted_at = now
        return max(-self._tokens / self._per_second, 0.0)
