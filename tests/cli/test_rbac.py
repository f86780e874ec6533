"""`lowtide rbac`: roles to paste, in three forms."""

import json

import pytest
import yaml
from tests.cli.conftest import Run

CLUSTER_ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "doctors"},
    "rules": [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    ],
}
BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "doctors"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "doctors",
    },
    "subjects": [{"kind": "ServiceAccount", "name": "someone", "namespace": "there"}],
}
DOCTOR = ("rbac", "--mode=doctor", "--account=there/someone", "--name=doctors")


def test_yaml_and_json_are_the_same_objects(run: Run) -> None:
    assert list(yaml.safe_load_all(run(*DOCTOR).stdout)) == [CLUSTER_ROLE, BINDING]
    listed = json.loads(run(*DOCTOR, "--output=json").stdout)
    assert listed == {"apiVersion": "v1", "kind": "List", "items": [CLUSTER_ROLE, BINDING]}


def test_each_rule_says_what_it_is_for(run: Run) -> None:
    assert "# in whose network exporters run\n- apiGroups" in run(*DOCTOR).stdout


def test_the_lease_is_in_a_role_of_its_namespace(run: Run) -> None:
    (role,) = [each for each in yaml.safe_load_all(run("rbac").stdout) if each["kind"] == "Role"]
    assert role["metadata"] == {"name": "lowtide-scheduler", "namespace": "kube-system"}
    assert [rule.get("resourceNames") for rule in role["rules"]] == [None, ["lowtide"]]


def test_a_table_for_people(run: Run) -> None:
    told = run("rbac", "--output=table").stdout
    assert "pods/binding" in told
    assert "subjectaccessreviews" in told


@pytest.mark.parametrize(
    ("address", "is_asked"),
    [
        pytest.param("127.0.0.1", False, id="on loopback"),
        pytest.param("0.0.0.0", True, id="beyond loopback"),
    ],
)
def test_a_shadow_may_ask_who_asks_it(run: Run, address: str, is_asked: bool) -> None:
    told = run("rbac", "--mode=shadow", f"--bind-address={address}").stdout
    assert ("tokenreviews" in told, "subjectaccessreviews" in told) == (is_asked, is_asked)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(
            ["--bind-address=0.0.0.0"],
            "--bind-address is for --mode shadow",
            id="--bind-address of a scheduler",
        ),
        pytest.param(["--account=x"], "--account x is not NAMESPACE/NAME", id="half an account"),
    ],
)
def test_usage_is_told_for(run: Run, arguments: list[str], sentence: str) -> None:
    result = run("rbac", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
