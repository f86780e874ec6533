"""What the log says of a row: which pods came, and whether that is all."""

from lowtide.cluster.change_log import MOST_ARRIVALS, ChangeLog
from lowtide.cluster.changes import EVERY_ROW, LABELS, NODE, PODS, READING


def log_of(*comings: tuple[int, str]) -> ChangeLog:
    """Pods of these signatures came to these rows."""
    log = ChangeLog(4)
    for row, signature in comings:
        log.pod_arrived(row, PODS, signature)
    return log


def test_pods_that_came_one_after_the_other_are_told_since_any_of_them() -> None:
    log = log_of((1, "a"), (2, "x"), (1, "a"), (1, "a"))
    assert [log.arrivals_since(1, version, "a") for version in (0, 1, 3)] == [3, 2, 1]
    assert log.last_arrival(1) == "a"
    assert log.since(1) == [(2, PODS), (1, PODS), (1, PODS)]


def test_since_now_and_since_a_version_that_the_row_never_had_nothing_came() -> None:
    log = log_of((1, "a"), (2, "x"))
    assert log.versions.tolist() == [0, 1, 2, 0]
    assert log.arrivals_since(1, 1, "a") == 0
    assert log.arrivals_since(1, 2, "a") == 0
    assert log.arrivals_since(0, 0, "a") == 0
    assert log.last_arrival(0) is None


def test_pods_of_another_signature_are_another_change() -> None:
    log = log_of((1, "a"), (1, "b"), (1, "a"))
    assert [log.arrivals_since(1, version, "a") for version in (0, 1, 2)] == [0, 0, 1]
    assert [log.arrivals_since(1, version, "b") for version in (0, 1, 2)] == [0, 0, 0]


def test_any_other_change_of_the_row_cuts_the_chain() -> None:
    log = log_of((1, "a"), (2, "x"))
    log.add(1, NODE)
    assert log.arrivals_since(1, 0, "a") == 0
    assert log.last_arrival(1) is None
    log.pod_arrived(1, PODS | READING, "a")
    assert log.arrivals_since(1, 0, "a") == 0
    assert log.arrivals_since(1, 3, "a") == 1
    assert log.arrivals_since(2, 0, "x") == 1


def test_a_change_of_every_row_cuts_all_chains() -> None:
    log = log_of((1, "a"), (2, "x"))
    log.add(EVERY_ROW, READING)
    assert log.versions.tolist() == [3, 3, 3, 3]
    assert [log.arrivals_since(row, 0, signature) for row, signature in ((1, "a"), (2, "x"))] == [
        0,
        0,
    ]


def test_a_row_that_is_gone_is_forgotten() -> None:
    log = log_of((1, "a"))
    log.row_removed(1)
    assert log.arrivals_since(1, 0, "a") == 0


def test_only_so_many_are_remembered() -> None:
    log = log_of(*[(0, "a")] * (MOST_ARRIVALS + 2))
    assert [log.arrivals_since(0, version, "a") for version in range(3)] == [0, 0, MOST_ARRIVALS]


def test_labels_that_change_cut_no_chain() -> None:
    log = log_of((1, "a"))
    log.add(1, LABELS)
    assert log.since(1) == [(1, LABELS)]
    assert log.versions.tolist() == [0, 1, 0, 0]
    assert log.arrivals_since(1, 0, "a") == 1
    log.add(1, LABELS | READING)
    assert log.arrivals_since(1, 0, "a") == 0
