"""What can go wrong between us and the API server; raised by connection, read by every caller."""

_GOING = "because it is being terminated"
# It is logged, and stands in conditions and Events.
_LONGEST_MESSAGE = 4096
_LONGEST_REASON = 100


class KubeError(Exception):
    """Any failure of a call to the API server."""


class ApiError(KubeError):
    """The API server answered with a status of 400 or above."""

    def __init__(
        self, status: int, reason: str, message: str, retry_after_seconds: float | None = None
    ) -> None:
        if len(message) > _LONGEST_MESSAGE:
            message = message[:_LONGEST_MESSAGE] + "…"
        reason = reason[:_LONGEST_REASON]
        super().__init__(f"{message} (HTTP {status} {reason})")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_seconds = retry_after_seconds


class Unreadable(KubeError):  # noqa: N818
    """The API server answered, and the answer is not what it should be."""


class Redirected(KubeError):  # noqa: N818
    """Whoever answered sent us elsewhere, as a proxy does that wants a login: what became of the
    request is not known, and it may be answered once that has passed."""


class NoAnswer(KubeError):  # noqa: N818
    """The connection failed or timed out: the request may or may not have been applied.

    `why` says it without the request."""

    def __init__(self, message: str, why: str = "") -> None:
        super().__init__(message)
        self.why = why or message


class NotConnected(NoAnswer):
    """No connection could be opened: nothing was sent."""


class NotTrusted(NoAnswer):
    """The TLS handshake failed: nothing was sent, and trying again will not help by itself."""


class CredentialsError(KubeError):
    """A token, certificate or exec plugin could not be read; nothing was sent."""


class Withdrawn(KubeError):  # noqa: N818
    """What we were about to send is not right any more: nothing was sent."""


def may_pass(error: KubeError) -> bool:
    """Whether asking again may be answered otherwise: 429, 5xx, redirects and silence pass."""
    if isinstance(error, ApiError):
        return error.status >= 500 or error.status in (408, 429)
    return not isinstance(error, Unreadable)


def is_forbidden(error: KubeError) -> bool:
    """That may pass, too: for some seconds, a server that has just started knows no permissions
    yet. But not where a namespace takes nothing new, as it is about to go."""
    is_rejected = isinstance(error, ApiError) and error.status == 403
    return is_rejected and _GOING not in str(error)
