"""Requests to Services through the API server, with permission to `get` on `services/proxy`.

App hands it to telemetry for Prometheus addresses that begin with kube-service://."""

from collections.abc import Mapping

from lowtide.kube.connection import Connection
from lowtide.kube.errors import KubeError


class ServiceProxy:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def get(
        self,
        path: str,
        *,
        params: Mapping[str, str],
        headers: Mapping[str, str],
        timeout_seconds: float,
    ) -> tuple[int, bytes]:
        """Status and body, be they the Service's or the API server's; OSError without an answer."""
        try:
            response = await self._connection.pass_on(
                path, params=params, headers=headers, timeout_seconds=timeout_seconds
            )
        except KubeError as error:
            # Those who ask need not know what is special to Kubernetes.
            raise OSError(str(error)) from error
        return response.status, response.body
