"""How long failures in a row make us wait."""

from lowtide.kube.backoff import Backoff


def test_waits_double_to_30_seconds_and_start_anew_after_a_reset() -> None:
    backoff = Backoff()
    waits = [backoff.next_seconds() for _ in range(8)]
    backoff.reset()
    waits.append(backoff.next_seconds())
    assert waits == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 0.8]
