"""Scenario files: JSON lines, gzipped or not, and manifests; what is bad comes in its place."""

import gzip
import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from lowtide.records.recording_header import FORMAT
from lowtide.scenario.files import read_scenarios
from lowtide.scenario.scenario import Scenario, ScenarioError

NODE = "kind: Node\nmetadata: {name: a}\n"
POD = "kind: Pod\nmetadata: {name: web}\n"


def line(name: str) -> str:
    return json.dumps({"id": f"id-{name}", "pod": {"metadata": {"name": name}}})


def told(path: Path) -> list[str]:
    """The pod of each scenario, or the sentence that stands in its place."""
    return [
        each.pod.name if isinstance(each, Scenario) else f"error: {each}"
        for each in read_scenarios(path)
    ]


def only(path: Path) -> Scenario:
    (scenario,) = read_scenarios(path)
    assert isinstance(scenario, Scenario), scenario
    return scenario


def write(folder: Path, text: str, name: str = "case.yaml") -> Path:
    path = folder / name
    path.write_text(dedent(text))
    return path


# JSON lines.


@pytest.mark.parametrize("name", ["cases.jsonl", "cases.json", "cases"])
def test_each_line_is_a_scenario(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, f"{line('a')}\n\n{line('b')}\n", name)
    assert [each.id for each in read_scenarios(path) if isinstance(each, Scenario)] == [
        "id-a",
        "id-b",
    ]


@pytest.mark.parametrize("name", ["cases.jsonl.gz", "cases"])
def test_gzipped_lines_are_read_alike(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(f"{line('a')}\n{line('b')}\n".encode()))
    assert told(path) == ["a", "b"]


def test_a_scenario_without_an_id_is_called_after_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, '\n{"pod": {"metadata": {"name": "web"}}}\n', "cases.jsonl")
    assert only(path).id == "cases.jsonl:2"


def test_a_bad_line_is_told_by_its_number_and_the_others_are_read(tmp_path: Path) -> None:
    recorded = '{"id": "case-9", "scenario": {"nodes": []}}'
    lines = [line("a"), "{", line("b"), "[]", recorded, line("c")]
    path = write(tmp_path, "\n".join(lines), "cases.jsonl")
    assert told(path) == [
        "a",
        "error: cases.jsonl:2: not JSON: Expecting property name enclosed in double quotes "
        "at column 2",
        "b",
        "error: cases.jsonl:4: a scenario must be an object, not list",
        "error: cases.jsonl:5: case-9: the scenario has no 'pod' to place",
        "c",
    ]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(
            b'{"id": "\xff"}',
            "not JSON: 'utf-8' codec can't decode byte 0xff in position 8: invalid start byte",
            id="is not text",
        ),
        pytest.param(
            b'{"id": ' + b"9" * 5000 + b"}",
            "not JSON: Exceeds the limit (4300 digits) for integer string conversion: value has "
            "5000 digits; use sys.set_int_max_str_digits() to increase the limit",
            id="holds a number beyond all bounds",
        ),
        pytest.param(b'{"pod": ' + b"[" * 100_000, "nested too deeply", id="is nested too deeply"),
    ],
)
def test_the_others_are_read_when_one_line(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_bytes(b"\n".join([line("a").encode(), content, line("b").encode()]))
    assert told(path) == ["a", f"error: cases.jsonl:2: {sentence}", "b"]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        pytest.param(
            "cases.jsonl.gz",
            b"plain text",
            "cases.jsonl.gz: cannot be read: Not a gzipped file (b'pl')",
            id="is called .gz and is not",
        ),
        pytest.param(
            "cases.jsonl.gz",
            gzip.compress(line("a").encode() * 50)[:-20],
            "cases.jsonl.gz: cannot be read: "
            "Compressed file ended before the end-of-stream marker was reached",
            id="was cut off",
        ),
        pytest.param(
            "cases.jsonl",
            b"\xff\xfe\x00",
            "cases.jsonl:1: not JSON: 'utf-8' codec can't decode byte 0xff in position 0: "
            "invalid start byte",
            id="is not text",
        ),
        pytest.param(
            "case.yaml",
            b"\xff\xfe\x00",
            "case.yaml: cannot be read: 'utf-8' codec can't decode byte 0xff in position 0: "
            "invalid start byte",
            id="is YAML and not text",
        ),
    ],
)
def test_a_file_is_told_in_a_sentence_that(
    tmp_path: Path, name: str, content: bytes, sentence: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert told(path) == [f"error: {sentence}"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(
            b'{"id": "' + b"a" * 65 * 2**20,
            "is longer than 64 MiB, the limit for a line",
            id="is too long",
        ),
        pytest.param(
            b'{"nodes": [' + b"{}," * 1_000_000 + b"{}]}\n",
            "has more than 1000000 objects and lists, the limit for a line",
            id="has too many parts",
        ),
    ],
)
def test_a_small_file_is_rejected_when_its_line(
    tmp_path: Path, content: bytes, sentence: str
) -> None:
    path = tmp_path / "cases.jsonl.gz"
    path.write_bytes(gzip.compress(content + b"\n" + line("b").encode()))
    assert told(path)[0] == f"error: cases.jsonl.gz:1: {sentence}"


def test_a_recording_is_told_as_one_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "rec.lowtide"
    path.write_bytes(gzip.compress(json.dumps({"format": FORMAT}).encode() + b"\n{}\n{}\n"))
    assert told(path) == [f"error: rec.lowtide is a recording: use lowtide replay {path}"]


# Manifests.


def test_manifests_are_a_cluster_and_the_pods_to_place(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """\
        kind: Node
        metadata: {name: a}
        ---
        kind: Node
        metadata: {name: b}
        ---
        kind: Pod
        metadata: {name: running, namespace: shop}
        spec: {nodeName: a}
        ---
        kind: Pod
        metadata: {name: first, namespace: shop}
        spec: {}
        ---
        kind: Pod
        metadata: {name: second}
        """,
    )
    scenarios = [each for each in read_scenarios(path) if isinstance(each, Scenario)]
    assert [
        (each.id, [node.name for node in each.nodes], [pod.key for pod in each.pods])
        for each in scenarios
    ] == [
        ("shop/first", ["a", "b"], ["shop/running"]),
        ("default/second", ["a", "b"], ["shop/running"]),
    ]


def test_a_deployment_stands_for_the_pod_it_would_make(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """\
        kind: Deployment
        metadata: {name: web, namespace: shop, labels: {of: deployment}}
        spec:
          replicas: 5
          template:
            metadata: {labels: {app: web}}
            spec: {schedulerName: lowtide, priority: 3}
        """,
        "case.yml",
    )
    scenario = only(path)
    pod = scenario.pod
    assert (scenario.id, pod.key, pod.uid, pod.labels) == (
        "shop/web",
        "shop/web",
        "shop/web",
        {"app": "web"},
    )
    assert (pod.spec.scheduler_name, pod.spec.priority) == ("lowtide", 3)


def test_a_list_is_what_is_in_it(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """\
        kind: List
        items:
        - {kind: Node, metadata: {name: a}}
        - kind: List
          items: [{kind: Node, metadata: {name: b}}]
        - {kind: Pod, metadata: {name: web}}
        """,
    )
    assert [node.name for node in only(path).nodes] == ["a", "b"]


@pytest.mark.parametrize(
    ("document", "field", "value"),
    [
        pytest.param(
            "readings: {traffic: {a: 5}}",
            "readings",
            {"traffic": {"a": 5}},
            id="may hold readings",
        ),
        pytest.param(
            "kind: KubeSchedulerConfiguration\nprofiles: []",
            "config",
            {"kind": "KubeSchedulerConfiguration", "profiles": []},
            id="may hold the configuration",
        ),
    ],
)
def test_a_document_anywhere_in_the_file(
    tmp_path: Path, document: str, field: str, value: Any
) -> None:
    for name, parts in (("first", [document, NODE, POD]), ("last", [NODE, POD, document])):
        scenario = only(write(tmp_path, "\n---\n".join(parts), f"{name}.yaml"))
        assert getattr(scenario, field) == value


def test_yaml_may_hold_a_scenario_as_in_json(tmp_path: Path) -> None:
    path = write(tmp_path, "id: mine\npod: {metadata: {name: web}}\nnodes: [{metadata: {name: a}}]")
    scenario = only(path)
    assert (scenario.id, [node.name for node in scenario.nodes]) == ("mine", ["a"])


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            f"{NODE}---\nkind: Service\n---\n{POD}",
            [
                "error: case.yaml: document 2: kind 'Service' is not supported; "
                "supported are Node, Pod, Deployment, KubeSchedulerConfiguration",
                "web",
            ],
            id="is of another kind",
        ),
        pytest.param(
            f"kind: [Pod]\n---\n{POD}",
            [
                "error: case.yaml: document 1: kind ['Pod'] is not supported; "
                "supported are Node, Pod, Deployment, KubeSchedulerConfiguration",
                "web",
            ],
            id="has a list for its kind",
        ),
        pytest.param(
            f"{POD}spec: 5\n---\n{POD}",
            ["error: default/web: pod: Expected `object`, got `int` - at `$.spec`", "web"],
            id="has a number for its spec",
        ),
        pytest.param(
            f"just words\n---\n{POD}",
            ["error: case.yaml: document 1: a manifest must be an object, not str", "web"],
            id="is no manifest",
        ),
        pytest.param(
            f"kind: List\nitems: [1]\n---\n{POD}",
            ["error: case.yaml: document 1: a manifest must be an object, not int", "web"],
            id="is a list of numbers",
        ),
        pytest.param(
            f"{NODE}---\nkind: Pod\nmetadata: {{name: bad}}\nspec: {{containers: 1}}\n---\n{POD}",
            [
                "error: default/bad: pod: Expected `array`, got `int` - at `$.spec.containers`",
                "web",
            ],
            id="has a field of the wrong type",
        ),
    ],
)
def test_the_others_are_read_when_one_document(tmp_path: Path, text: str, want: list[str]) -> None:
    assert told(write(tmp_path, text)) == want


def test_yaml_that_cannot_be_parsed_is_told_with_its_place(tmp_path: Path) -> None:
    (sentence,) = told(write(tmp_path, "kind: Pod\nmetadata: {name: [web}\n"))
    assert sentence.startswith("error: case.yaml")
    assert "line 2" in sentence or ":2" in sentence


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(NODE, id="has only nodes"),
        pytest.param("", id="is empty"),
        pytest.param(f"{POD}spec: {{nodeName: a}}", id="has only pods that run"),
    ],
)
def test_manifests_without_a_pod_to_place_are_told_when_the_file(tmp_path: Path, text: str) -> None:
    assert told(write(tmp_path, text)) == [
        "error: case.yaml: no pod to place; add a Pod without spec.nodeName or a Deployment"
    ]


def test_errors_are_values_not_exceptions(tmp_path: Path) -> None:
    (found,) = read_scenarios(write(tmp_path, "[]", "cases.jsonl"))
    assert isinstance(found, ScenarioError)


def test_a_list_without_a_list_is_told(tmp_path: Path) -> None:
    path = tmp_path / "list.yaml"
    path.write_text("kind: List\nitems: 5\n")
    assert [str(each) for each in read_scenarios(path)] == [
        "list.yaml: document 1: items must be a list, not int"
    ]
