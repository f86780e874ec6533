"""What went wrong with a request to the API server, as an error with a sentence.

Used by connection."""

import os
import ssl
from collections.abc import Mapping

import aiohttp
import msgspec
from yarl import URL

from lowtide.input_limits import TooLargeError
from lowtide.kube.decoding import AnswerDecoder
from lowtide.kube.errors import (
    ApiError,
    NoAnswer,
    NotConnected,
    NotTrusted,
    Redirected,
    Unreadable,
)
from lowtide.kube.kubeconfig import Cluster

DEFAULT_RETRY_AFTER_SECONDS = 1.0
LONGEST_RETRY_AFTER_SECONDS = 30.0


class _Status(msgspec.Struct):
    """The API server's answer to a request that failed."""

    message: str = ""
    reason: str = ""


def no_answer(
    cluster: Cluster, method: str, target: str, error: Exception
) -> NoAnswer | Unreadable:
    """`target` is path and query."""
    if isinstance(error, TooLargeError):
        path = target.partition("?")[0]
        return Unreadable(
            f"{cluster.server} answered {method} {path} with {error}; "
            "whatever answers there should send less"
        )
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return _not_trusted(cluster, error.certificate_error)
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        return _not_trusted(cluster, error)
    if isinstance(error, aiohttp.ClientConnectorError):
        return not_connected(cluster, method, target, error.os_error)
    return NoAnswer(*_sentences(cluster, method, target, _words_of(error)))


def not_connected(cluster: Cluster, method: str, target: str, error: OSError) -> NoAnswer:
    """The request was not sent."""
    if isinstance(error, ssl.SSLError):
        return _not_trusted(cluster, error)
    # asyncio's own text repeats the address in a form of its own.
    number = error.errno or 0
    words = os.strerror(number) if number > 0 else _words_of(error)
    return NotConnected(*_sentences(cluster, method, target, words))


def _not_trusted(cluster: Cluster, error: Exception) -> NotTrusted:
    authority = cluster.certificate_authority
    trusted = f"CA {authority}" if authority is not None else "CAs of the system"
    if isinstance(error, ssl.CertificateError):
        problem = getattr(error, "verify_message", None) or str(error)
        return NotTrusted(
            f"The certificate of {cluster.server} is not accepted with the {trusted}: {problem}"
        )
    return NotTrusted(f"No TLS connection to {cluster.server} with the {trusted}: {error}")


def _sentences(cluster: Cluster, method: str, target: str, words: str) -> tuple[str, str]:
    """With and without the request."""
    path = target.partition("?")[0]
    silent = f"No answer from {cluster.server}"
    return f"{silent} to {method} {path}: {words}", f"{silent}: {words}"


def _words_of(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it took too long"
    return str(error) or type(error).__name__


def not_done(
    cluster: Cluster, status: int, body: bytes, headers: Mapping[str, str]
) -> ApiError | Redirected:
    """What an answer that is none of success says."""
    if status < 400:
        return _redirected(cluster, status, headers.get("Location", ""))
    try:
        said = AnswerDecoder(_Status).decode(body, "The error")
    except Unreadable:
        said = _Status(message=body[:200].decode(errors="replace").strip())
    retry_after_seconds: float | None = None
    if status == 429 or (status == 503 and "Retry-After" in headers):
        retry_after_seconds = _retry_after_seconds(headers.get("Retry-After", ""))
    return ApiError(
        status,
        said.reason or "Unknown",
        said.message or "the server gave no message",
        retry_after_seconds,
    )


def _redirected(cluster: Cluster, status: int, location: str) -> Redirected:
    try:
        # No more of it: parameters may hold keys, and paths are others for each request.
        target = f" to {URL(location).origin()}"
    except ValueError:
        target = ""
    return Redirected(
        f"{cluster.server} answered HTTP {status}, a redirect{target}: "
        "is there a proxy that wants a login?"
    )


def _retry_after_seconds(text: str) -> float:
    if text.isascii() and text.isdigit():
        return min(float(text), LONGEST_RETRY_AFTER_SECONDS)
    return DEFAULT_RETRY_AFTER_SECONDS
