"""A Profile: which rules serve which extension point."""

from lowtide.framework.plugin import Pod, PodRejection
from lowtide.framework.profile import Profile, Weighted
from lowtide.testing import make_pod


class Gate:
    """Keeps pods out that are labelled so."""

    readings = ("gate",)

    def __init__(self, name: str) -> None:
        self.name = name

    def may_enqueue(self, pod: Pod) -> PodRejection | None:
        return PodRejection(f"kept by {self.name}") if self.name in pod.labels else None


class Scorer:
    name = "Scorer"
    readings = ("traffic", "gate")

    def score(self) -> None: ...


FIRST, SECOND, SCORER = Gate("first"), Gate("second"), Scorer()
PROFILE = Profile(
    "lowtide",
    {"preEnqueue": [FIRST, SECOND], "preFilter": [SCORER], "score": [SCORER, FIRST]},
    {"Scorer": 3, "first": 1},
)


def test_only_rules_with_the_method_serve_a_point() -> None:
    assert PROFILE.at("preEnqueue") == (FIRST, SECOND)
    assert PROFILE.at("preFilter") == ()
    assert PROFILE.at("filter") == ()
    assert PROFILE.scorers == (Weighted(SCORER, 3),)


def test_every_rule_and_reading_once_in_order() -> None:
    assert [rule.name for rule in PROFILE.rules] == ["first", "second", "Scorer"]
    assert PROFILE.readings == ("gate", "traffic")


def test_the_first_rule_that_keeps_a_pod_out() -> None:
    both = make_pod(labels={"first": "", "second": ""})
    assert PROFILE.may_enqueue(both) == ("first", PodRejection("kept by first"))
    second = make_pod(labels={"second": ""})
    assert PROFILE.may_enqueue(second) == ("second", PodRejection("kept by second"))
    assert PROFILE.may_enqueue(make_pod()) is None
