"""What the recorder is built from: the module file and build tags of a version."""

import pytest

from realparts.parts import MissingPart
from recorder.build import build_tags, module_text, obtain_recorder, pinned_module_file

UPSTREAM = """module k8s.io/kubernetes

go 1.26.0

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/kube-scheduler => ./staging/src/k8s.io/kube-scheduler
)
"""


@pytest.mark.parametrize(
    ("kubernetes", "tags"),
    [
        pytest.param("1.36.4", [], id="has no tag for the version that the program is written for"),
        pytest.param("1.37.1", ["kubernetes_1_37"], id="has the tag of a version that differs"),
        pytest.param("1.40.0", ["kubernetes_1_37"], id="keeps that tag for later versions"),
    ],
)
def test_build_tags(kubernetes: str, tags: list[str]) -> None:
    assert build_tags(kubernetes) == tags


def test_a_module_file_says_the_staging_modules_again_with_published_versions() -> None:
    assert module_text("1.37.1", UPSTREAM).splitlines() == [
        "// The recorder with kube-scheduler of one version of Kubernetes: see README.md.",
        "module lowtide/recorder",
        "",
        "go 1.26.0",
        "",
        "require (",
        "\tk8s.io/kubernetes v1.37.1",
        ")",
        "",
        "replace (",
        "\tk8s.io/api => k8s.io/api v0.37.1",
        "\tk8s.io/kube-scheduler => k8s.io/kube-scheduler v0.37.1",
        ")",
    ]


@pytest.mark.parametrize("kubernetes", ["1.36.4", "1.37.1"])
def test_the_versions_of_the_docs_are_pinned(kubernetes: str) -> None:
    file = pinned_module_file(kubernetes)
    assert file is not None
    assert file.with_suffix(".sum").exists()


def test_another_version_is_not_pinned() -> None:
    assert pinned_module_file("1.36.3") is None


@pytest.mark.parametrize("text", ["1.36", "v1.36.4", "latest", "1.36.4/../x"])
def test_what_is_no_version_is_rejected(text: str) -> None:
    with pytest.raises(MissingPart, match="is no version of Kubernetes; one is like"):
        obtain_recorder(text, lambda line: None)
