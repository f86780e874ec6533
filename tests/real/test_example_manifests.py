"""A real API server takes the manifests of the examples, every field of them."""

from pathlib import Path

import pytest
import yaml

from realparts.control_plane import ControlPlane


@pytest.mark.parametrize(
    "file",
    [
        "01-second-scheduler/test-deployment.yaml",
        "03-node-usage/rbac.yaml",
        "05-metrics-extender/manifest.yaml",
        "05-metrics-extender/test-deployment.yaml",
        "06-traffic-extender/rbac.yaml",
        "06-traffic-extender/manifest.yaml",
        "06-traffic-extender/static-pod.yaml",
    ],
)
def test_the_api_server_would_create_all_of(
    file: str, examples: Path, control_plane: ControlPlane
) -> None:
    documents = list(yaml.safe_load_all((examples / file).read_text()))
    flags = ["--dry-run=server", "--validate=strict", "--output=name"]
    created = control_plane.kubectl("create", *flags, f"--filename={examples / file}").split()
    assert [name.rpartition("/")[2] for name in created] == [
        each["metadata"]["name"] for each in documents
    ]
