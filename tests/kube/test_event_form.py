"""Names and notes of Events stay within what the API server takes."""

import pytest

from lowtide.kube.event_form import cut_note, event_name


@pytest.mark.parametrize(
    ("note", "want"),
    [
        pytest.param("short", "short", id="leaves a short note alone"),
        pytest.param("x" * 1024, "x" * 1024, id="leaves a note of 1024 bytes alone"),
        pytest.param("x" * 1025, "x" * 1020 + " ...", id="cuts a note of 1025 bytes"),
        pytest.param("é" * 513, "é" * 510 + " ...", id="counts bytes, not letters"),
        pytest.param("x" + "é" * 512, "x" + "é" * 509 + " ...", id="never halves a letter"),
    ],
)
def test_cut_note(note: str, want: str) -> None:
    assert cut_note(note) == want


@pytest.mark.parametrize(
    ("about", "want"),
    [
        pytest.param("web-0", "web-0.ff", id="joins pod and time"),
        pytest.param("a" * 253, "a" * 250 + ".ff", id="shortens a long pod name"),
        pytest.param("a" * 249 + "-bbb", "a" * 249 + ".ff", id="leaves no dash before the dot"),
    ],
)
def test_event_name(about: str, want: str) -> None:
    assert event_name(about, 255) == want
