"""What the fault suite calls a failure."""

import pytest

from faults.report import Figures

GOOD = {
    "faults": 48,
    "pods": 18_000,
    "bindings_of_former_leaders": 32,
    "missing_events_after_kill": 3_000,
    "longest_leaderless_seconds": 15.0,
    "longest_recovery_seconds": 30.0,
    "leader_killed_to_next_binding_seconds": 18.0,
    "leader_terminated_to_next_binding_seconds": 3.0,
}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        pytest.param(name, 1, f"{name} is 1; it should be 0", id=f"is objected to: {name}")
        for name in (
            "double_bindings",
            "lost_pods",
            "lost_events",
            "lost_conditions",
            "overcommitted_nodes",
            "violations",
        )
    ]
    + [
        pytest.param(
            "bindings_of_former_leaders",
            33,
            "bindings_of_former_leaders is 33; it should be at most 32",
            id="bindings after another one led",
        )
    ]
    + [
        pytest.param(
            name, most + 0.1, f"{name} is {most}.1; it should be at most {most}", id=f"{name} late"
        )
        for name, most in (
            ("longest_recovery_seconds", 30),
            ("leader_killed_to_next_binding_seconds", 18),
            ("leader_terminated_to_next_binding_seconds", 3),
        )
    ],
)
def test_a_figure_that_is_missed_is_told(name: str, value: float, expected: str) -> None:
    assert list(Figures(**GOOD).problems()) == []
    assert list(Figures(**{**GOOD, name: value}).problems()) == [expected]
