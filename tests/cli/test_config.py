"""`lowtide config validate` and `lowtide config show`."""

import json
from pathlib import Path
from textwrap import indent

import pytest
from tests.cli.conftest import Run

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
GOOD = f"""{HEADER}profiles:
- schedulerName: quiet
  plugins:
    score:
      enabled:
      - {{name: NetworkTraffic, weight: 7}}
      disabled:
      - {{name: ImageLocality}}
  pluginConfig:
  - name: NetworkTraffic
    args: {{prometheusAddress: "http://prometheus:9090", scoring: relative}}
- schedulerName: plain
"""


def as_config_map(text: str) -> str:
    return (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: scheduler}\ndata:\n"
        f"  scheduler-config.yaml: |\n{indent(text, '    ')}"
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(GOOD, id="is a configuration"),
        pytest.param(as_config_map(GOOD), id="is a ConfigMap that holds one"),
    ],
)
def test_a_file_is_valid_that(run: Run, text: str) -> None:
    Path("config.yaml").write_text(text)
    result = run("config", "validate", "config.yaml")
    assert (result.exit_code, result.stdout) == (
        0,
        "config.yaml: valid; schedules for quiet, plain\n",
    )
    assert all(line.startswith("warning: ") for line in result.stderr.splitlines())


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param(
            f"{HEADER}profils: []\n",
            ['lowtide: config.yaml:3: profils: is not a known field, did you mean "profiles"?'],
            id="has a misspelt field",
        ),
        pytest.param(
            GOOD.replace("NetworkTraffic, weight", "NetworkTrafic, weight"),
            ["lowtide: config.yaml:8: profiles[0].plugins.score.enabled[0].name: "],
            id="has an unknown plugin",
        ),
        pytest.param(
            GOOD.replace("scoring: relative", "scoring: loud, window: 5 parsecs"),
            ["lowtide: config.yaml:13: profiles[0].pluginConfig[0].args.scoring: "],
            id="has a wrong argument",
        ),
        pytest.param("kind: [", ["lowtide: config.yaml"], id="is no YAML"),
        pytest.param("", ["lowtide: config.yaml"], id="is empty"),
        pytest.param(
            None,
            ["lowtide: config.yaml: cannot be read: No such file or directory"],
            id="is missing",
        ),
        pytest.param(
            as_config_map(f"{HEADER}profils: []\n"), ["lowtide: config.yaml"], id="holds a bad one"
        ),
    ],
)
@pytest.mark.parametrize("command", ["validate", "show"])
def test_a_file_is_rejected_in_a_sentence_that(
    run: Run, command: str, text: str | None, lines: list[str]
) -> None:
    if text is not None:
        Path("config.yaml").write_text(text)
    result = run("config", command, "config.yaml")
    told = result.stderr.splitlines()
    assert (result.exit_code, result.stdout, len(told)) == (1, "", len(lines)), result.stderr
    for line, start in zip(told, lines, strict=True):
        assert line.startswith(start)


def test_every_mistake_is_told_at_once(run: Run) -> None:
    Path("config.yaml").write_text(f"{HEADER}profils: []\nparallelism: many\n")
    result = run("config", "validate", "config.yaml")
    assert [line.split(":")[2] for line in result.stderr.splitlines()] == ["3", "4"]


def test_a_valid_configuration_is_one_line(run: Run) -> None:
    Path("config.yaml").write_text(HEADER)
    result = run("config", "validate", "config.yaml")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "config.yaml: valid; schedules for default-scheduler\n"


def test_show_as_json_prints_the_effective_profiles(run: Run) -> None:
    Path("config.yaml").write_text(GOOD)
    result = run("config", "show", "config.yaml", "--output", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    quiet, plain = json.loads(result.stdout)["profiles"]
    assert (quiet["schedulerName"], plain["schedulerName"]) == ("quiet", "plain")
    default_scores = plain["plugins"]["score"]
    assert quiet["plugins"]["score"] == [
        *(each for each in default_scores if each[0] != "ImageLocality"),
        ["NetworkTraffic", 7],
    ]
    assert quiet["plugins"]["bind"] == ["DefaultBinder"]


def test_show_as_a_table_names_the_point_the_plugins_and_their_weights(run: Run) -> None:
    Path("config.yaml").write_text(GOOD)
    result = run("config", "show", "config.yaml")
    lines = result.stdout.splitlines()
    assert [line.strip() for line in lines if line.startswith("schedulerName")] == [
        "schedulerName: quiet",
        "schedulerName: plain",
    ]
    assert "NetworkTraffic (7)" in result.stdout
    (row,) = {line for line in lines if "queueSort" in line}
    assert [cell.strip() for cell in row.strip("│").split("│")] == ["queueSort", "PrioritySort"]


def test_show_without_a_file_prints_the_defaults(run: Run) -> None:
    result = run("config", "show", "--output", "json")
    (profile,) = json.loads(result.stdout)["profiles"]
    assert profile["schedulerName"] == "lowtide"
    assert ["TaintToleration", 3] in profile["plugins"]["score"]


def test_a_plugin_of_an_outsider_may_be_named(run: Run) -> None:
    class SameRack:
        name = "SameRack"

        def filter(self, pod: object, nodes: object) -> tuple[()]:
            return ()

    Path("config.yaml").write_text(
        f"{HEADER}profiles:\n- plugins: {{filter: {{enabled: [{{name: SameRack}}]}}}}\n"
    )
    assert run("config", "validate", "config.yaml").exit_code == 1
    assert run("config", "validate", "config.yaml", plugins={"SameRack": SameRack}).exit_code == 0


def test_a_weight_below_zero_is_rejected(run: Run) -> None:
    score = "{score: {enabled: [{name: NetworkTraffic, weight: -5}]}}"
    Path("f.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"profiles:\n- plugins: {score}\n"
    )
    done = run("config", "validate", "f.yaml")
    assert done.exit_code == 1
    assert done.stderr == (
        "lowtide: f.yaml:4: profiles[0].plugins.score.enabled[0].weight: "
        "must be at least 0, not -5\n"
    )
