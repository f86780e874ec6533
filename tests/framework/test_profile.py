"""A Profile: which plugins serve which extension point."""

from typing import Any

import pytest

from lowtide.cluster.changes import OTHERS, ROW
from lowtide.framework.change import NEW_NODE, OBJECTS, Change
from lowtide.framework.plugin import NODE, PODS, TAKEN, PluginError, Pod, PodRejection
from lowtide.framework.profile import Concerned, Profile, Weighted
from lowtide.objects.kinds import Namespace
from lowtide.objects.meta import ObjectMeta
from lowtide.objects.workloads import Service
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


def test_only_plugins_with_the_method_serve_a_point() -> None:
    assert PROFILE.plugins_for_point("preEnqueue") == (FIRST, SECOND)
    assert PROFILE.plugins_for_point("preFilter") == ()
    assert PROFILE.plugins_for_point("filter") == ()
    assert PROFILE.scorers == (Weighted(SCORER, 3),)


def test_a_profile_without_a_plugin_has_the_others_as_they_were() -> None:
    less = PROFILE.without({"first"})
    assert (less.scheduler_name, less.plugins_for_point("preEnqueue")) == ("lowtide", (SECOND,))
    assert less.scorers == PROFILE.scorers


def test_every_plugin_and_reading_once_in_order() -> None:
    assert [plugin.name for plugin in PROFILE.plugins] == ["first", "second", "Scorer"]
    assert PROFILE.readings == ("gate", "traffic")


def test_the_first_plugin_that_keeps_a_pod_out() -> None:
    both = make_pod(labels={"first": "", "second": ""})
    assert PROFILE.may_enqueue(both) == ("first", PodRejection("kept by first"))
    second = make_pod(labels={"second": ""})
    assert PROFILE.may_enqueue(second) == ("second", PodRejection("kept by second"))
    assert PROFILE.may_enqueue(make_pod()) is None


def test_a_gate_that_answers_with_anything_else_stays_closed() -> None:
    class Says(Gate):
        def may_enqueue(self, pod: Pod) -> Any:
            return "not today"

    profile = Profile("lowtide", {"preEnqueue": [Says("Says")]}, {})
    told = "Says.may_enqueue answers with 'not today'; it must be a PodRejection or None"
    with pytest.raises(PluginError) as caught:
        profile.may_enqueue(make_pod())
    assert (str(caught.value), caught.value.plugin_name) == (told, "Says")
    assert profile.gate(make_pod()) == ("", PodRejection(told))


# What may change the mind of plugins that rejected a pod.


class ByNodes:
    name = "ByNodes"
    retry_on = NODE


class Unsaid:
    """Does not say what it retries on."""

    name = "Unsaid"


class Hinting:
    """Cares for namespaces, and for pods of one name."""

    name = "Hinting"
    retry_on = PODS | OBJECTS
    kinds = (Namespace,)

    def may_help(self, pod: Pod, change: Change) -> bool:
        return isinstance(change.thing, Namespace) or bool(change.thing.name == "helpful")


REJECTING = Profile("lowtide", {"filter": [ByNodes(), Unsaid(), Hinting()]}, {})


@pytest.mark.parametrize(
    ("names", "touched", "want"),
    [
        pytest.param(["ByNodes"], TAKEN, NODE, id="the plugin's own retry_on, whatever it touched"),
        pytest.param(
            ["Unsaid"],
            TAKEN,
            NEW_NODE | TAKEN | OTHERS,
            id="what it touched, without a retry_on",
        ),
        pytest.param(["Unsaid"], 0, NEW_NODE, id="only a new node, if it touched nothing"),
        pytest.param(["Hinting"], 0, PODS | OBJECTS, id="objects too, if its retry_on has them"),
        pytest.param(
            ["ByNodes", "Unsaid"],
            TAKEN,
            NEW_NODE | NODE | TAKEN | OTHERS,
            id="the changes of all rejecting plugins together",
        ),
        pytest.param(["ByNodes", "Extender"], 0, ~0, id="every change, if no plugin has the name"),
    ],
)
def test_a_pod_is_tried_again_on(names: list[str], touched: int, want: int) -> None:
    assert REJECTING.retry_on(names, touched) == want


@pytest.mark.parametrize(
    ("names", "change", "want"),
    [
        pytest.param(
            ["ByNodes"], Change(ROW), True, id="a plugin retries on it and has no may_help"
        ),
        pytest.param(["ByNodes"], Change(PODS), False, id="no plugin retries on it"),
        pytest.param(
            ["Hinting"], Change(PODS, after=make_pod("helpful")), True, id="may_help answers yes"
        ),
        pytest.param(["Hinting"], Change(PODS, after=make_pod()), False, id="may_help answers no"),
        pytest.param(
            ["Hinting", "ByNodes"],
            Change(NODE | PODS, after=make_pod()),
            True,
            id="may_help of one plugin answers no and another plugin retries on it",
        ),
        pytest.param(
            ["Hinting"],
            Change(OBJECTS, after=Namespace(ObjectMeta())),
            True,
            id="the object is of the plugin's kinds",
        ),
        pytest.param(
            ["Hinting"],
            Change(OBJECTS, after=Service()),
            False,
            id="the object is not of the plugin's kinds",
        ),
        pytest.param(["Unsaid"], Change(PODS), True, id="the plugin has no retry_on"),
        pytest.param(
            ["Unsaid"],
            Change(OBJECTS, after=Service()),
            False,
            id="the plugin has no retry_on and other kinds",
        ),
        pytest.param(["Extender"], Change(0), True, id="no plugin has the name"),
        pytest.param([], Change(~0), False, id="no plugin rejected the pod"),
    ],
)
def test_whether_a_change_may_help_where(names: list[str], change: Change, want: bool) -> None:
    assert REJECTING.may_help(make_pod(), names, change) is want


def test_a_hint_that_fails_raises_a_plugin_error_that_names_the_plugin() -> None:
    with pytest.raises(PluginError, match=r"^Hinting\.may_help failed: AttributeError") as raised:
        REJECTING.may_help(make_pod(), ["Hinting"], Change(PODS))
    assert raised.value.plugin_name == "Hinting"


class Choosy:
    """Only pods that are labelled `concerned` are."""

    name = "Choosy"

    def concerns(self, pod: Pod) -> bool:
        return "concerned" in pod.labels

    def pre_filter(self) -> None: ...

    def filter(self) -> None: ...

    def score(self) -> None: ...


def points_of(concerned: Concerned) -> tuple[bool, ...]:
    return tuple(
        bool(each)
        for each in (
            concerned.pre_filters.plugins,
            concerned.filters.plugins,
            concerned.scores.plugins,
            concerned.scorers,
        )
    )


@pytest.mark.parametrize(
    ("zero_if_skipped", "labels", "want"),
    [
        pytest.param(
            (),
            {"concerned": ""},
            (True, True, True, True),
            id="asks a plugin that the pod concerns",
        ),
        pytest.param(
            (),
            {},
            (False, False, False, False),
            id="does not ask a plugin that the pod does not concern",
        ),
        pytest.param(
            ("Choosy",),
            {},
            (False, False, True, True),
            id="asks a plugin that must score zeros",
        ),
    ],
)
def test_a_verdict(
    zero_if_skipped: tuple[str, ...], labels: dict[str, str], want: tuple[bool, ...]
) -> None:
    plugins_at = {point: [Choosy()] for point in ("preFilter", "filter", "score")}
    weights = {"Choosy": 1}
    profile = Profile("lowtide", plugins_at, weights, zero_if_skipped=zero_if_skipped)
    assert points_of(profile.concerned_by(make_pod(labels={"concerned": ""}))) == (True,) * 4
    assert points_of(profile.concerned_by(make_pod(labels=labels))) == want


def test_a_plugin_that_fails_to_say_whether_a_pod_concerns_it_is_named() -> None:
    class Broken:
        name = "Broken"

        def concerns(self, pod: Pod) -> bool:
            raise ValueError("no")

        def filter(self) -> None: ...

    with pytest.raises(PluginError, match=r"Broken\.concerns failed: ValueError\('no'\)"):
        Profile("lowtide", {"filter": [Broken()]}, {}).concerned_by(make_pod())
