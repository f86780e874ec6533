"""Times as the API server spells them."""

from lowtide.kube.timestamps import micro_time, second_time


def test_times_are_in_utc_with_all_their_digits() -> None:
    assert micro_time(1_800_000_000.5) == "2027-01-15T08:00:00.500000Z"
    assert micro_time(1_800_000_000.0) == "2027-01-15T08:00:00.000000Z"
    assert second_time(1_800_000_000.9) == "2027-01-15T08:00:00Z"
