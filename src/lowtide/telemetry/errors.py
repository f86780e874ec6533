"""Why Prometheus gives no answer; raised by everything in telemetry that asks it."""

from enum import Enum


class Fault(Enum):
    """Where the mistake is to be looked for."""

    QUERY = "query"  # every Prometheus would reject it, so no other one is asked
    ADDRESS = "address"  # malformed, or of a kind that cannot be asked here
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    TLS = "tls"
    AUTH = "auth"
    CREDENTIALS = "credentials"  # a file of ours cannot be used
    SERVER = "server"  # it is Prometheus, but it has no answer at the moment
    NOT_PROMETHEUS = "not-prometheus"


class PrometheusError(Exception):
    """Why there is no answer, in one sentence without secrets."""

    def __init__(self, sentence: str, fault: Fault = Fault.ADDRESS) -> None:
        super().__init__(sentence)
        self.fault = fault


class AddressFailure(Exception):  # noqa: N818
    """Why one address gives no answer: `text` goes on after its name."""

    def __init__(self, address: str, text: str, fault: Fault) -> None:
        super().__init__(f"Prometheus at {address} {text}")
        self.address = address
        self.text = text
        self.fault = fault
