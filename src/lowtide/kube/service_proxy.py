"""Requests to Services through the API server, with the right to `get` on `services/proxy`.

App hands it to telemetry for Prometheus addresses that begin with kube-service://."""

from collections.abc import Mapping
from urllib.parse import urlencode

from lowtide.kube.connection import Connection
from lowtide.kube.errors import KubeError

FORM = "application/x-www-form-urlencoded"


class ServiceProxy:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def request(
        self,
        method: str,
        path: str,
        *,
        form: Mapping[str, str],
        headers: Mapping[str, str],
        timeout_seconds: float,
    ) -> tuple[int, bytes]:
        """Status and body, be they the Service's or the API server's; OSError without an answer.

        A GET has the form in its address, any other request in its body."""
        is_get = method == "GET"
        try:
            response = await self._connection.pass_on(
                method,
                path,
                body=None if is_get else urlencode(form).encode(),
                content_type=FORM,
                params=form if is_get else None,
                headers=headers,
                timeout_seconds=timeout_seconds,
            )
        except KubeError as error:
            # Those who ask need not know what is special to Kubernetes.
            raise OSError(str(error)) from error
        return response.status, response.body
