"""The command lines of the control plane's servers: every flag and why it is there.

Used by control_plane only."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from realparts.certificates import KeyPair

STAGES = Path(__file__).resolve().parent / "kwok"
Command = list[str | Path]


class Ports(NamedTuple):
    etcd: int
    etcd_peer: int
    api_server: int
    kwok: int


@dataclass(frozen=True, slots=True)
class Site:
    """Where one control plane keeps its files and listens."""

    folder: Path
    ports: Ports
    ca_file: Path
    serving: KeyPair

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.ports.api_server}"

    @property
    def etcd_url(self) -> str:
        return f"http://127.0.0.1:{self.ports.etcd}"

    @property
    def token_file(self) -> Path:
        return self.folder / "tokens.csv"

    @property
    def service_account_key_file(self) -> Path:
        return self.folder / "service-account.key"


def etcd(program: Path, site: Site) -> Command:
    peer_url = f"http://127.0.0.1:{site.ports.etcd_peer}"
    return [
        program,
        "--name=tests",
        f"--data-dir={site.folder / 'etcd'}",
        f"--listen-client-urls={site.etcd_url}",
        f"--advertise-client-urls={site.etcd_url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=tests={peer_url}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def api_server(
    program: Path,
    site: Site,
    *,
    priority_and_fairness: bool,
    has_controllers: bool,
    audit_log: Path | None,
    extra_flags: Sequence[str],
) -> Command:
    command: Command = [
        program,
        f"--etcd-servers={site.etcd_url}",
        f"--cert-dir={site.folder / 'api-server'}",
        f"--tls-cert-file={site.serving.certificate_file}",
        f"--tls-private-key-file={site.serving.key_file}",
        f"--client-ca-file={site.ca_file}",
        f"--token-auth-file={site.token_file}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={site.service_account_key_file}",
        f"--service-account-signing-key-file={site.service_account_key_file}",
        "--authorization-mode=RBAC",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",  # it rejects to advertise loopback
        f"--secure-port={site.ports.api_server}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--delete-collection-workers=8",
        f"--enable-priority-and-fairness={str(priority_and_fairness).lower()}",
    ]
    if not has_controllers:
        # Nobody would make the service account, nor take the taint off a node that is ready.
        command.append("--disable-admission-plugins=ServiceAccount,TaintNodesByCondition")
    if audit_log is not None:
        policy = site.folder / "audit-policy.yaml"
        command += [f"--audit-log-path={audit_log}", f"--audit-policy-file={policy}"]
    return [*command, *extra_flags]


def controllers(program: Path, site: Site, kubeconfig: Path) -> Command:
    return [
        program,
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        f"--root-ca-file={site.ca_file}",
        f"--service-account-private-key-file={site.service_account_key_file}",
        "--kube-api-qps=2000",
        "--kube-api-burst=4000",
        "--concurrent-deployment-syncs=20",
        "--concurrent-replicaset-syncs=20",
    ]


def kwok(program: Path, site: Site, kubeconfig: Path) -> Command:
    stages = [f"--config={file}" for file in sorted(STAGES.glob("*.yaml"))]
    return [
        program,
        f"--kubeconfig={kubeconfig}",
        *stages,
        "--manage-all-nodes",
        "--node-lease-duration-seconds=40",
        "--node-ip=127.0.0.1",
        f"--node-port={site.ports.kwok}",
        f"--server-address=127.0.0.1:{site.ports.kwok}",
        f"--tls-cert-file={site.serving.certificate_file}",
        f"--tls-private-key-file={site.serving.key_file}",
    ]


def kube_scheduler(
    program: Path, site: Site, *, port: int, config_file: Path, kubeconfig: Path
) -> Command:
    return [
        program,
        f"--config={config_file}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--tls-cert-file={site.serving.certificate_file}",
        f"--tls-private-key-file={site.serving.key_file}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--authentication-tolerate-lookup-failure=true",
        "--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics",
    ]
