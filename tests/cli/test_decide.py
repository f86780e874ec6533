"""`lowtide decide`: the seeds' numbers, the forms of output, and bad input."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run

ALLOCATABLE = {"cpu": "4", "memory": "8Gi", "pods": "110"}


def node(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"allocatable": ALLOCATABLE}}


def config(*, measure: str = "rate") -> dict[str, Any]:
    """Only NetworkTraffic scores."""
    args = {"prometheusAddress": "http://p", "scoring": "relative", "measure": measure}
    score = {"disabled": [{"name": "*"}], "enabled": [{"name": "NetworkTraffic"}]}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": "lowtide",
                "plugins": {"score": score},
                "pluginConfig": [{"name": "NetworkTraffic", "args": args}],
            }
        ],
    }


def scenario(traffic: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "id": "case",
        "pod": {"metadata": {"name": "web"}, "spec": {"schedulerName": "lowtide"}},
        "nodes": [node(name) for name in traffic],
        "readings": {"traffic": traffic},
        "config": config(),
        **fields,
    }


def write(name: str, *scenarios: Any) -> None:
    lines = [each if isinstance(each, str) else json.dumps(each) for each in scenarios]
    Path(name).write_text("\n".join(lines))


SEED = {
    "node5": (312528236767, 25),
    "node3": (327333347411, 22),
    "node1": (321718404122, 23),
    "node4": (224935743744, 46),
    "node6": (415270171795, 0),
    "node2": (270270915134, 35),
}


@pytest.mark.parametrize(
    ("scores", "measure"),
    [
        pytest.param(SEED, "sumOverTime", id="sums over time of the first plugins' cluster"),
        pytest.param(
            {"a": (27938745453, 82), "b": (151099652057, 0)}, "sumOverTime", id="two sums over time"
        ),
        pytest.param(
            {"a": (1000000, 29), "b": (1200000, 15), "c": (1400000, 0)}, "rate", id="three rates"
        ),
        pytest.param(
            {"a": (1, 94), "b": (15, 0), "c": (10, 34), "d": (13, 14)}, "rate", id="small numbers"
        ),
        pytest.param({"a": (0, 100), "b": (0, 100)}, "rate", id="nothing but zeros"),
    ],
)
def test_the_seeds_numbers(run: Run, scores: dict[str, tuple[int, int]], measure: str) -> None:
    traffic = {name: value for name, (value, _) in scores.items()}
    write("cases.jsonl", scenario(traffic, config=config(measure=measure)))
    result = run("decide", "--output", "json", "cases.jsonl")
    assert (result.exit_code, result.stderr) == (0, "")
    answer = json.loads(result.stdout)
    assert answer["scores"]["NetworkTraffic"] == {
        name: {"raw": value, "normalized": score, "weighted": score}
        for name, (value, score) in scores.items()
    }
    assert answer["total"] == {name: score for name, (_, score) in scores.items()}
    highest = max(score for _, score in scores.values())
    assert answer["best"] == sorted(n for n, (_, score) in scores.items() if score == highest)


def test_json_is_a_line_for_each_scenario_of_each_file(run: Run) -> None:
    write("one.jsonl", scenario({"a": 1}, id="first"), scenario({"a": 1}, id="second"))
    third = json.dumps(scenario({"a": 1}, id="third")).encode()
    Path("two.jsonl.gz").write_bytes(gzip.compress(third))
    result = run("decide", "one.jsonl", "two.jsonl.gz", "--output", "json")
    assert result.exit_code == 0
    ids = [json.loads(line)["id"] for line in result.stdout.splitlines()]
    assert ids == ["first", "second", "third"]


def test_a_table_shows_the_best_first_and_why_not_the_others(run: Run) -> None:
    tainted = node("c")
    tainted["spec"] = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
    case = scenario({"a": 10, "b": 5})
    write("cases.jsonl", {**case, "nodes": [*case["nodes"], tainted]})
    result = run("decide", "cases.jsonl")
    rows = [
        [cell.strip() for cell in line.strip("│").split("│")]
        for line in result.stdout.splitlines()
        if line.startswith("│")
    ]
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "case")
    assert rows == [
        ["b", "5 → 50", "50", "best"],
        ["a", "10 → 0", "0", "fits"],
        ["c", "", "", "TaintToleration: node(s) had untolerated taint(s)"],
    ]


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        pytest.param(
            {"pod": {"metadata": {"name": "w"}, "spec": {"schedulingGates": [{"name": "g"}]}}},
            "  not queued: SchedulingGates: waiting for scheduling gates: [g]",
            id="is gated",
        ),
        pytest.param({"nodes": []}, "  no nodes available to schedule pods", id="has no nodes"),
        pytest.param(
            {"pod": {"metadata": {"name": "w"}, "spec": {"nodeSelector": {"disk": "ssd"}}}},
            "  0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
            id="fits nowhere",
        ),
    ],
)
def test_a_table_ends_with_the_reason_for_a_pod_that(
    run: Run, fields: dict[str, Any], line: str
) -> None:
    write("cases.jsonl", scenario({"a": 1}, **fields))
    result = run("decide", "cases.jsonl")
    assert (result.exit_code, result.stdout.splitlines()[-1].rstrip()) == (0, line)


def test_names_are_printed_as_they_are(run: Run) -> None:
    write("cases.jsonl", scenario({"a": 1, "b": 2}, id="[bold]case[/nonsense]"))
    result = run("decide", "cases.jsonl")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "[bold]case[/nonsense]")


def test_what_cannot_be_read_is_told_and_the_others_are_answered(run: Run) -> None:
    no_quantity = scenario({"a": 1}, id="much")
    no_quantity["nodes"][0]["status"] = {"allocatable": {"cpu": "much"}}
    write(
        "cases.jsonl",
        scenario({"a": 1}, id="first"),
        "{",
        no_quantity,
        scenario({"a": 1}, id="bad config", config={"kind": "Nonsense"}),
        scenario({"a": "x"}, id="bad reading"),
        scenario({"a": 1}, id="last"),
    )
    result = run("decide", "--output", "json", "cases.jsonl")
    assert result.exit_code == 1
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == ["first", "last"]
    told = result.stderr.splitlines()
    assert all(line.startswith("lowtide: ") for line in told)
    assert told[0].startswith("lowtide: cases.jsonl:2: not JSON: ")
    assert told[1].startswith("lowtide: cases.jsonl:3: much: node a: status.allocatable: ")
    assert told[2].startswith("lowtide: cases.jsonl:4: bad config: scenario config")
    assert told[-1] == (
        "lowtide: cases.jsonl:5: bad reading: readings.traffic.a is 'x', not a number"
    )


def test_the_configuration_of_a_scenario_wins_over_the_option(run: Run) -> None:
    own = scenario({"a": 1, "b": 4}, id="own")
    given = scenario({"a": 1, "b": 4}, id="given")
    del given["config"]
    other = config()
    other["profiles"][0]["plugins"]["score"]["enabled"] = [{"name": "NodeResourcesFit"}]
    Path("config.yaml").write_text(json.dumps(other))
    write("cases.jsonl", own, given)
    result = run("decide", "--config", "config.yaml", "--output", "json", "cases.jsonl")
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [list(answer["scores"]) for answer in answers] == [
        ["NetworkTraffic"],
        ["NodeResourcesFit"],
    ]


def test_an_unknown_plugin_in_the_configuration_is_told_once(run: Run) -> None:
    cases = [scenario({"a": 1}, config=None), scenario({"a": 1}, config=None)]
    write("cases.jsonl", *cases)
    Path("config.yaml").write_text(json.dumps(config()).replace("NetworkTraffic", "Trafic"))
    result = run("decide", "--config", "config.yaml", "cases.jsonl")
    assert (result.exit_code, result.stdout) == (1, "")
    told = result.stderr.splitlines()
    assert all(line.startswith("lowtide: config.yaml:") for line in told)
    assert 0 < len(told) == len(set(told))


def test_a_bad_configuration_is_told_once(run: Run) -> None:
    write("cases.jsonl", scenario({"a": 1}), scenario({"a": 1}))
    result = run("decide", "--config", "missing.yaml", "cases.jsonl")
    assert (result.exit_code, result.stdout, result.stderr) == (
        1,
        "",
        "lowtide: missing.yaml: cannot be read: No such file or directory\n",
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(["missing.jsonl"], "File 'missing.jsonl' does not exist", id="is missing"),
        pytest.param([], "Missing argument 'SCENARIOS...'", id="is not named"),
    ],
)
def test_usage_is_told_when_the_file(run: Run, arguments: list[str], sentence: str) -> None:
    result = run("decide", *arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr


def test_readings_that_no_plugin_reads_are_warned_of_once(run: Run) -> None:
    unread = scenario({"a": 1}, config=None)
    write("s.jsonl", unread, unread)
    done = run("decide", "--output", "json", "s.jsonl")
    assert (done.exit_code, done.stderr) == (
        0,
        "warning: readings.traffic is given, and no plugin of the profile lowtide reads it; "
        "enable NetworkTraffic in a configuration\n",
    )


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        pytest.param(
            {"nodes": [node("a"), node("a")]}, "two nodes are called a", id="names a node twice"
        ),
        pytest.param(
            {"nodes": [{"metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "lots"}}}]},
            "node a: status.allocatable: 'lots' is not a quantity such as 500m, 2, 1.5Gi or 2e3",
            id="has a node of unreadable size",
        ),
    ],
)
def test_a_scenario_is_rejected_that(run: Run, changed: dict[str, Any], sentence: str) -> None:
    write("s.jsonl", scenario({"a": 1}, **changed))
    done = run("decide", "s.jsonl")
    assert (done.exit_code, done.stderr) == (1, f"lowtide: s.jsonl:1: case: {sentence}\n")


class Breaks:
    name = "Breaks"

    def filter(self, pod: Any, nodes: Any) -> Any:
        raise ValueError("out of order")


def test_a_plugin_that_fails_costs_one_scenario(run: Run) -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"filter": {"enabled": [{"name": "Breaks"}]}}}],
    }
    write("s.jsonl", scenario({"a": 1}, config=config), scenario({"a": 1}))
    done = run("decide", "--output", "json", "s.jsonl", plugins={"Breaks": Breaks})
    assert (done.exit_code, len(done.stdout.splitlines())) == (1, 1)
    assert "s.jsonl:1: case: pod default/web: Breaks.filter failed" in done.stderr


def test_an_amount_below_zero_is_told_with_its_field(run: Run) -> None:
    containers = [{"name": "c", "resources": {"requests": {"cpu": "-1"}}}]
    negative = {"metadata": {"name": "web"}, "spec": {"containers": containers}}
    write("s.jsonl", scenario({"a": 1}, pod=negative, config=None))
    (line,) = run("decide", "--output", "json", "s.jsonl").stdout.splitlines()
    said = json.loads(line)["fit_error"]
    assert "requests" in said
    assert "cpu is -1; it must not be below zero" in said


def test_an_empty_file_is_told(run: Run) -> None:
    write("s.jsonl")
    done = run("decide", "s.jsonl")
    told = "lowtide: s.jsonl: contains no scenario\n"
    assert (done.exit_code, done.stderr) == (1, told)


def annotated(name: str, key: str, value: str, **fields: Any) -> dict[str, Any]:
    return {**fields, "metadata": {"name": name, "annotations": {f"lowtide.dev/{key}": value}}}


def test_annotations_that_cannot_be_read_are_warned_of_once_for_each_kind(run: Run) -> None:
    nodes = [annotated(name, "link-capacity", "fast") for name in "ab"]
    pods = [
        annotated("web", "traffic", "nonsense"),
        annotated("log", "traffic", "240M"),
        annotated("web", "traffic", "nonsense"),
    ]
    bound = annotated("old", "traffic", "much", spec={"nodeName": "a"})
    write("s.jsonl", *(scenario({"a": 1}, nodes=nodes, pods=[bound], pod=pod) for pod in pods))
    done = run("decide", "--output", "json", "s.jsonl")
    assert (done.exit_code, done.stderr.splitlines()) == (
        0,
        [
            "warning: the annotation lowtide.dev/traffic of 2 pods cannot be read and does not "
            "count, such as 'nonsense' of default/web; expected 240M, in bits/s; "
            "receive=240M,transmit=80M; or ignore",
            "warning: the annotation lowtide.dev/link-capacity of 2 nodes cannot be read and does "
            "not count, such as 'fast' of a; expected 10G, in bits/s",
        ],
    )


def test_one_annotation_that_cannot_be_read(run: Run) -> None:
    write("s.jsonl", scenario({"a": 1}, nodes=[annotated("a", "link-capacity", "")]))
    assert run("decide", "--output", "json", "s.jsonl").stderr == (
        "warning: the annotation lowtide.dev/link-capacity of 1 node cannot be read and does not "
        "count, such as '' of a; expected 10G, in bits/s\n"
    )


def test_readings_of_a_node_that_there_is_not_are_warned_of(run: Run) -> None:
    unknown = scenario({"a": 1}, readings={"traffic": {"a": 1, "aa": 2, "bb": 3}})
    write("s.jsonl", unknown, unknown)
    done = run("decide", "--output", "json", "s.jsonl")
    assert (done.exit_code, done.stderr) == (
        0,
        "warning: readings.traffic has aa, bb, and case has no node of that name\n",
    )
