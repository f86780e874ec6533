"""The users of a control plane and the kubeconfig files that make a client one of them.

Used by control_plane; tests construct further `User`s to try RBAC."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class User:
    """One line of the API server's token file."""

    name: str
    token: str
    uid: str = ""
    groups: tuple[str, ...] = ()

    def token_file_line(self) -> str:
        return f'{self.token},{self.name},{self.uid or self.name},"{",".join(self.groups)}"'


ADMIN = User("admin", "admin-token", groups=("system:masters",))
# The roles that every API server makes by itself let this name do a scheduler's work.
KUBE_SCHEDULER = User("system:kube-scheduler", "kube-scheduler-token")


def write_kubeconfig(
    file: Path, *, url: str, ca_file: Path, credentials: Mapping[str, str]
) -> Path:
    """Written as JSON, which every reader of YAML takes."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "tests",
        "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "tests"}}],
        "clusters": [
            {"name": "tests", "cluster": {"server": url, "certificate-authority": str(ca_file)}}
        ],
        "users": [{"name": "tests", "user": dict(credentials)}],
    }
    file.write_text(json.dumps(document, indent=2))
    return file
