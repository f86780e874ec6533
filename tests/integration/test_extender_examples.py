"""The extender's examples hang together: what they name exists, and each file says what the others
and the command say. tests/real applies the manifests and plays their stories."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

LOWTIDE = Path(sys.executable).parent / "lowtide"
METRICS, TRAFFIC = "05-metrics-extender", "06-traffic-extender"
LOCAL_URL = "http://127.0.0.1:8001/scheduler"
SERVICE_URL = "http://lowtide-extender.kube-system.svc:8001/scheduler"
PORT = 8001

Json = Mapping[str, Any]


def lowtide(*words: str, folder: Path) -> str:
    done = subprocess.run(
        [LOWTIDE, *words], cwd=folder, capture_output=True, text=True, check=True, timeout=30
    )
    return done.stdout


def documents(file: Path) -> list[Any]:
    return list(yaml.safe_load_all(file.read_text()))


def manifests(folder: Path) -> list[Any]:
    files = [folder / name for name in ("rbac.yaml", "manifest.yaml", "static-pod.yaml")]
    return [each for file in files if file.exists() for each in documents(file)]


def of_kind(objects: list[Any], *kinds: str) -> list[Any]:
    return [each for each in objects if each["kind"] in kinds]


def names(objects: list[Any], kind: str) -> set[str]:
    return {each["metadata"]["name"] for each in of_kind(objects, kind)}


def pod_templates(objects: list[Any]) -> Iterator[Any]:
    """Labels and spec of each pod that the manifests make."""
    yield from (each["spec"]["template"] for each in of_kind(objects, "Deployment"))
    yield from of_kind(objects, "Pod")


def containers(objects: list[Any], program: str) -> list[tuple[Any, Any]]:
    """Those that run a program, each with the spec of its pod."""
    return [
        (container, pod["spec"])
        for pod in pod_templates(objects)
        for container in pod["spec"]["containers"]
        if container["command"][0] == program
    ]


both = pytest.mark.parametrize("name", [METRICS, TRAFFIC])


# The configurations.


@pytest.mark.parametrize(
    ("name", "scheduler_name"),
    [(METRICS, "kube-metrics-scheduler-extender"), (TRAFFIC, "traffic-scheduler")],
)
def test_what_the_extender_answers_by_is_valid(
    name: str, scheduler_name: str, examples: Path
) -> None:
    said = lowtide("config", "validate", "extender-config.yaml", folder=examples / name)
    assert said == f"extender-config.yaml: valid; schedules for {scheduler_name}\n"


@pytest.mark.parametrize(
    ("name", "file", "url", "scheduler_name"),
    [
        pytest.param(
            METRICS,
            "kube-scheduler-config.yaml",
            LOCAL_URL,
            "kube-metrics-scheduler-extender",
            id="beside a second scheduler",
        ),
        pytest.param(
            TRAFFIC,
            "kube-scheduler-config.yaml",
            SERVICE_URL,
            "traffic-scheduler",
            id="behind a Service",
        ),
        pytest.param(
            TRAFFIC,
            "default-scheduler-config.yaml",
            LOCAL_URL,
            "default-scheduler",
            id="beside the default scheduler",
        ),
    ],
)
def test_how_kube_scheduler_asks_is_as_printed(
    name: str, file: str, url: str, scheduler_name: str, examples: Path, tmp_path: Path
) -> None:
    text = (examples / name / "extender-config.yaml").read_text()
    (profile,) = yaml.safe_load(text)["profiles"]
    renamed = text.replace(profile["schedulerName"], scheduler_name)
    (tmp_path / "extender-config.yaml").write_text(renamed)
    flags = ["--config=extender-config.yaml", "--print-kube-scheduler-config", f"--url={url}"]
    assert lowtide("extender", *flags, folder=tmp_path) == (examples / name / file).read_text()


@both
def test_the_manifest_has_the_files_beside_it(name: str, examples: Path) -> None:
    folder = examples / name
    embedded = {
        key: text
        for each in of_kind(manifests(folder), "ConfigMap")
        for key, text in each["data"].items()
    }
    assert embedded == {
        file: (folder / file).read_text()
        for file in ("extender-config.yaml", "kube-scheduler-config.yaml")
    }


# Who runs, and where.


@both
def test_the_one_who_asks_the_extender_does_not_place_it(name: str, examples: Path) -> None:
    folder = examples / name
    config = yaml.safe_load((folder / "kube-scheduler-config.yaml").read_text())
    asking = {profile["schedulerName"] for profile in config["profiles"]}
    deployed = [each["spec"]["template"] for each in of_kind(manifests(folder), "Deployment")]
    assert {pod["spec"]["schedulerName"] for pod in deployed} == {"default-scheduler"}
    assert "default-scheduler" not in asking


def test_the_default_scheduler_does_not_place_it_either(examples: Path) -> None:
    """What the kubelet starts from a file may name no object of the API server but a priority."""
    (pod,) = of_kind(manifests(examples / TRAFFIC), "Pod")
    assert "serviceAccountName" not in pod["spec"]
    assert [set(volume) - {"name"} for volume in pod["spec"]["volumes"]] == [{"hostPath"}]
    config = yaml.safe_load((examples / TRAFFIC / "default-scheduler-config.yaml").read_text())
    (extender,) = config["extenders"]
    assert pod["spec"]["hostNetwork"]
    assert urlsplit(extender["urlPrefix"]).hostname == "127.0.0.1"


def test_the_example_of_the_article_is_one_pod_of_two_containers(examples: Path) -> None:
    (deployment,) = of_kind(manifests(examples / METRICS), "Deployment")
    assert deployment["metadata"]["namespace"] == "kube-system"
    assert deployment["spec"]["replicas"] == 1
    started = [each["name"] for each in deployment["spec"]["template"]["spec"]["containers"]]
    assert started == ["kube-scheduler", "kube-metrics-scheduler-extender"]


def test_the_pod_to_place_is_for_the_example_of_the_article(examples: Path) -> None:
    (deployment,) = documents(examples / METRICS / "test-deployment.yaml")
    config = yaml.safe_load((examples / METRICS / "kube-scheduler-config.yaml").read_text())
    named = deployment["spec"]["template"]["spec"]["schedulerName"]
    assert [profile["schedulerName"] for profile in config["profiles"]] == [named]


def test_replicas_stand_behind_a_service_and_a_budget(examples: Path) -> None:
    objects = manifests(examples / TRAFFIC)
    extender, _ = of_kind(objects, "Deployment")
    labels = extender["spec"]["template"]["metadata"]["labels"]
    (service,), (budget,) = of_kind(objects, "Service"), of_kind(objects, "PodDisruptionBudget")
    assert extender["spec"]["replicas"] == 2
    assert service["spec"]["selector"] == labels
    assert (budget["spec"]["minAvailable"], budget["spec"]["selector"]) == (
        1,
        {"matchLabels": labels},
    )
    url = urlsplit(SERVICE_URL)
    assert url.hostname == "{name}.{namespace}.svc".format(**service["metadata"])
    assert [port["port"] for port in service["spec"]["ports"]] == [url.port]


# What a cluster wants of any pod.


@both
@pytest.mark.parametrize(
    ("program", "scheme", "paths"),
    [
        ("lowtide", "HTTP", ["/livez", "/readyz"]),
        ("kube-scheduler", "HTTPS", ["/healthz", "/healthz"]),  # all that v1.28 has
    ],
)
def test_each_container_is_probed_bounded_and_locked(
    name: str, program: str, scheme: str, paths: list[str], examples: Path
) -> None:
    for container, pod in containers(manifests(examples / name), program):
        probes = [container[kind]["httpGet"] for kind in ("livenessProbe", "readinessProbe")]
        assert [probe["path"] for probe in probes] == paths
        assert [probe.get("scheme", "HTTP") for probe in probes] == [scheme, scheme]
        assert set(container["resources"]["requests"]) == {"cpu", "memory"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0


@both
def test_the_kubelet_reaches_the_extender(name: str, examples: Path) -> None:
    """Its probes come from outside of the pod, unless that is in the host's network."""
    for container, pod in containers(manifests(examples / name), "lowtide"):
        ports = {port["name"]: port["containerPort"] for port in container.get("ports", ())}
        for kind in ("livenessProbe", "readinessProbe"):
            probe = container[kind]["httpGet"]
            assert ports.get(probe["port"], probe["port"]) == PORT
            is_on_loopback = "--bind-address=0.0.0.0" not in container["args"]
            assert (probe.get("host") == "127.0.0.1") is is_on_loopback
            assert pod.get("hostNetwork", False) is is_on_loopback


@both
@pytest.mark.parametrize("program", ["lowtide", "kube-scheduler"])
def test_its_configuration_is_where_it_looks(name: str, program: str, examples: Path) -> None:
    objects = manifests(examples / name)
    keys = {each["metadata"]["name"]: set(each["data"]) for each in of_kind(objects, "ConfigMap")}
    for container, pod in containers(objects, program):
        flags = dict(flag.removeprefix("--").partition("=")[::2] for flag in container["args"])
        (mount,), (volume,) = container["volumeMounts"], pod["volumes"]
        folder, _, file = flags["config"].rpartition("/")
        assert (mount["mountPath"], mount["name"]) == (folder, volume["name"])
        if "configMap" in volume:
            assert file in keys[volume["configMap"]["name"]]
        else:
            assert volume["hostPath"]["path"] == folder
            assert (examples / name / file).exists()


@both
def test_only_names_are_taken_as_only_names_are_sent(name: str, examples: Path) -> None:
    folder = examples / name
    for file in folder.glob("*-scheduler-config.yaml"):
        (extender,) = yaml.safe_load(file.read_text())["extenders"]
        assert extender["nodeCacheCapable"] is True
    for container, _ in containers(manifests(folder), "lowtide"):
        assert "--max-body-mib=4" in container["args"]


@both
def test_nobody_else_may_ask(name: str, examples: Path) -> None:
    objects = manifests(examples / name)
    (policy,) = of_kind(objects, "NetworkPolicy")
    labels = policy["spec"]["podSelector"]["matchLabels"]
    pods = [pod for pod in pod_templates(objects) if pod["metadata"]["labels"] == labels]
    assert any(
        container["name"].endswith("extender") for container in pods[0]["spec"]["containers"]
    )
    for rule in policy["spec"]["ingress"]:
        if PORT in [port["port"] for port in rule["ports"]]:
            asking = rule["from"][0]["podSelector"]["matchLabels"]
            assert asking == {"app": "traffic-scheduler"}


# Permissions.


@both
def test_what_is_bound_exists(name: str, examples: Path) -> None:
    objects = manifests(examples / name)
    accounts = names(objects, "ServiceAccount")
    roles = {
        "ClusterRole": names(objects, "ClusterRole")
        | {"system:kube-scheduler", "system:volume-scheduler"},
        "Role": names(objects, "Role") | {"extension-apiserver-authentication-reader"},
    }
    bindings = of_kind(objects, "ClusterRoleBinding", "RoleBinding")
    for each in bindings:
        assert each["roleRef"]["name"] in roles[each["roleRef"]["kind"]]
    bound = {subject["name"] for each in bindings for subject in each["subjects"]}
    assert accounts <= bound
    used = {pod["spec"].get("serviceAccountName") for pod in pod_templates(objects)} - {None}
    assert used == accounts


@both
def test_the_second_scheduler_may_hold_its_lease(name: str, examples: Path) -> None:
    config = yaml.safe_load((examples / name / "kube-scheduler-config.yaml").read_text())
    (role,) = of_kind(manifests(examples / name), "Role")
    held = [rule for rule in role["rules"] if "resourceNames" in rule]
    assert [rule["resourceNames"] for rule in held] == [[config["leaderElection"]["resourceName"]]]


def permissions(role: Json) -> set[tuple[str, str, str]]:
    """Group, resource, verb."""
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


WATCHING = {("", kind, verb) for kind in ("nodes", "pods") for verb in ("list", "watch")}


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param(
            METRICS,
            WATCHING | {("metrics.k8s.io", "nodes", verb) for verb in ("get", "list")},
            id="to watch, and to ask metrics-server",
        ),
        pytest.param(TRAFFIC, WATCHING, id="to watch"),
    ],
)
def test_the_extender_has_the_right(
    name: str, want: set[tuple[str, str, str]], examples: Path
) -> None:
    (role,) = of_kind(manifests(examples / name), "ClusterRole")
    assert permissions(role) == want


@both
def test_each_has_a_readme_that_names_its_files(name: str, examples: Path) -> None:
    folder = examples / name
    readme = (folder / "README.md").read_text()
    assert readme.startswith("# ")
    files = {file.name for file in folder.iterdir()} - {"README.md"}
    assert {file for file in files if file not in readme} == set()
