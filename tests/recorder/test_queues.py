"""Scenarios of a scheduling queue: repeatable, in order of time, with something of everything."""

from typing import Any

from recorder.queues import make_queues


def made(seed: int = 1) -> list[dict[str, Any]]:
    return make_queues(seed=seed, cases=20, steps=50)


def steps() -> list[dict[str, Any]]:
    return [step for case in made() for step in case["scenario"]["steps"]]


def test_a_seed_makes_the_same_scenarios_again() -> None:
    assert made() == made()


def test_another_seed_makes_others() -> None:
    assert made(seed=1)[0]["scenario"] != made(seed=2)[0]["scenario"]


def test_no_two_things_happen_at_the_same_moment() -> None:
    for case in made():
        moments = [step["at"] for step in case["scenario"]["steps"]]
        assert moments == sorted(set(moments))


def test_everything_that_can_happen_does() -> None:
    assert {step["do"] for step in steps()} == {
        "add",
        "update",
        "delete",
        "pop",
        "nodeAdded",
        "podDeleted",
    }
    assert {step["then"] for step in steps() if step["do"] == "pop"} == {"refuse", "fail", "bind"}


def test_a_deleted_pod_is_not_changed_afterwards() -> None:
    for case in made():
        gone: set[str] = set()
        for step in case["scenario"]["steps"]:
            if step["do"] == "delete":
                gone.add(step["name"])
            elif step["do"] == "update":
                assert f"shop/{step['pod']['metadata']['name']}" not in gone
