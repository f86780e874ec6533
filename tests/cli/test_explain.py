"""`lowtide explain` from a file, and on bad input; tests/integration asks a process."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from tests.cli.conftest import Run
from tests.records.kept_decisions import Keeping
from tests.records.test_flips import QUIET, ROOMY
from tests.records.test_flips import record as flips_record
from tests.records.test_record import BUSY_AND_QUIET
from tests.scheduler.conftest import START

from lowtide.framework.decision import Decision
from lowtide.records.journal import Journal
from lowtide.records.record import DecisionRecord, NodeRecord, PrioritiesRecord, ScoreRecord
from lowtide.scheduler.actions import Decided
from lowtide.testing import make_node, make_pod


def write(file: str = "decisions") -> None:
    keeping = Keeping(make_node("node-1"), make_node("node-2"))
    keeping.publish(BUSY_AND_QUIET, sampled_at=START - 4)
    kept = keeping.decide(make_pod("web", cpu="1"), make_pod("huge", cpu="64"))
    Journal(Path(file)).write(DecisionRecord.from_kept(each) for each in kept)


@contextmanager
def api_server() -> Iterator[tuple[str, list[str]]]:
    """One that knows nothing, and the paths that it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


def test_a_placed_pod_for_people(run: Run) -> None:
    write()
    result = run("explain", "web", "--decisions-file", "decisions", "--why-not", "node-1")
    assert result.exit_code == 0
    said = [" ".join(line.split()) for line in result.output.splitlines()]
    assert said[:2] == [
        "default/web -> node-2 (attempt 1, 1970-01-01 00:16:40Z; 2 of 2 nodes; "
        "450 points ahead of node-1)",
        "Traffic over 60 s, 4 s old; the pod was expected to receive 400Mbit/s and to transmit "
        "400Mbit/s",
    ]
    (row,) = [line for line in said if "node-2 *" in line]
    assert row.split(" │ ")[::3] == ["│ node-2 *", "10% of 10Gbit/s │"]
    assert row.split(" │ ")[1] == "774"
    assert (
        "What would have changed it: had NetworkTraffic given node-1 87 points of 100 instead of "
        "36, it would have been best." in said
    )
    assert said[-1] == "NetworkTraffic: 324 against 774"


def test_plugins_that_tell_no_nodes_apart_are_named_below_the_table(run: Run) -> None:
    write()
    said = run("explain", "web", "--decisions-file", "decisions").output
    head = next(line for line in said.splitlines() if line.startswith("┃"))
    columns = [cell.strip() for cell in head.strip("┃").split("┃")]
    assert columns == ["node", "NetworkTraffic", "total", "traffic"]
    assert said[said.index("└") :].splitlines()[1:3] == [
        "the same for all of these nodes: TaintToleration 100, NodeResourcesFit 86, "
        "NodeResourcesBalancedAllocation 68",
        "0 for all of these nodes: DynamicResources, ImageLocality",
    ]


def test_of_a_single_node_what_is_0_has_no_column(run: Run) -> None:
    plugins = {"Traffic": ScoreRecord(80, 80, 720), "Affinity": ScoreRecord(0, 0, 0)}
    alone = flips_record(NodeRecord("alone", 720, plugins))
    Journal(Path("decisions")).write([alone])
    said = run("explain", "web", "--decisions-file", "decisions").output
    assert "┃ Traffic ┃" in said
    assert "┃ Affinity" not in said
    assert "0 for all of these nodes: Affinity" in said.splitlines()


def test_equal_nodes_are_called_equal(run: Run) -> None:
    keeping = Keeping(make_node("node-1"), make_node("node-2"))
    Journal(Path("decisions")).write([keeping.record(make_pod("web"))])
    said = run(
        "explain", "web", "--decisions-file", "decisions", "--why-not", "node-2"
    ).output.splitlines()
    assert said[0].endswith("; 2 of 2 nodes; as many points as node-2: equal nodes take turns)")
    total = keeping.record(make_pod("next")).best[0].total
    assert said[-1] == (
        f"node-2 has {total} points then, as many as node-1: equal nodes take turns."
    )


def test_among_equal_nodes_of_an_extender_the_other_scheduler_chooses(run: Run) -> None:
    keeping = Keeping(make_node("node-1"), make_node("node-2"))
    asked = msgspec.structs.replace(keeping.record(make_pod("web")), extender_verb="prioritize")
    Journal(Path("decisions")).write([asked])
    said = run("explain", "web", "--decisions-file", "decisions", "--why-not", "node-2").output
    assert said.splitlines()[-1] == (
        f"node-2 has {asked.best[0].total} points then, as many as node-1."
    )


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("web",), id="the pod alone"),
        pytest.param(("default/web",), id="NAMESPACE/POD"),
        pytest.param(("-n", "default", "web"), id="-n before it"),
        pytest.param(("web", "--namespace", "default"), id="--namespace after it"),
        pytest.param(("default/web", "-n", "default"), id="both, alike"),
    ],
)
def test_a_pod_is_named_as_kubectl_users_do(words: tuple[str, ...], run: Run) -> None:
    write()
    result = run("explain", *words, "--decisions-file", "decisions")
    assert result.output.startswith("default/web -> node-2 ")


@pytest.mark.parametrize(
    ("words", "namespace"),
    [
        pytest.param((), "team", id="that of the context"),
        pytest.param(("-n", "other"), "other", id="that of -n before it"),
    ],
)
def test_where_a_pod_without_a_namespace_is_looked_for(
    words: tuple[str, ...], namespace: str, run: Run
) -> None:
    with api_server() as (url, asked):
        Path("kubeconfig").write_text(
            f"{{clusters: [{{name: c, cluster: {{server: '{url}'}}}}], current-context: x, "
            "contexts: [{name: x, context: {cluster: c, namespace: team}}]}"
        )
        run("explain", "web", "--kubeconfig", "kubeconfig", "--through", "system/lowtide", *words)
    assert asked[0].endswith(f"/proxy/api/explain/{namespace}/web")


def test_a_pod_that_fits_nowhere_for_people(run: Run) -> None:
    write()
    result = run("explain", "default/huge", "--decisions-file", "decisions")
    assert result.output.splitlines()[0] == (
        "default/huge fits nowhere (attempt 1, 1970-01-01 00:16:40Z; 2 nodes)"
    )
    assert "0/2 nodes are available: 2 Insufficient cpu." in result.output
    assert result.output.splitlines()[-2:] == [
        "What can be done: NodeResourcesFit rejects nodes: ask for less, or make room.",
        "What would make it fit cannot be told from a record: it keeps how many nodes were "
        "rejected "
        "and why, not by which plugins each; ask the running process while the pod waits "
        "(no --decisions-file, or --address).",
    ]


def test_why_not_a_node_where_all_were_rejected_is_answered_from_a_file(run: Run) -> None:
    write()
    result = run("explain", "huge", "--decisions-file", "decisions", "--why-not", "node-1")
    assert (result.exit_code, result.output.splitlines()[-1]) == (
        0,
        "node-1, if it was among them: all 2 nodes were rejected: 2 Insufficient cpu. "
        "The record does not tell rejected nodes apart.",
    )


def test_for_programs(run: Run) -> None:
    write()
    result = run("explain", "web", "--decisions-file", "decisions", "--output", "json")
    found = json.loads(result.output)
    assert (found["pod"], found["records"][0]["node"]) == ("default/web", "node-2")


def test_bad_input_gets_one_sentence(run: Run) -> None:
    write()
    file = ("--decisions-file", "decisions")
    cases = {
        ("other", *file): "lowtide: decisions: no decision about pod default/other is in it\n",
        ("web", *file, "--why-not", "x"): (
            "lowtide: the record says nothing of node x: it keeps the best 2 nodes; "
            "ask the running process\n"
        ),
        ("web", "--decisions-file", "none"): (
            "lowtide: none: cannot be read: No such file or directory\n"
        ),
        ("a/b/c", *file): "lowtide: a/b/c is no pod: name it POD or NAMESPACE/POD\n",
        ("", *file): "lowtide: '' is no pod: name it POD or NAMESPACE/POD\n",
        ("default/", *file): "lowtide: default/ is no pod: name it POD or NAMESPACE/POD\n",
        ("team/web", "-n", "default", *file): (
            "lowtide: team/web is not in the namespace default that -n names\n"
        ),
        ("web", "--address", "foo"): (
            "lowtide: --address foo is no address: it begins with http:// or https://, "
            "such as https://127.0.0.1:10259\n"
        ),
        ("web", "--address", "http://127.0.0.1:port"): (
            "lowtide: --address http://127.0.0.1:port is no address: it begins with http:// or "
            "https://, such as https://127.0.0.1:10259\n"
        ),
    }
    for words, said in cases.items():
        result = run("explain", *words)
        assert (result.exit_code, result.stderr) == (1, said)
    both = run("explain", "web", *file, "--address", "http://127.0.0.1:1")
    assert both.exit_code == 2


@pytest.mark.parametrize(
    ("asked", "is_on", "words"),
    [
        pytest.param("filter", None, ": node-2 is advised (asked to filter, ", id="as advice"),
        pytest.param(
            "prioritize",
            "node-1",
            ": node-2 is advised, it is on node-1 (asked to prioritize, ",
            id="with where it went",
        ),
        pytest.param("", "node-1", " would be on node-2, is on node-1 (", id="of a shadow"),
        pytest.param("", "node-2", " would be on node-2, and is (", id="of a shadow that agrees"),
    ],
)
def test_what_another_scheduler_places_is_told(
    asked: str, is_on: str | None, words: str, run: Run
) -> None:
    keeping = Keeping(make_node("node-1"), make_node("node-2"))
    keeping.publish(BUSY_AND_QUIET, sampled_at=START - 4)
    (kept,) = keeping.decide(make_pod("web", cpu="1"))
    record = replace(DecisionRecord.from_kept(kept), extender_verb=asked, actual_node=is_on)
    Journal(Path("decisions")).write([record])
    said = run("explain", "web", "--decisions-file", "decisions").output
    assert said.startswith(f"default/web{words}attempt 1, ")


def test_what_kube_scheduler_was_answered_is_beside_our_points(run: Run) -> None:
    record = replace(
        flips_record(QUIET, ROOMY),
        extender_verb="prioritize",
        priorities=PrioritiesRecord({"quiet": 8, "roomy": 8}, highest=8, highest_count=2),
    )
    Journal(Path("decisions")).write([record])
    said = run("explain", "web", "--decisions-file", "decisions").output
    lines = [line for line in said.splitlines() if line[:1] in "┃│"]
    cells = [[cell.strip() for cell in line[1:-1].replace("┃", "│").split("│")] for line in lines]
    assert cells == [
        ["node", "Traffic", "Fit", "total", "answered", "traffic"],
        ["quiet *", "810", "20", "830", "8 of 10", ""],
        ["roomy", "720", "100", "820", "8 of 10", ""],
    ]
    assert (
        "all 2 nodes were answered 8 of 10; kube-scheduler picks among equal ones by itself, and "
        "adds its own scores." in said.splitlines()
    )
    told = run("explain", "web", "--decisions-file", "decisions", "--output", "json").output
    assert json.loads(told)["records"][0]["priorities"] == {
        "by_node": {"quiet": 8, "roomy": 8},
        "highest": 8,
        "highest_count": 2,
    }


def test_a_pod_that_fits_nowhere_and_has_a_node_is_told(run: Run) -> None:
    keeping = Keeping(make_node("node-1"))
    (kept,) = keeping.decide(make_pod("huge", cpu="64"))
    Journal(Path("decisions")).write(
        [replace(DecisionRecord.from_kept(kept), actual_node="node-1")]
    )
    said = run("explain", "huge", "--decisions-file", "decisions").output
    assert said.startswith("default/huge fits nowhere, and is on node-1 (attempt 1, ")


@pytest.mark.parametrize(
    ("is_on", "words"),
    [
        pytest.param(None, " (asked to filter, attempt 1, ", id="while the pod waits"),
        pytest.param("node-1", ", it is on node-1 (asked to filter, ", id="with where it went"),
    ],
)
def test_a_neutral_answer_is_reported(is_on: str | None, words: str, run: Run) -> None:
    keeping = Keeping(make_node("node-1"))
    decision = Decision(make_pod("web"), "lowtide", None, node_count=1, feasible_count=1)
    decided = Decided(
        decision, 1, START, asked="filter", neutral="the plugins took longer than 5 ms"
    )
    record = DecisionRecord.from_kept(keeping.ring.note(decided, START, is_on))
    Journal(Path("decisions")).write([record])
    said = run("explain", "web", "--decisions-file", "decisions").output
    why = "neutral answer: the plugins took longer than 5 ms"
    assert said.startswith(f"default/web: {why}{words}")
    assert said.count("neutral answer") == 1
