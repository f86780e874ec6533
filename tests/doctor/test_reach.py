"""Why Prometheus or the API server gives no answer, and what fixes it."""

import pytest
import yaml

from lowtide.doctor.findings import Code, Severity
from lowtide.doctor.reach import no_answer, no_traffic_plugin, nodes_not_listed
from lowtide.plugins.network_traffic import RECOMMENDED_WEIGHT
from lowtide.readings.access import PrometheusAccess
from lowtide.telemetry.errors import Fault, PrometheusError

URL = "https://prometheus.monitoring.svc:9090"
SERVICE = "kube-service://monitoring/prometheus:9090"


@pytest.mark.parametrize(
    ("sentence", "fault", "address", "code", "fix"),
    [
        pytest.param(
            "has a certificate that is not accepted: self-signed certificate",
            Fault.TLS,
            URL,
            Code.TLS,
            {"prometheus": {"caFile": "/etc/lowtide/prometheus-ca.crt"}},
            id="a certificate of an unknown CA by caFile",
        ),
        pytest.param(
            "Hostname mismatch, certificate is not valid for 'prometheus.monitoring.svc'",
            Fault.TLS,
            URL,
            Code.TLS,
            {"prometheusAddress": "https://NAME:9090"},
            id="a certificate for another name by that name",
        ),
        pytest.param(
            "gives no TLS connection: wrong version number; it may be one of http://",
            Fault.TLS,
            URL,
            Code.TLS,
            {"prometheusAddress": "http://prometheus.monitoring.svc:9090"},
            id="TLS to a plain server by http",
        ),
        pytest.param(
            'answered HTTP 400 Bad Request with "Client sent an HTTP request to an HTTPS server."',
            Fault.NOT_PROMETHEUS,
            "prometheus:9090",
            Code.TLS,
            {"prometheusAddress": "https://prometheus:9090"},
            id="plain HTTP to a TLS server by https",
        ),
        pytest.param(
            "gives no TLS connection: certificate required; certFile and keyFile should be",
            Fault.TLS,
            URL,
            Code.TLS,
            {
                "prometheus": {
                    "certFile": "/etc/lowtide/prometheus-client.crt",
                    "keyFile": "/etc/lowtide/prometheus-client.key",
                }
            },
            id="a server that wants a certificate by one",
        ),
        pytest.param(
            "answered HTTP 401 Unauthorized",
            Fault.AUTH,
            URL,
            Code.AUTH,
            {
                "prometheus": {
                    "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"
                }
            },
            id="a rejection by credentials",
        ),
        pytest.param(
            "did not answer within 10 s",
            Fault.TIMEOUT,
            URL,
            Code.TIMEOUT,
            {"prometheus": {"timeout": "30s"}},
            id="a slow answer by a longer timeout",
        ),
        pytest.param(
            "answered HTTP 404 Not Found",
            Fault.NOT_PROMETHEUS,
            f"{URL}/graph",
            Code.NOT_PROMETHEUS,
            {"prometheusAddress": f"{URL}/PREFIX"},
            id="something else by the right path",
        ),
        pytest.param(
            "is missing",
            Fault.ADDRESS,
            "",
            Code.ADDRESS,
            {"prometheusAddress": "http://prometheus.monitoring:9090"},
            id="no address by one",
        ),
    ],
)
def test_the_args_fix(sentence: str, fault: Fault, address: str, code: Code, fix: object) -> None:
    access = PrometheusAccess(addresses=(address,))
    found = no_answer(PrometheusError(sentence, fault), address, access, others_answer=False)
    assert (found.code, found.text, found.severity) == (code, sentence, Severity.FAULT)
    assert yaml.safe_load(found.fix) == fix


@pytest.mark.parametrize(
    ("fault", "address", "first_line"),
    [
        pytest.param(
            Fault.AUTH,
            SERVICE,
            "kubectl -n monitoring create role lowtide-prometheus --verb=get "
            "--resource=services/proxy",
            id="a proxy that is forbidden by a role",
        ),
        pytest.param(
            Fault.UNREACHABLE,
            URL,
            "lowtide doctor --prometheus kube-service://monitoring/https:prometheus:9090",
            id="a name of the cluster by the way through its API server",
        ),
        pytest.param(
            Fault.UNREACHABLE,
            "http://192.0.2.1:9090",
            "kubectl get services --all-namespaces | grep -i -E 'NAME|prometheus|9090'",
            id="any other address by a look for the right one",
        ),
    ],
)
def test_a_command_fixes(fault: Fault, address: str, first_line: str) -> None:
    access = PrometheusAccess(addresses=(address,))
    found = no_answer(PrometheusError("no", fault), address, access, others_answer=False)
    assert found.fix.splitlines()[0] == first_line


def test_an_address_that_fails_beside_one_that_answers_is_a_note() -> None:
    access = PrometheusAccess(addresses=(URL, SERVICE))
    error = PrometheusError("no", Fault.UNREACHABLE)
    assert no_answer(error, URL, access, others_answer=True).severity is Severity.NOTE


def test_every_fault_of_the_client_has_a_finding() -> None:
    access = PrometheusAccess(addresses=(URL,))
    codes = {
        fault: no_answer(PrometheusError("no", fault), URL, access, others_answer=False).code
        for fault in Fault
    }
    assert len(set(codes.values())) == len(Fault)


def test_rights_are_granted_only_where_they_lack() -> None:
    assert "create clusterrole" in nodes_not_listed("no", is_forbidden=True).fix
    assert "create clusterrole" not in nodes_not_listed("no", is_forbidden=False).fix


def test_a_plugin_to_paste_is_a_whole_profile() -> None:
    (profile,) = yaml.safe_load(no_traffic_plugin(["lowtide"]).fix)["profiles"]
    enabled = [{"name": "NetworkTraffic", "weight": RECOMMENDED_WEIGHT}]
    assert profile["plugins"]["score"]["enabled"] == enabled
