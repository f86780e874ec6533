"""A small blocking client of the API server for tests and benchmarks: one kept connection.

Used by control_plane; it has nothing in common with Lowtide's own client on purpose, so that a
fault there cannot hide itself here."""

import http.client
import json
import ssl
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_SECONDS = 30.0
# What a connection says that the other side has closed before it read the request.
_CLOSED = (ssl.SSLEOFError, BrokenPipeError, ConnectionResetError, http.client.RemoteDisconnected)


class ApiError(Exception):
    """The API server's answer was not a success: the status code and the body's message."""

    def __init__(self, request: str, status: int, message: str) -> None:
        super().__init__(f"{request} was answered {status}: {message}")
        self.status = status
        self.message = message


class ApiClient:
    """Not for several threads at once: give each its own."""

    def __init__(self, url: str, ca_file: str, token: str) -> None:
        self.url = url
        self.ca_file = ca_file
        self.token = token
        self._connection: http.client.HTTPSConnection | None = None

    def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """The decoded answer; raises ApiError for a status from 400, OSError without answer."""
        text = self.text(method, path, body)
        answer: dict[str, Any] = json.loads(text) if text else {}
        return answer

    def text(self, method: str, path: str, body: Any = None) -> str:
        status, answer = self._exchange(method, path, body)
        if status >= 400:
            raise ApiError(f"{method} {path}", status, _message(answer))
        return answer

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _exchange(self, method: str, path: str, body: Any) -> tuple[int, str]:
        """Once more where a kept connection turns out to be closed: the server ends idle ones."""
        is_kept = self._connection is not None
        try:
            return self._send(method, path, body)
        except _CLOSED as failure:
            self.close()
            if is_kept:
                return self._exchange(method, path, body)
            raise ConnectionError(f"{method} {path} got no answer: {failure!r}") from failure
        except (OSError, http.client.HTTPException) as failure:
            self.close()
            raise ConnectionError(f"{method} {path} got no answer: {failure!r}") from failure

    def _send(self, method: str, path: str, body: Any) -> tuple[int, str]:
        connection = self._connection or self._connect()
        kind = "merge-patch+json" if method == "PATCH" else "json"
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": f"application/{kind}",
            "Accept": "application/json",
        }
        sent = None if body is None else json.dumps(body).encode()
        connection.request(method, path, body=sent, headers=headers)
        response = connection.getresponse()
        return response.status, response.read().decode()

    def _connect(self) -> http.client.HTTPSConnection:
        parts = urlsplit(self.url)
        self._connection = http.client.HTTPSConnection(
            parts.hostname or "",
            parts.port,
            timeout=TIMEOUT_SECONDS,
            context=ssl.create_default_context(cafile=self.ca_file),
        )
        return self._connection


def _message(answer: str) -> str:
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, KeyError, TypeError):
        return answer[:500]
