"""What the watches of a mode tell together."""

import pytest

from lowtide.app.watching import NotRenewed, not_renewed
from lowtide.kube.following import Lost

PODS = Lost("pods", 20.0, "it ended at once")
NODES = Lost("nodes", 10.0, "Connection refused")


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        pytest.param([None, None], None, id="nothing while all keep up"),
        pytest.param(
            [PODS, None], NotRenewed(20.0, ["pods"], "it ended at once"), id="the one that does not"
        ),
        pytest.param(
            [PODS, NODES],
            NotRenewed(10.0, ["pods", "nodes"], "Connection refused"),
            id="of several, since when and why the first does not",
        ),
    ],
)
def test_it_is_told(lost: list[Lost | None], told: NotRenewed | None) -> None:
    assert not_renewed(lost) == told
