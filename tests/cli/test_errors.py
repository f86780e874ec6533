"""What goes wrong is reported in one sentence."""

import pytest

from lowtide.cli.errors import reported_in_one_sentence
from lowtide.scenario.scenario import ScenarioError


@pytest.mark.parametrize(
    ("error", "told"),
    [
        pytest.param(
            ScenarioError("a.yaml: is no scenario"), "a.yaml: is no scenario", id="bad input"
        ),
        pytest.param(
            MemoryError(), "the memory is not enough for this input", id="too little memory"
        ),
    ],
)
def test_error(error: Exception, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, reported_in_one_sentence():
        raise error
    assert (ended.value.code, capsys.readouterr().err) == (1, f"lowtide: {told}\n")
