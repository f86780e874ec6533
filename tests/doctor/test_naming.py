"""What the doctor makes of labels that hostile answers are full of."""

import pytest

from lowtide.doctor.naming import naming_of
from lowtide.readings.matching import NodeIdentity
from lowtide.readings.series import Series


@pytest.mark.timeout(60)  # where each is compared with all, it takes minutes
def test_many_labels_are_tried_in_time() -> None:
    identities = [NodeIdentity(f"n{number}") for number in range(5000)]
    series = [Series({f"label_{number}": "x"}, 1.0, 0.0) for number in range(200_000)]
    series.append(Series({"machine": "n7"}, 1.0, 0.0))
    naming = naming_of(series, identities, set(range(5000)))
    assert naming is not None
    assert (naming.label, naming.rows) == ("machine", frozenset({7}))
