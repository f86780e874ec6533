"""The configuration among other manifests."""

import pytest

from lowtide.config.errors import ConfigError
from lowtide.config.manifests import find_configuration

CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 4
"""
CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: scheduler}
data:
  README: "[how to write a KubeSchedulerConfiguration"
  scheduler.yaml: |
    apiVersion: kubescheduler.config.k8s.io/v1
    kind: KubeSchedulerConfiguration
    parallelism: 4
"""
LIST = """\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace}
- apiVersion: kubescheduler.config.k8s.io/v1
  kind: KubeSchedulerConfiguration
  parallelism: 4
"""
DEPLOYMENT = "apiVersion: apps/v1\nkind: Deployment\n"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param(CONFIGURATION, "f.yaml:3: parallelism", id="finds it alone"),
        pytest.param(
            f"{DEPLOYMENT}---\n{CONFIGURATION}",
            "f.yaml:6: parallelism",
            id="finds it after another document",
        ),
        pytest.param(
            CONFIG_MAP, 'f.yaml:9: data["scheduler.yaml"].parallelism', id="unwraps a ConfigMap"
        ),
        pytest.param(
            f"{DEPLOYMENT}---\n{CONFIG_MAP}---\n{DEPLOYMENT}",
            'f.yaml:12: data["scheduler.yaml"].parallelism',
            id="unwraps a ConfigMap among other documents",
        ),
        pytest.param(LIST, "f.yaml:7: items[1].parallelism", id="finds it in a List"),
        pytest.param(
            "kind: ConfigMapList\nitems:\n- kind: ConfigMap\n  data:\n    a: |\n"
            "      kind: KubeSchedulerConfiguration\n      parallelism: 4\n",
            "f.yaml:7: items[0].data.a.parallelism",
            id="unwraps a ConfigMap in a list",
        ),
    ],
)
def test_found(text: str, place: str) -> None:
    document = find_configuration(text, file="f.yaml")
    assert (document.where(("parallelism",)), document.data["parallelism"]) == (place, 4)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "# nothing\n",
            "f.yaml: is empty; expected a KubeSchedulerConfiguration, "
            "or a ConfigMap that holds one",
            id="rejects an empty file",
        ),
        pytest.param(
            "- a\n",
            "f.yaml:1: is a list; expected a KubeSchedulerConfiguration, "
            "or a ConfigMap that holds one",
            id="rejects a list",
        ),
        pytest.param(
            DEPLOYMENT,
            'f.yaml:2: kind: is the string "Deployment"; expected a KubeSchedulerConfiguration, '
            "or a ConfigMap that holds one",
            id="rejects another kind",
        ),
        pytest.param(
            f"{DEPLOYMENT}---\nkind: ConfigMap\ndata: {{a: b}}\n---\nx: 1\n---\n- y\n",
            "f.yaml: holds Deployment, ConfigMap, a mapping without kind, a list; "
            "expected a KubeSchedulerConfiguration, or a ConfigMap that holds one",
            id="rejects a manifest without a configuration",
        ),
        pytest.param(
            "---\n- y\n" * 7,
            "f.yaml: holds a list, a list, a list, a list, a list and 2 more documents; "
            "expected a KubeSchedulerConfiguration, or a ConfigMap that holds one",
            id="names the first of many documents",
        ),
        pytest.param(
            f"{CONFIGURATION}---\n{CONFIGURATION}",
            "f.yaml: holds 2 configurations, on lines 1 and 5; leave one in the file",
            id="rejects two configurations",
        ),
        pytest.param(
            CONFIG_MAP.replace("parallelism: 4", "parallelism: [4"),
            'f.yaml:10: data["scheduler.yaml"]: is not valid YAML: '
            "expected ',' or ']', but got '<stream end>'",
            id="names the line of a syntax error inside a ConfigMap",
        ),
        pytest.param(
            CONFIG_MAP + "  scheduler.yaml: x\n",
            'f.yaml:6: data["scheduler.yaml"]: is given again on line 10; keep one',
            id="rejects a duplicate key around the configuration",
        ),
    ],
)
def test_rejected(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find_configuration(text, file="f.yaml")
    assert caught.value.problems == (problem,)


@pytest.mark.timeout(60)  # where time grows with the square of the length, it takes minutes
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "kind: ConfigMap\ndata:\n  a: |\n    x\n" + "\n" * 100_000 + "    y\n",
            'f.yaml:1: kind: is the string "ConfigMap"; expected a KubeSchedulerConfiguration, '
            "or a ConfigMap that holds one",
            id="empty lines",
        ),
        pytest.param(
            "kind: List\nitems:\n" + "- {a: 1, a: 2}\n" * 20_000,
            'f.yaml:1: kind: is the string "List"; expected a KubeSchedulerConfiguration, '
            "or a ConfigMap that holds one",
            id="items with problems",
        ),
    ],
)
def test_many_are_read_in_time(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find_configuration(text, file="f.yaml")
    assert caught.value.problems == (problem,)
