"""Warnings about fields that change nothing yet."""

import pytest

from lowtide.config.not_acted_on import NOT_ACTED_ON, warnings_about
from lowtide.config.yaml_document import read_documents

IS_READ = "has no effect yet"


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        pytest.param(
            "parallelism: 16",
            [f"f.yaml:1: parallelism: {IS_READ}: all nodes are evaluated at once"],
            id="warns of parallelism",
        ),
        pytest.param(
            "percentageOfNodesToScore: 50",
            [f"f.yaml:1: percentageOfNodesToScore: {IS_READ}: every node is evaluated"],
            id="warns of a percentage",
        ),
        pytest.param(
            "profiles:\n- {}\n- percentageOfNodesToScore: 5\n- percentageOfNodesToScore: 6\n",
            [f"f.yaml:3: profiles[1].percentageOfNodesToScore: {IS_READ}: every node is evaluated"],
            id="warns once of a percentage in several profiles",
        ),
        pytest.param(
            "percentageOfNodesToScore: 100", [], id="is silent where every node is asked for"
        ),
        pytest.param(
            "enableProfiling: true\nenableContentionProfiling: true",
            [
                f"f.yaml:1: enableProfiling: {IS_READ}: no profiles are served",
                f"f.yaml:2: enableContentionProfiling: {IS_READ}: no profiles are served",
            ],
            id="warns of profiling",
        ),
        pytest.param("enableProfiling: false", [], id="is silent when profiling is off"),
        pytest.param(
            "delayCacheUntilActive: true",
            [f"f.yaml:1: delayCacheUntilActive: {IS_READ}: a standby keeps its cache filled"],
            id="warns of a delayed cache",
        ),
        pytest.param("extenders: []", [], id="is silent about no extenders"),
        pytest.param(
            "clientConnection:\n  contentType: application/vnd.kubernetes.protobuf\n"
            "  acceptContentTypes: application/vnd.kubernetes.protobuf\n",
            [
                f"f.yaml:2: clientConnection.contentType: {IS_READ}: JSON is used",
                f"f.yaml:3: clientConnection.acceptContentTypes: {IS_READ}: JSON is used",
            ],
            id="warns of protobuf",
        ),
        pytest.param(
            "clientConnection: {contentType: application/json}", [], id="is silent about JSON"
        ),
        pytest.param("parallelism: null", [], id="is silent about null"),
    ],
)
def test_warnings(text: str, warnings: list[str]) -> None:
    (document,) = read_documents(text, file="f.yaml")
    assert list(warnings_about(document)) == warnings


def test_no_field_is_listed_twice() -> None:
    paths = [row.path for row in NOT_ACTED_ON]
    assert len(paths) == len(set(paths))
