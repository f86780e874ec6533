"""The go.mod of a version of Kubernetes, made of that version's own."""

import pytest

from realparts.kubernetes_modules import module_text
from realparts.steps import MissingPart

UPSTREAM = """module k8s.io/kubernetes

go 1.20

require (
	github.com/spf13/cobra v1.7.0
	k8s.io/api v0.0.0
)

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/kube-scheduler => ./staging/src/k8s.io/kube-scheduler
)
"""


def test_the_staging_modules_are_said_again_with_published_versions() -> None:
    assert module_text("lowtide/some", "1.28.2", UPSTREAM).splitlines() == [
        "module lowtide/some",
        "",
        "go 1.20",
        "",
        "require (",
        "\tk8s.io/kubernetes v1.28.2",
        ")",
        "",
        "replace (",
        "\tk8s.io/api => k8s.io/api v0.28.2",
        "\tk8s.io/kube-scheduler => k8s.io/kube-scheduler v0.28.2",
        ")",
    ]


def test_a_module_without_staging_modules_is_rejected() -> None:
    with pytest.raises(MissingPart, match="v1\\.28\\.2 has no staging modules"):
        module_text("lowtide/some", "1.28.2", "module k8s.io/kubernetes\n\ngo 1.20\n")
