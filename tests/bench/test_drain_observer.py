"""What is seen of a drain, found in the bytes of two watches."""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from drain_observer import MACHINE, Cpu, Looking, Watch
from drain_posting import is_whole


class FakeWatch:
    """Brings the lines of one look after another."""

    def __init__(self, *looks: list[bytes]) -> None:
        self._looks = list(looks)

    def lines(self) -> Iterator[bytes]:
        yield from self._looks.pop(0) if self._looks else []


class FakeCpu:
    """One second more at each look."""

    def __init__(self) -> None:
        self.looks = 0

    def seconds(self) -> dict[str, float]:
        self.looks += 1
        return {"scheduler": float(self.looks)}


def line(change: str, kind: str, name: str, **spec: Any) -> bytes:
    metadata = {"name": name, "managedFields": [{"fieldsV1": {"f:spec": {"f:nodeName": {}}}}]}
    told = {"kind": kind, "metadata": metadata, "spec": {"hostname": "x", **spec}}
    return json.dumps({"type": change, "object": told}, separators=(",", ":")).encode()


def bound(name: str, node_name: str, change: str = "ADDED") -> bytes:
    return line(change, "Pod", name, nodeName=node_name)


def looked(
    pods: FakeWatch, events: FakeWatch, wanted: int, victims: FakeWatch | None = None
) -> Looking:
    looking = Looking(pods, events, victims or FakeWatch(), wanted)
    looking.run(FakeCpu(), longest_seconds=20.0, has_events=True)
    return looking


def test_sees_each_binding_once_and_its_event() -> None:
    looking = looked(
        FakeWatch([], [bound("one", "a")], [bound("one", "a", "MODIFIED"), bound("two", "a")]),
        FakeWatch([], [], [line("ADDED", "Event", "one.1")], [line("ADDED", "Event", "two.1")]),
        wanted=2,
    )
    assert looking.node_of == {"one": "a", "two": "a"}
    assert looking.begun_at == looking.bound_at["one"]
    assert looking.bound_at["one"] < looking.bound_at["two"] < looking.event_at[1]
    assert looking.event_at[0] == looking.bound_at["two"]
    # Looked at when it began and once in vain; then at the first binding, and in the end.
    assert (looking.cpu_before, looking.cpu_after) == ({"scheduler": 2.0}, {"scheduler": 4.0})


def test_begins_with_the_eviction_that_makes_room() -> None:
    looking = looked(
        FakeWatch([], [], [], [bound("one", "a")]),
        FakeWatch([], [], [], [line("ADDED", "Event", "one.1")]),
        wanted=1,
        victims=FakeWatch([], [bound("low", "a", "DELETED")]),
    )
    assert 0 < looking.begun_at < looking.bound_at["one"]
    # Looked at when it began and once in vain; not again before the first binding.
    assert (looking.cpu_before, looking.cpu_after) == ({"scheduler": 2.0}, {"scheduler": 4.0})


def test_does_not_count_a_pod_that_goes() -> None:
    looking = looked(
        FakeWatch([bound("gone", "a", "DELETED"), bound("one", "b")]),
        FakeWatch([line("ADDED", "Event", "one.1")]),
        wanted=1,
    )
    assert looking.node_of == {"one": "b"}


class EndedWatch(Watch):
    """Ends after these bytes."""

    def __init__(self, read: bytes) -> None:
        super().__init__("https://localhost", "", "token", "/api/v1/namespaces/a/pods?limit=1")
        self._bytes = read
        self.opened_at: list[str] = []

    def open(self, version: str) -> None:
        self.opened_at.append(version)

    def _read(self) -> tuple[list[bytes], bool]:
        return [self._bytes], True


def test_a_watch_that_ends_goes_on_where_it_was_and_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole = b'{"metadata":{"resourceVersion":"7"}}'
    watch = EndedWatch(whole + b'\n{"metadata":{"resourceVersion":"8')
    assert list(watch.lines()) == [whole]
    assert watch.opened_at == ["7"]
    assert capsys.readouterr().err == (
        "the API server ended a watch of the benchmark's observer, which goes on where it was: "
        "nothing is missed (/api/v1/namespaces/a/pods)\n"
    )


def test_tells_of_a_pod_that_is_bound_twice() -> None:
    pods = FakeWatch([bound("one", "a"), bound("one", "b", "MODIFIED")])
    with pytest.raises(AssertionError, match="pod one was bound to a and then to b"):
        looked(pods, FakeWatch(), wanted=2)


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        pytest.param(b"HTTP/1.1 201 Created\r\nContent-Le", False, id="is not its head's half"),
        pytest.param(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{", False, id="lacks one"),
        pytest.param(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}", True, id="has all"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
            False,
            id="waits for the last chunk",
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
            True,
            id="ends with the last chunk",
        ),
    ],
)
def test_the_whole_of_an_answer(answer: bytes, want: bool) -> None:
    assert is_whole(answer) is want


def test_the_machine_spends_what_processes_spend() -> None:
    cpu = Cpu({"this": os.getpid()})
    before = cpu.seconds()
    while cpu.seconds()["this"] < before["this"] + 0.3:
        pass
    spent = {name: seconds - before[name] for name, seconds in cpu.seconds().items()}
    assert spent[MACHINE] > spent["this"] - 0.1  # each counts its own ticks of 10 ms
