"""How busy links were, in a few figures."""

from dataclasses import replace

import pytest
from msgspec import structs
from tests.simulator.test_html_report import LINKS
from tests.simulator.test_shadowing import NODES, shadowing

from lowtide.cluster.state import ClusterState
from lowtide.simulator.link_course import LinkCourse
from lowtide.testing import make_pod


@pytest.mark.parametrize(
    ("cpu", "imbalance", "in_words"),
    [
        pytest.param("2", 3.0, "3.00", id="of three nodes one has all that is requested"),
        pytest.param("0", None, "-", id="nothing is requested"),
    ],
)
def test_the_imbalance_of_requested_cpu(cpu: str, imbalance: float | None, in_words: str) -> None:
    state = ClusterState()
    for node in NODES:
        state.update_node(node)
    state.place(make_pod("web", on="busy", cpu=cpu))
    course = LinkCourse()
    course.look(shadowing()[1].reading, state, 0.0)
    figures = course.figures()
    assert figures is not None
    assert (figures.cpu_imbalance, figures.cpu_imbalance_in_words) == (imbalance, in_words)


def test_without_its_course_the_figures_are_the_same() -> None:
    reading, state = shadowing()[1].reading, ClusterState()
    kept, not_kept = LinkCourse(), LinkCourse(keeps_course=False)
    for course in (kept, not_kept):
        course.look(reading, state, 0.0)
        course.look(replace(reading, window_seconds=120.0), state, 15.0)
    assert kept.figures() == not_kept.figures()
    assert (kept.course, not_kept.course) == ([(0.0, 0.5), (15.0, 0.5)], [])


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        pytest.param(60.0, ", averages over 1m", id="a minute"),
        pytest.param(90.4, ", averages over 90s", id="a minute and a half"),
        pytest.param(0.0, "", id="no window is known"),
    ],
)
def test_the_window_in_words(seconds: float, told: str) -> None:
    assert structs.replace(LINKS, window_seconds=seconds).averaging == told
