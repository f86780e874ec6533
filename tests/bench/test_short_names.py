"""Many names of benchmarks, told in few lines."""

import pytest

from short_names import short_names


@pytest.mark.parametrize(
    ("names", "want"),
    [
        pytest.param(["steady", "ready"], ["steady, ready"], id="single words share a line"),
        pytest.param(["preempt/5000"], ["preempt/5000"], id="one name is itself"),
        pytest.param(
            ["drain/a/5", "drain/b/5", "drain/a/1", "drain/b/1"],
            ["drain/{a, b}/{5, 1}"],
            id="what has the same endings is joined",
        ),
        pytest.param(
            ["drain/a/5", "drain/a/1", "drain/fair/5", "page"],
            ["drain/a/{5, 1}", "drain/fair/5", "page"],
            id="what has others is apart",
        ),
        pytest.param(
            ["cycle/a", "steady", "decide/a", "page"],
            ["cycle/a", "decide/a", "steady, page"],
            id="first words stay apart",
        ),
    ],
)
def test_names(names: list[str], want: list[str]) -> None:
    assert list(short_names(names)) == want
