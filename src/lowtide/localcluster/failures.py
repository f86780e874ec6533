"""What the embedded API server rejects, in the real server's wording.

Raised by the store and the plugins of the kinds, turned into a Status object by ApiServer."""

from lowtide.localcluster.documents import Json


class StatusError(Exception):
    """A request that is answered with a Status object instead of what was asked for."""

    def __init__(self, code: int, reason: str, message: str, details: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    def status(self) -> Json:
        status: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


def not_found(plural: str, name: str) -> StatusError:
    details = {"name": name, "kind": plural}
    return StatusError(404, "NotFound", f'{plural} "{name}" not found', details)


def unknown_resource() -> StatusError:
    message = "the server could not find the requested resource"
    return StatusError(404, "NotFound", message, {})


def method_not_allowed() -> StatusError:
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, {})


def already_exists(plural: str, name: str) -> StatusError:
    details = {"name": name, "kind": plural}
    return StatusError(409, "AlreadyExists", f'{plural} "{name}" already exists', details)


def conflict(plural: str, name: str, why: str) -> StatusError:
    details = {"name": name, "kind": plural}
    message = f'Operation cannot be fulfilled on {plural} "{name}": {why}'
    return StatusError(409, "Conflict", message, details)


def stale(plural: str, name: str) -> StatusError:
    why = (
        "the object has been modified; "
        "please apply your changes to the latest version and try again"
    )
    return conflict(plural, name, why)


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def forbidden(plural: str, name: str, why: str) -> StatusError:
    details = {"name": name, "kind": plural}
    return StatusError(403, "Forbidden", f'{plural} "{name}" is forbidden: {why}', details)


def invalid(kind_name: str, name: str, field: str, what: str, why: str = "") -> StatusError:
    """`what` is the cause as the real server prints it, for example `Required value`."""
    text = f"{what}: {why}" if why else what
    reasons = {"Required value": "FieldValueRequired", "Forbidden": "FieldValueForbidden"}
    cause = {"reason": reasons.get(what, "FieldValueInvalid"), "message": text, "field": field}
    details = {"name": name, "kind": kind_name, "causes": [cause]}
    return StatusError(422, "Invalid", f'{kind_name} "{name}" is invalid: {field}: {text}', details)


def expired(asked: int, oldest: int) -> StatusError:
    return StatusError(410, "Expired", f"too old resource version: {asked} ({oldest})")


def expired_continue() -> StatusError:
    message = (
        "The provided continue parameter is too old to display a consistent list result. "
        "You must start a new list without the continue parameter."
    )
    return StatusError(410, "Expired", message)


def too_large_version(asked: int, current: int) -> StatusError:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return StatusError(504, "Timeout", message, {"causes": [cause], "retryAfterSeconds": 1})


def unsupported_media_type(content_type: str, supported: str) -> StatusError:
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        f"{supported} (the request said {content_type!r})"
    )
    return StatusError(415, "UnsupportedMediaType", message)
