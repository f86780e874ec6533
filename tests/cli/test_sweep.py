"""`lowtide sweep`: scenarios and recordings under many configurations."""

import json
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.cli.test_simulate import SMALL
from tests.records.recorded_run import CONFIG, RecordedRun

from lowtide.testing import make_node, make_pod


def write(*names: str) -> list[str]:
    """Configurations that differ in the weight of a plugin; the arguments that name them."""
    words = []
    for number, name in enumerate(names, start=1):
        score = {"score": {"enabled": [{"name": "ImageLocality", "weight": number}]}}
        profile = {"schedulerName": "lowtide", "plugins": score}
        Path(name).write_text(json.dumps({**CONFIG, "profiles": [profile]}))
        words += ["--config", name]
    return words


def record(name: str) -> None:
    with RecordedRun(Path(name)) as run:
        run.add(make_node("one"), make_node("two"))
        run.listed()
        run.add(make_pod("web"), make_pod("huge", cpu="99"))
        run.place_all()


def test_every_configuration_runs_on_every_source(run: Run) -> None:
    Path("small.yaml").write_text(SMALL)
    record("run.lowtide")
    words = ("small.yaml", "run.lowtide", *write("a.yaml", "b.yaml"), "--seeds", "1,4")
    result = run("sweep", *words, "--output", "json")
    assert (result.stderr, result.exit_code) == ("", 0)
    runs = json.loads(result.stdout)["runs"]
    assert [(each["source"], each["config"], each["seed"]) for each in runs] == [
        ("small.yaml", "a.yaml", 1),
        ("small.yaml", "a.yaml", 4),
        ("small.yaml", "b.yaml", 1),
        ("small.yaml", "b.yaml", 4),
        ("run.lowtide", "a.yaml", 0),
        ("run.lowtide", "b.yaml", 0),
    ]
    alone = run("simulate", "small.yaml", "--config", "a.yaml", "--seeds", "4", "--output", "json")
    (expected,) = json.loads(alone.stdout)["configs"][0]["runs"]
    assert round(runs[1]["figures"]["peak"], 6) == expected["peak"]
    assert runs[4]["figures"] == {"pending": 1, "moved_pods": 0}


def test_a_table_of_medians(run: Run) -> None:
    Path("small.yaml").write_text(SMALL)
    result = run("sweep", "small.yaml", *write("a.yaml"), "--seeds", "1-7")  # in processes
    rows = [line for line in result.stdout.splitlines() if "a.yaml" in line]
    assert [cell.strip() for cell in rows[0].split("│")[1:4]] == ["small.yaml", "a.yaml", "7"]


def test_figures_stand_as_replay_prints_them(run: Run) -> None:
    Path("small.yaml").write_text(SMALL)
    record("run.lowtide")
    words = ("small.yaml", "run.lowtide", *write("a.yaml"))
    (drawn, _) = json.loads(run("sweep", *words, "--output", "json").stdout)["runs"]
    rows = [line for line in run("sweep", *words).stdout.splitlines() if "a.yaml" in line]
    cells = [[cell.strip() for cell in row.split("│")[4:-1]] for row in rows]
    figures = drawn["figures"]
    assert cells == [
        [
            *(f"{figures['peak']:.0%}", f"{figures['p95']:.0%}"),
            *(f"{figures['fairness']:.2f}", f"{figures['cpu_imbalance']:.2f}"),
            *(str(figures["pending"]), ""),
        ],
        ["", "", "", "", "1", "0"],
    ]


def test_bad_input_gets_one_sentence(run: Run) -> None:
    Path("small.yaml").write_text(SMALL)
    config = write("a.yaml")
    assert run("sweep", "small.yaml").exit_code == 2
    Path("torn").write_bytes(b"\x1f\x8bnothing")
    torn = run("sweep", "torn", *config)
    assert (torn.exit_code, torn.stderr.startswith("lowtide: torn: ")) == (1, True)


def test_a_torn_recording_is_told_once_and_as_by_replay(run: Run) -> None:
    record("run.lowtide")
    Path("run.lowtide").write_bytes(Path("run.lowtide").read_bytes()[:-20])
    config = write("a.yaml", "b.yaml")
    swept = run("sweep", "run.lowtide", *config)
    assert swept.stderr.startswith("warning: run.lowtide: has no end: ")
    assert (swept.stderr, swept.exit_code) == (run("replay", "run.lowtide", *config).stderr, 0)


class AnswersHttp(socketserver.BaseRequestHandler):
    """What listens there is something else, and says so in its own words."""

    def handle(self) -> None:
        self.request.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


@pytest.fixture
def other_port() -> Iterator[int]:
    with socketserver.TCPServer(("127.0.0.1", 0), AnswersHttp) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


_RIGHT = "; expected tcp://HOST:8786"
_NO_ADDRESS = f"is not the address of a Dask scheduler{_RIGHT}"


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        pytest.param(
            "tcp://127.0.0.1:1",
            f"no Dask scheduler answers at tcp://127.0.0.1:1: Connection refused{_RIGHT}",
            id="where nothing listens",
        ),
        pytest.param(
            "127.0.0.1:1",
            f"no Dask scheduler answers at 127.0.0.1:1: Connection refused{_RIGHT}",
            id="where nothing listens, without a scheme",
        ),
        pytest.param(
            "tcp://127.0.0.1:OTHER",
            "no Dask scheduler answers at tcp://127.0.0.1:OTHER: something else listens there"
            f"{_RIGHT}",
            id="where something else listens",
        ),
        pytest.param(
            "tls://127.0.0.1:OTHER",
            "no Dask scheduler answers at tls://127.0.0.1:OTHER: Dask's configuration names no "
            f"certificates for TLS{_RIGHT}",
            id="by TLS, of which Dask's configuration says nothing",
        ),
        pytest.param("nonsense", f"--dask 'nonsense' {_NO_ADDRESS}", id="no port"),
        pytest.param("", f"--dask '' {_NO_ADDRESS}", id="nothing"),
        pytest.param("x://y:1", f"--dask 'x://y:1' {_NO_ADDRESS}", id="an unknown scheme"),
        pytest.param("tcp://y:b", f"--dask 'tcp://y:b' {_NO_ADDRESS}", id="a port of letters"),
        pytest.param("y:65536", f"--dask 'y:65536' {_NO_ADDRESS}", id="a port too high"),
        pytest.param("tcp://:8786", f"--dask 'tcp://:8786' {_NO_ADDRESS}", id="no host"),
    ],
)
def test_no_dask_scheduler(run: Run, other_port: int, address: str, sentence: str) -> None:
    Path("small.yaml").write_text(SMALL)
    address, sentence = (text.replace("OTHER", str(other_port)) for text in (address, sentence))
    result = run("sweep", "small.yaml", *write("a.yaml"), "--dask", address)
    assert (result.stderr, result.exit_code) == (f"lowtide: {sentence}\n", 1)
