"""One value that Prometheus gave, with its labels: what telemetry hands to the meter."""

import msgspec


class Series(msgspec.Struct, frozen=True, gc=False):
    """One row of an instant vector.

    `at` is in seconds since 1970 by Prometheus's clock: the moment the query was evaluated, which
    may be later than the last scrape."""

    labels: dict[str, str]
    value: float
    at: float
