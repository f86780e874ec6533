"""Why Prometheus, or the API server, gives no answer, as findings: address, network, TLS,
permissions.

Called by app with the errors it met on the way."""

from collections.abc import Iterable
from typing import Final

from lowtide.doctor import fixes
from lowtide.doctor.findings import Code, Finding, Severity
from lowtide.readings.access import PrometheusAccess
from lowtide.telemetry.errors import Fault, PrometheusError

CODES: Final = {
    Fault.QUERY: Code.QUERY_REJECTED,
    Fault.ADDRESS: Code.ADDRESS,
    Fault.UNREACHABLE: Code.UNREACHABLE,
    Fault.TIMEOUT: Code.TIMEOUT,
    Fault.TLS: Code.TLS,
    Fault.AUTH: Code.AUTH,
    Fault.CREDENTIALS: Code.CREDENTIALS,
    Fault.SERVER: Code.SERVER,
    Fault.NOT_PROMETHEUS: Code.NOT_PROMETHEUS,
}

# Words of other programs: Go's HTTP server, OpenSSL.
_HTTP_TO_HTTPS: Final = "HTTP request to an HTTPS server"
_HTTPS_TO_HTTP: Final = ("wrong version number", "record layer failure", "it may be one of http://")
_OTHER_NAME: Final = ("Hostname mismatch", "IP address mismatch")


def no_traffic_plugin(scheduler_names: Iterable[str]) -> Finding:
    return Finding(
        code=Code.NO_TRAFFIC_PLUGIN,
        text=f"no profile ({', '.join(scheduler_names)}) has NetworkTraffic enabled, so no traffic "
        "is measured; NetworkTraffic and the address of a Prometheus should be configured",
        fix=fixes.TRAFFIC_PLUGIN,
    )


def nodes_not_listed(problem: str, *, is_forbidden: bool) -> Finding:
    return Finding(
        code=Code.NODES_NOT_LISTED,
        text=f"the nodes cannot be listed: {problem}",
        fix=fixes.LIST_NODES if is_forbidden else fixes.SHOW_CLUSTER,
    )


def no_nodes(server: str) -> Finding:
    return Finding(
        code=Code.NO_NODES,
        text=f"the cluster at {server} has no nodes, so there is nothing to match series with",
        fix=fixes.SHOW_CLUSTER,
    )


def no_answer(
    error: PrometheusError, address: str, access: PrometheusAccess, *, others_answer: bool
) -> Finding:
    """Of one address; where another one answers, traffic counts all the same."""
    code = Code.TLS if _HTTP_TO_HTTPS in str(error) else CODES[error.fault]
    return Finding(
        code=code,
        text=str(error),
        fix=_fix(code, str(error), address, access),
        severity=Severity.NOTE if others_answer else Severity.FAULT,
    )


def _fix(code: Code, sentence: str, address: str, access: PrometheusAccess) -> str:
    is_service = address.startswith("kube-service://")
    match code:
        case Code.TLS:
            return _tls_fix(sentence, address)
        case Code.AUTH if is_service:
            return fixes.service_proxy_permission(address)
        case Code.AUTH:
            return fixes.credentials(access)
        case Code.TIMEOUT:
            return fixes.args("prometheus:", f"  timeout: {3 * access.timeout_seconds:g}s")
        case Code.CREDENTIALS:
            return fixes.args(
                "prometheus:",
                "  # files that exist where the scheduler runs; from elsewhere ask through the "
                "API server:",
                "  # lowtide doctor --prometheus kube-service://NAMESPACE/SERVICE:PORT",
                "  bearerTokenFile: FILE",
            )
        case Code.ADDRESS:
            return fixes.args("prometheusAddress: http://prometheus.monitoring:9090")
        case Code.NOT_PROMETHEUS:
            return fixes.path_prefix(address)
        case Code.SERVER:
            return "lowtide doctor  # again in a minute; its own log says why it has no answer"
        case _:
            return fixes.where_prometheus_is(address)


def _tls_fix(sentence: str, address: str) -> str:
    if _HTTP_TO_HTTPS in sentence:
        return fixes.other_scheme(address, "https")
    if any(words in sentence for words in _OTHER_NAME):
        return fixes.name_in_certificate(address)
    if any(words in sentence for words in _HTTPS_TO_HTTP):
        return fixes.other_scheme(address, "http")
    if "has expired" in sentence:
        return fixes.renewed_certificate(address)
    if "certFile" in sentence:
        return fixes.client_certificate()
    return fixes.trusted_authority(address)
