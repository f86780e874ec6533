"""The lines to paste: YAML that says in a comment where it belongs, or commands for a shell.

Chosen by the checks."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from lowtide.objects.node import Node
from lowtide.plugins.network_traffic import RECOMMENDED_WEIGHT
from lowtide.readings.access import PrometheusAccess
from lowtide.readings.address import ServiceAddress, UrlAddress, parse_address, shown_address
from lowtide.readings.capacity import CAPACITY_ANNOTATION, INSTANCE_TYPE

ARGS: Final = "# in the args of NetworkTraffic"
NODES_IN_A_COMMAND: Final = 20
_SERVICE_NAME: Final = re.compile(r"([a-z0-9-]+)\.([a-z0-9-]+)(\.svc(\.[a-z0-9.-]+)?)?")

TRAFFIC_PLUGIN: Final = f"""\
# in the KubeSchedulerConfiguration (or run: lowtide doctor --prometheus URL)
profiles:
  - schedulerName: lowtide
    plugins:
      score:
        enabled:
          - name: NetworkTraffic
            weight: {RECOMMENDED_WEIGHT}
    pluginConfig:
      - name: NetworkTraffic
        args:
          prometheusAddress: http://prometheus.monitoring:9090"""

FIND_PROMETHEUS: Final = "kubectl get services --all-namespaces | grep -i -E 'NAME|prometheus|9090'"
LIST_NODES: Final = (
    "kubectl create clusterrole lowtide-doctor --verb=get,list --resource=nodes,pods\n"
    "kubectl create clusterrolebinding lowtide-doctor --clusterrole=lowtide-doctor --user=USER"
)
SHOW_CLUSTER: Final = "kubectl config view --minify && kubectl get nodes"

HOST_NETWORK: Final = """\
# in the pod template of the node_exporter DaemonSet
spec:
  hostNetwork: true
  hostPID: true"""

EXPORTER_EVERYWHERE: Final = """\
# in the pod template of the node_exporter DaemonSet, so that it runs on tainted nodes too
spec:
  hostNetwork: true
  tolerations:
    - operator: Exists"""

SCRAPE_EXPORTERS: Final = """\
# in prometheus.yml, under scrape_configs: node_exporter on every node, at port 9100
- job_name: node-exporter
  kubernetes_sd_configs:
    - role: node
  relabel_configs:
    - source_labels: [__meta_kubernetes_node_address_InternalIP]
      target_label: __address__
      replacement: $1:9100
    - source_labels: [__meta_kubernetes_node_name]
      target_label: node"""

NODE_LABEL_RELABELLING: Final = """\
# in prometheus.yml, in the scrape job of node_exporter
# (in a ServiceMonitor: relabelings, with sourceLabels and targetLabel)
relabel_configs:
  - source_labels: [__meta_kubernetes_pod_node_name]  # role: node has __meta_kubernetes_node_name
    target_label: node"""

NETWORK_COLLECTORS: Final = """\
# in the pod template of the node_exporter DaemonSet; also look for --no-collector.netdev,
# --collector.disable-defaults, and metric_relabel_configs that drop node_network_*
args:
  - --collector.netdev
  - --collector.netclass"""

SCRAPE_PODS: Final = """\
# in prometheus.yml, under scrape_configs: the kubelets' cAdvisor
- job_name: cadvisor
  scheme: https
  metrics_path: /metrics/cadvisor
  kubernetes_sd_configs:
    - role: node
  authorization:
    credentials_file: /var/run/secrets/kubernetes.io/serviceaccount/token
  tls_config:
    ca_file: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
    insecure_skip_verify: true"""

OWN_QUERY: Final = (
    "query: sum by (instance, job) (rate(node_network_receive_bytes_total{$devices}[$window]))"
)

SYNCHRONIZE_CLOCKS: Final = "sudo timedatectl set-ntp true && timedatectl timesync-status"


def args(*lines: str) -> str:
    return "\n".join((ARGS, *lines))


def copied_label(label: str, *, pattern: str = "", replacement: str = "") -> str:
    """The value of this label, or what the pattern takes of it, as the label `node`."""
    lines = [
        "# in prometheus.yml, in the scrape job of node_exporter",
        "metric_relabel_configs:",
        f"  - source_labels: [{label}]",
    ]
    if pattern:
        lines.append(f"    regex: '{pattern}'")
    if replacement:
        lines.append(f"    replacement: '{replacement}'")
    return "\n".join((*lines, "    target_label: node"))


def pods_on(node_names: Sequence[str]) -> str:
    """Shows what became of the exporters there."""
    return "\n".join(
        f"kubectl get pods -A -o wide --field-selector spec.nodeName={name} | grep -i exporter"
        for name in node_names[:3]
    )


def credentials(access: PrometheusAccess) -> str:
    if access.username or access.password_file:
        shown = f"basicAuth: {{username: {access.username or 'USER'}, passwordFile: FILE}}"
        return args("prometheus:", f"  {shown}  # with a password that it accepts")
    return args(
        "prometheus:",
        "  bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token",
        "  # or: basicAuth: {username: USER, passwordFile: FILE}",
    )


def service_proxy_permission(address: str) -> str:
    parsed = _parsed(address)
    namespace = parsed.namespace if isinstance(parsed, ServiceAddress) else "NAMESPACE"
    return (
        f"kubectl -n {namespace} create role lowtide-prometheus "
        "--verb=get --resource=services/proxy\n"
        f"kubectl -n {namespace} create rolebinding lowtide-prometheus "
        "--role=lowtide-prometheus --user=USER"
    )


def other_scheme(address: str, scheme: str) -> str:
    shown = shown_address(address)
    rest = shown.partition("://")[2] if "://" in shown else shown
    return args(f"prometheusAddress: {scheme}://{rest}")


def path_prefix(address: str) -> str:
    parsed = _parsed(address)
    place = str(parsed.query_url.origin()) if isinstance(parsed, UrlAddress) else address
    return args(
        "# with the path under which queries are answered, such as /prometheus or /api/prom",
        f"prometheusAddress: {place}/PREFIX",
    )


def trusted_authority(address: str) -> str:
    return args(
        "prometheus:",
        "  caFile: /etc/lowtide/prometheus-ca.crt  # the CA that signed what this shows:",
        f"  # openssl s_client -connect {_host_and_port(address)} -showcerts </dev/null",
    )


def name_in_certificate(address: str) -> str:
    port = _host_and_port(address).rpartition(":")[2]
    return args(
        f"prometheusAddress: https://NAME:{port}  # a NAME that the certificate has, as in:",
        f"# openssl s_client -connect {_host_and_port(address)} </dev/null"
        " | openssl x509 -noout -ext subjectAltName",
    )


def renewed_certificate(address: str) -> str:
    return (
        f"openssl s_client -connect {_host_and_port(address)} </dev/null"
        " | openssl x509 -noout -dates  # then have it renewed"
    )


def client_certificate() -> str:
    return args(
        "prometheus:",
        "  certFile: /etc/lowtide/prometheus-client.crt",
        "  keyFile: /etc/lowtide/prometheus-client.key",
    )


def where_prometheus_is(address: str) -> str:
    """From outside of a cluster its names mean nothing, but the API server knows the way."""
    parsed = _parsed(address)
    if isinstance(parsed, UrlAddress):
        url = parsed.query_url
        named = _SERVICE_NAME.fullmatch(url.host or "")
        if named is not None:
            scheme = "https:" if url.scheme == "https" else ""
            service = f"kube-service://{named[2]}/{scheme}{named[1]}:{url.port}"
            return f"lowtide doctor --prometheus {service}\n{FIND_PROMETHEUS}"
    return FIND_PROMETHEUS


def stated_capacities(nodes: Sequence[Node]) -> str:
    """By instance type where all nodes have one; else by an annotation."""
    kinds = {_instance_type(node): None for node in nodes}
    if None in kinds:
        names = " ".join(node.name for node in nodes[:NODES_IN_A_COMMAND])
        return f"kubectl annotate node {names} {CAPACITY_ANNOTATION}=10G  # bits per second"
    lines = ["linkCapacities:  # bits per second that a link of that type carries"]
    for kind in kinds:
        assert kind is not None
        lines += [f"  - matchLabels: {{{kind[0]}: {kind[1]}}}", "    capacity: 10G"]
    return args(*lines)


def kept_devices(devices: Iterable[str]) -> str:
    seen = ", ".join(devices)
    return args(f"devices: [{seen}]  # or leave `devices` out: all but virtual ones")


def _instance_type(node: Node) -> tuple[str, str] | None:
    labels: Mapping[str, str] = node.labels
    return next(((key, labels[key]) for key in INSTANCE_TYPE if key in labels), None)


def _parsed(address: str) -> UrlAddress | ServiceAddress | None:
    try:
        return parse_address(address)
    except ValueError:
        return None


def _host_and_port(address: str) -> str:
    parsed = _parsed(address)
    if not isinstance(parsed, UrlAddress):
        return "HOST:PORT"
    return f"{parsed.query_url.host}:{parsed.query_url.port}"
