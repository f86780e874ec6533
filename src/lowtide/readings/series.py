"""One value from Prometheus with its labels. Telemetry passes them to the meter."""

import msgspec


class Series(msgspec.Struct, frozen=True, gc=False):
    """One row of an instant vector.

    `at` is when Prometheus evaluated the query, in seconds since 1970 by its clock. The last
    scrape may be older."""

    labels: dict[str, str]
    value: float
    at: float
