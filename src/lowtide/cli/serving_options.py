"""The options about serving that every mode with a server has, spelled as kube-scheduler's."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from lowtide.server.certificate import TlsFiles
from lowtide.server.errors import ServerError
from lowtide.server.serving import Serving

Command = TypeVar("Command", bound=Callable[..., Any])

_FILE = click.Path(path_type=Path)


def serving_options(
    port_option: str, *, default_port: int, port_help: str
) -> Callable[[Command], Callable[..., Any]]:
    """Adds the options, and hands what they say to the command as its argument `serving`."""

    def add_to(command: Command) -> Callable[..., Any]:
        @wraps(command)
        def with_serving(*arguments: Any, **given: Any) -> Any:
            flags = {name: given.pop(name) for name in _NAMES}
            return command(*arguments, serving=_make_serving(**flags), **given)

        port = click.option(
            port_option,
            "port",
            type=click.IntRange(0, 65535),
            default=default_port,
            show_default=True,
            help=port_help,
        )
        decorated: Callable[..., Any] = with_serving
        for option in reversed([_BIND_ADDRESS, port, *_OTHERS]):
            decorated = option(decorated)
        return decorated

    return add_to


_NAMES = (
    "bind_address",
    "port",
    "tls_cert_file",
    "tls_private_key_file",
    "client_ca_file",
    "is_debug",
    "has_page",
    "is_plain",
    "authorization_always_allow_paths",
    "authentication_kubeconfig",
    "authorization_kubeconfig",
)

_BIND_ADDRESS = click.option(
    "--bind-address",
    help="Address to serve on, by HTTPS. Others than this machine get what is not for everybody, "
    "such as /metrics, only if the API server says that they may. [default: 127.0.0.1, by HTTP]",
)

_OTHERS = (
    click.option(
        "--tls-cert-file",
        type=_FILE,
        help="Serve HTTPS with this certificate. [default: one of its own with --bind-address]",
    ),
    click.option("--tls-private-key-file", type=_FILE, help="The key of that certificate."),
    click.option(
        "--client-ca-file",
        type=_FILE,
        help="Know clients by certificates of this CA too. An extender's verbs, and on loopback "
        "everything but health, are answered only to these.",
    ),
    click.option(
        "--debug",
        "is_debug",
        is_flag=True,
        help="Serve /debug too, with stacks and profiles; on loopback only.",
    ),
    click.option(
        "--page/--no-page",
        "has_page",
        default=None,
        help="Serve the page at /, and what `lowtide explain` asks for, to whoever reaches it. "
        "[default: to this machine, port-forwards, and those who may get /lowtide]",
    ),
    click.option(
        "--plain-http",
        "is_plain",
        is_flag=True,
        help="With --bind-address, serve HTTP without a certificate, and everything to everybody.",
    ),
    click.option(
        "--authorization-always-allow-paths",
        default="/healthz,/readyz,/livez",
        show_default=True,
        help="For everybody; a path that ends in * stands for all that begin so.",
    ),
    click.option(
        "--authentication-kubeconfig",
        type=_FILE,
        help="The API server to ask who somebody is. [default: that of --kubeconfig]",
    ),
    click.option(
        "--authorization-kubeconfig",
        type=_FILE,
        help="The API server to ask what he may. [default: that of --kubeconfig]",
    ),
)


def _make_serving(
    *,
    bind_address: str | None,
    port: int,
    tls_cert_file: Path | None,
    tls_private_key_file: Path | None,
    client_ca_file: Path | None,
    is_debug: bool,
    has_page: bool | None,
    is_plain: bool,
    authorization_always_allow_paths: str,
    authentication_kubeconfig: Path | None,
    authorization_kubeconfig: Path | None,
) -> Serving:
    """A usage error where flags do not go together."""
    if (tls_cert_file is None) != (tls_private_key_file is None):
        raise click.UsageError("--tls-cert-file and --tls-private-key-file go together")
    tls = None
    if tls_cert_file is not None and tls_private_key_file is not None:
        tls = TlsFiles(tls_cert_file, tls_private_key_file)
    if bind_address is not None:
        bind_address = bind_address.removeprefix("[").removesuffix("]")  # as in a url
    serving = Serving(
        bind_address,
        port,
        tls,
        client_ca_file,
        is_debug,
        has_page,
        is_plain,
        tuple(filter(None, authorization_always_allow_paths.split(","))),
        authentication_kubeconfig,
        authorization_kubeconfig,
    )
    try:
        serving.check()
    except ServerError as failure:
        raise click.UsageError(str(failure)) from failure
    return serving
