"""The client against a real Prometheus that wants TLS, certificates and a password, and behind
the service proxy of a real API server."""

import datetime
import json
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from lowtide.kube.connection import Connection
from lowtide.kube.kubeconfig import load_access
from lowtide.kube.service_proxy import ServiceProxy
from lowtide.readings.access import PrometheusAccess
from lowtide.telemetry.errors import Fault
from lowtide.telemetry.prometheus import Prometheus, PrometheusError
from realparts.certificates import Authority, KeyPair
from realparts.control_plane import ControlPlane
from realparts.hosts import Hosts
from realparts.process import free_port, wait_until
from realparts.prometheus import Prometheus as RealPrometheus
from realparts.prometheus import WebAccess

# bcrypt of "low tide" and of "high tide", at the least cost
LOW_TIDE = "$2b$04$abcdefghijklmnopqrstuuQA4GoRAQ8p0w5rptmbyup7jTL6BxAde"
HIGH_TIDE = "$2b$04$abcdefghijklmnopqrstuubD/OH5ZHiK0nsMA/JiTa8Gub4uCLIS6"
ONE = "vector(1)"

StartPrometheus = Callable[..., RealPrometheus]


@dataclass(frozen=True)
class Guarded:
    """A Prometheus that wants all there is, and an access that has it."""

    web_config: Path
    password_file: Path
    client: KeyPair
    access: PrometheusAccess

    def expect(self, password_hash: str) -> None:
        config = json.loads(self.web_config.read_text())
        self.web_config.write_text(
            json.dumps({**config, "basic_auth_users": {"tide": password_hash}})
        )


@pytest.fixture
def guarded(tmp_path: Path, prometheus_process: StartPrometheus) -> Guarded:
    authority = Authority(tmp_path, now=datetime.datetime.now(datetime.UTC))
    authority.write_own_certificate()
    server = authority.sign_server("prometheus", [], ["127.0.0.1"])
    client = authority.sign_client("tide", [])
    web_config, password_file = tmp_path / "web.json", tmp_path / "password"
    password_file.write_text("low tide\n")
    tls = {
        "cert_file": str(server.certificate_file),
        "key_file": str(server.key_file),
        "client_ca_file": str(authority.ca_file),
        "client_auth_type": "RequireAndVerifyClientCert",
    }
    # JSON is YAML too.
    users = {"tide": LOW_TIDE}
    web_config.write_text(json.dumps({"tls_server_config": tls, "basic_auth_users": users}))
    context = ssl.create_default_context(cafile=authority.ca_file)
    context.load_cert_chain(client.certificate_file, client.key_file)
    running = prometheus_process(
        web=WebAccess(web_config, context, "Basic dGlkZTpsb3cgdGlkZQ==")  # tide:low tide
    )
    access = PrometheusAccess(
        addresses=(running.url,),
        ca_file=str(authority.ca_file),
        cert_file=str(client.certificate_file),
        key_file=str(client.key_file),
        username="tide",
        password_file=str(password_file),
    )
    return Guarded(web_config, password_file, client, access)


async def values(prometheus: Prometheus) -> list[float]:
    return [series.value for series in await prometheus.query(ONE)]


async def failure(prometheus: Prometheus, promql: str = ONE) -> tuple[str, Fault]:
    with pytest.raises(PrometheusError) as caught:
        await prometheus.query(promql)
    return str(caught.value), caught.value.fault


async def test_certificates_and_a_password_let_in(guarded: Guarded) -> None:
    dead = f"https://127.0.0.1:{free_port()}"
    (address,) = guarded.access.addresses
    access = replace(guarded.access, addresses=(dead, address))
    async with Prometheus(access, clock=time.monotonic) as prometheus:
        assert (await values(prometheus), prometheus.address) == ([1.0], address)
        ((labels, samples),) = await prometheus.query_range_vector("vector(1)[1m:15s]")
        assert (labels, {value for _, value in samples}) == ({}, {1.0})
        steps = {later - earlier for (earlier, _), (later, _) in pairwise(samples)}
        assert steps == {15.0}
        text, fault = await failure(prometheus, "up{")
        assert text.startswith(
            f"Prometheus at {address} rejected the query up{{ with HTTP 400: bad_data: "
        )
        assert fault is Fault.QUERY


async def test_a_password_that_rotates(guarded: Guarded) -> None:
    (address,) = guarded.access.addresses
    async with Prometheus(guarded.access, clock=time.monotonic) as prometheus:
        found: list[object] = [await values(prometheus)]
        guarded.expect(HIGH_TIDE)
        found.append(await failure(prometheus))
        guarded.password_file.write_text("high tide")
        found.append(await values(prometheus))
    rejected = (
        f'Prometheus at {address} answered HTTP 401 Unauthorized with "Unauthorized"; '
        "it should be given credentials that it accepts"
    )
    assert found == [[1.0], (rejected, Fault.AUTH), [1.0]]


async def test_a_client_without_a_certificate(guarded: Guarded) -> None:
    access = replace(guarded.access, cert_file="", key_file="")
    async with Prometheus(access, clock=time.monotonic) as prometheus:
        text, fault = await failure(prometheus)
    # In between are the words of the TLS library, which change with its version.
    start = f"Prometheus at {access.addresses[0]} gives no TLS connection: "
    end = "; certFile and keyFile should be a pair that it accepts"
    assert (text.startswith(start), text.endswith(end), fault) == (True, True, Fault.TLS)


async def test_a_ca_that_the_system_does_not_know(guarded: Guarded) -> None:
    access = replace(guarded.access, ca_file="")
    async with Prometheus(access, clock=time.monotonic) as prometheus:
        assert await failure(prometheus) == (
            f"Prometheus at {access.addresses[0]} has a certificate that is not accepted with the "
            "CAs of the system: unable to get local issuer certificate; "
            "caFile should name the CA that signed it",
            Fault.TLS,
        )


async def test_http_to_a_server_with_tls(guarded: Guarded) -> None:
    address = guarded.access.addresses[0].replace("https:", "http:")
    access = replace(guarded.access, addresses=(address,))
    async with Prometheus(access, clock=time.monotonic) as prometheus:
        found = await failure(prometheus)
    assert found == (
        f"Prometheus at {address} answered HTTP 400 Bad Request with "
        '"Client sent an HTTP request to an HTTPS server." instead of Prometheus\'s JSON',
        Fault.NOT_PROMETHEUS,
    )


# Behind the API server.


@pytest.fixture
def service(
    control_plane: ControlPlane,
    namespace: str,
    hosts: Callable[..., Hosts],
    prometheus_process: StartPrometheus,
) -> str:
    """A Service with one endpoint: a pod, which the API server wants to see behind it, with the
    address at which Prometheus listens, which must not be loopback."""
    address = hosts(["relay"]).by_name["relay"].gateway_address
    running = prometheus_process(host=address)
    port = int(running.url.rpartition(":")[2])
    path = f"/api/v1/namespaces/{namespace}"
    name = {"name": "prometheus"}
    containers = [{"name": "main", "image": "example/none"}]
    pod = {"metadata": name, "spec": {"schedulerName": "nobody", "containers": containers}}
    control_plane.request("POST", f"{path}/pods", pod)
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
    control_plane.request("PATCH", f"{path}/pods/prometheus/status", {"status": status})
    service = {"metadata": name, "spec": {"ports": [{"port": 9090, "targetPort": port}]}}
    control_plane.request("POST", f"{path}/services", service)
    pod_reference = {"kind": "Pod", "namespace": namespace, **name}
    subset = {
        "addresses": [{"ip": address, "targetRef": pod_reference}],
        "ports": [{"port": port}],
    }
    control_plane.request("POST", f"{path}/endpoints", {"metadata": name, "subsets": [subset]})
    return f"kube-service://{namespace}/prometheus:9090"


def allow_reading_services(control_plane: ControlPlane, namespace: str) -> None:
    """Lets the user `lowtide` get services/proxy there, and nothing else."""
    group = "rbac.authorization.k8s.io"
    name = {"name": "proxy-reader"}
    rules = [{"apiGroups": [""], "resources": ["services/proxy"], "verbs": ["get"]}]
    path = f"/apis/{group}/v1/namespaces/{namespace}"
    control_plane.request("POST", f"{path}/roles", {"metadata": name, "rules": rules})
    binding = {
        "metadata": name,
        "roleRef": {"apiGroup": group, "kind": "Role", **name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "lowtide"}],
    }
    control_plane.request("POST", f"{path}/rolebindings", binding)
    asked = {"namespace": namespace, "verb": "get", "resource": "services", "subresource": "proxy"}
    review = {"spec": {"resourceAttributes": asked}}
    reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    wait_until(
        lambda: bool(
            control_plane.request("POST", reviews, review, "lowtide")["status"]["allowed"]
        ),
        timeout_seconds=10,
        what="the API server knows the new role",
    )


async def test_a_service_behind_the_api_server(
    control_plane: ControlPlane, namespace: str, service: str
) -> None:
    kubeconfig = str(control_plane.kubeconfig("lowtide"))
    access = load_access(kubeconfig=kubeconfig, master=None, environment={}, home=Path())
    missing = service.replace("/prometheus:", "/thanos:")
    async with Connection(access, time.time) as connection:
        proxy = ServiceProxy(connection)

        def client(*addresses: str) -> Prometheus:
            asked = PrometheusAccess(addresses=addresses)
            return Prometheus(asked, clock=time.monotonic, proxy=proxy)

        assert await failure(client(service)) == (
            f"Prometheus at {service} is not reached through the API server, which answered HTTP "
            '403 Forbidden: services "prometheus:9090" is forbidden: User "lowtide" cannot get '
            'resource "services/proxy" in API group "" in the namespace '
            f'"{namespace}"',
            Fault.AUTH,
        )
        allow_reading_services(control_plane, namespace)
        assert await failure(client(missing)) == (
            f"Prometheus at {missing} is not reached through the API server, which answered HTTP "
            '404 Not Found: services "thanos" not found',
            Fault.UNREACHABLE,
        )
        prometheus = client(missing, service)
        assert (await values(prometheus), prometheus.address) == ([1.0], service)
        text, fault = await failure(prometheus, 'up{a="&')
        assert (text.partition(": ")[0], fault) == (
            f'Prometheus at {service} rejected the query up{{a="& with HTTP 400',
            Fault.QUERY,
        )
