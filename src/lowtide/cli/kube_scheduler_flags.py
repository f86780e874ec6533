"""Flags of kube-scheduler's that Lowtide takes, so that its manifests work as they are, and that
change nothing here; each that is given is told."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

import click

from lowtide.logs import Log

Command = TypeVar("Command", bound=Callable[..., Any])

log = Log("scheduler")

_NOT_NEEDED: Final = "what it sets does not exist here"
_WHY: Final = {
    "--port": "kube-scheduler has none since 1.23; --plain-http serves HTTP",
    "--address": "--bind-address is the address of everything that is served",
    "--profiling": "--debug serves profiles, on loopback",
    "--contention-profiling": "--debug serves profiles, on loopback",
    "--kube-api-content-type": "the API server is asked for JSON",
    "--kube-api-qps": "clientConnection.qps of the configuration sets it",
    "--kube-api-burst": "clientConnection.burst of the configuration sets it",
    "--leader-elect-resource-lock": "leading is by leases",
    "--pod-max-in-unschedulable-pods-duration": "a parked pod is tried again after 5 minutes",
    "--authentication-skip-lookup": "clients are known by tokens, or by --client-ca-file",
    "--authentication-tolerate-lookup-failure": "clients are known by tokens, "
    "or by --client-ca-file",
    "--authentication-token-webhook-cache-ttl": "an answer counts for 10 s",
    "--authorization-webhook-cache-authorized-ttl": "an answer counts for 10 s",
    "--authorization-webhook-cache-unauthorized-ttl": "an answer counts for 10 s",
    "--requestheader-client-ca-file": "clients are known by tokens, or by --client-ca-file",
    "--feature-gates": _NOT_NEEDED,
    "--emulated-version": _NOT_NEEDED,
    "--cert-dir": "a certificate of our own is kept in memory",
    "--tls-cipher-suites": "the system's OpenSSL decides",
    "--tls-min-version": "the system's OpenSSL decides",
    "--log-flush-frequency": "every line is written at once",
    "--vmodule": "-v is for all parts",
}


def kube_scheduler_flags(command: Command) -> Callable[..., Any]:
    """Adds them, hidden. `log_ignored` logs those that are given, once logging is set up."""

    @wraps(command)
    def without_them(*arguments: Any, **given: Any) -> Any:
        set_flags = {flag: given.pop(_name(flag)) for flag in _WHY}
        ignored = [flag for flag, value in set_flags.items() if value is not None]
        return command(*arguments, ignored_flags=ignored, **given)

    decorated: Callable[..., Any] = without_them
    for flag in _WHY:
        # With or without a value: some are switches.
        option = click.option(flag, _name(flag), is_flag=False, flag_value="true", hidden=True)
        decorated = option(decorated)
    return decorated


def log_ignored(flags: list[str]) -> None:
    for flag in flags:
        log.warning("A flag of kube-scheduler's changes nothing here", flag=flag, why=_WHY[flag])


def _name(flag: str) -> str:
    return "ignored" + flag.replace("-", "_")
