"""What a part is called, and what is told of names that no part has."""

import re

import pytest

from realparts.control_plane import of_version
from realparts.parts import GoModule, MissingPart, OtherVersion, part_named


def test_a_bare_name_is_the_version_of_the_table() -> None:
    part = part_named("kube-apiserver")
    assert isinstance(part, GoModule)
    assert (part.name, part.version) == ("kube-apiserver", "v1.36.4")


def test_the_version_of_the_table_is_the_same_part_when_it_is_stated() -> None:
    assert part_named("kube-apiserver@v1.36.4") is part_named("kube-apiserver")


def test_another_version_of_kubernetes_is_a_part_of_its_own() -> None:
    part = part_named("kube-apiserver@v1.28.2")
    assert isinstance(part, OtherVersion)
    assert (part.name, part.version) == ("kube-apiserver", "v1.28.2")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        pytest.param("nomad", "no part is called nomad; there are etcd, ", id="a stranger"),
        pytest.param(
            "nomad@v1.28.2", "no part is called nomad; there are ", id="a stranger's version"
        ),
        pytest.param(
            "helm@v1.28.2",
            "helm@v1.28.2: only programs of Kubernetes are to be had in other versions",
            id="another version of what is no program of Kubernetes",
        ),
        pytest.param(
            "etcd@v3.5.0",
            "etcd@v3.5.0: only programs of Kubernetes are to be had in other versions",
            id="another version of etcd",
        ),
        pytest.param(
            "kube-apiserver@1.28.2",
            "kube-apiserver@1.28.2: '1.28.2' is no version of Kubernetes; one is like v1.36.4",
            id="a version without its v",
        ),
        pytest.param(
            "kube-apiserver@",
            "kube-apiserver@: '' is no version of Kubernetes; one is like v1.36.4",
            id="no version after the sign for one",
        ),
        pytest.param(
            "kube-apiserver@v1.28.2/../x",
            "kube-apiserver@v1.28.2/../x: 'v1.28.2/../x' is no version of Kubernetes; "
            "one is like v1.36.4",
            id="a path",
        ),
    ],
)
def test_a_name_of_no_part_is_rejected(name: str, told: str) -> None:
    with pytest.raises(MissingPart, match=f"^{re.escape(told)}"):
        part_named(name)


@pytest.mark.parametrize(
    ("name", "kubernetes", "want"),
    [
        ("kube-apiserver", None, "kube-apiserver"),
        ("kube-apiserver", "v1.28.2", "kube-apiserver@v1.28.2"),
        ("kube-scheduler", "v1.28.2", "kube-scheduler@v1.28.2"),
        ("kubectl", "v1.28.2", "kubectl"),
        ("etcd", "v1.28.2", "etcd"),
    ],
)
def test_of_a_cluster_only_its_own_servers_are_of_its_version(
    name: str, kubernetes: str | None, want: str
) -> None:
    assert of_version(name, kubernetes) == want
