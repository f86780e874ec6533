"""Writes of one pod: its binding, conditions and nomination, its deletion; and the read that
settles doubts.

Called by the tasks that scheduler/live starts for the machine's actions."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from typing import Any

import msgspec

from lowtide.kube.connection import JSON, MERGE_PATCH, STRATEGIC_MERGE_PATCH, Connection
from lowtide.kube.decoding import AnswerDecoder
from lowtide.kube.errors import (
    ApiError,
    CredentialsError,
    KubeError,
    NotConnected,
    Withdrawn,
)
from lowtide.objects.meta import ObjectMeta, Wire
from lowtide.objects.pod import Pod, PodCondition

BINDING_ATTEMPTS = 10
STATUS_RETRY_SECONDS = (0.01, 0.05, 0.25)


class _Patched(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class Outcome(Enum):
    BOUND = "bound"
    WRITTEN = "written"
    CONFLICT = "conflict"  # 409: bound already, being deleted, or another pod of this name
    GONE = "gone"  # 404
    REJECTED = "rejected"  # any other 4xx, or we may not write, or not this any more
    UNKNOWN = "unknown"  # no answer, 3xx or 5xx: read the pod again before deciding anything


class Written(msgspec.Struct, frozen=True):
    """What became of a write; `message` is empty when it was done."""

    outcome: Outcome
    message: str = ""
    was_sent: bool = True


class Writer:
    """`may_write` is asked right before the bytes of each attempt are sent, when all waiting is
    over: with leader election, whether we still lead."""

    def __init__(
        self,
        connection: Connection,
        *,
        may_write: Callable[[], bool],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._connection = connection
        self._may_write = may_write
        self._sleep = sleep
        self._encode = msgspec.json.Encoder().encode
        self._decode_pod = AnswerDecoder(Pod).decode
        self._decode_patched = AnswerDecoder(_Patched).decode

    async def bind(
        self,
        namespace: str,
        name: str,
        uid: str,
        node_name: str,
        objection: Callable[[], str | None] = lambda: None,
    ) -> Written:
        """Sent once; again only after 429, which tells that the server did nothing. `objection`
        is asked as `may_write` is: what it says is rejected."""

        def check() -> None:
            self._check_may_write()
            reason = objection()
            if reason is not None:
                raise Withdrawn(reason)

        path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
        # Kubernetes names and uids need no escaping in JSON.
        body = (
            f'{{"apiVersion":"v1","kind":"Binding","metadata":{{"namespace":"{namespace}",'
            f'"name":"{name}","uid":"{uid}"}},"target":{{"kind":"Node","name":"{node_name}"}}}}'
        ).encode()
        for attempt in range(1, BINDING_ATTEMPTS + 1):
            try:
                await self._connection.request("POST", path, body=body, attempts=1, check=check)
                return Written(Outcome.BOUND)
            except ApiError as error:
                if error.status != 429 or attempt == BINDING_ATTEMPTS:
                    return _written(error)
                await self._sleep(error.retry_after_seconds or 1.0)
            except KubeError as error:
                return _written(error)
        raise AssertionError("the last attempt returns")

    async def patch_pod_status(
        self,
        namespace: str,
        name: str,
        uid: str,
        *,
        conditions: Sequence[PodCondition] = (),
        nominated_node_name: str | None = None,
    ) -> Written:
        """Merges conditions by type; a nomination of "" is taken back, None leaves it alone."""
        status: dict[str, object] = {}
        if conditions:
            status["conditions"] = conditions
        if nominated_node_name is not None:
            status["nominatedNodeName"] = nominated_node_name or None
        body = self._encode({"metadata": {"uid": uid}, "status": status})
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/status"
        for wait_seconds in (*STATUS_RETRY_SECONDS, None):
            try:
                await self._patch_once(path, body)
                return Written(Outcome.WRITTEN)
            except KubeError as error:
                if wait_seconds is None or not _may_pass(error):
                    return _written(error)
            await self._sleep(wait_seconds)
        raise AssertionError("the last attempt returns")

    async def delete_pod(self, namespace: str, name: str, uid: str) -> Written:
        """With the grace that the pod has; only the pod with this uid."""
        body = self._encode(
            {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        )
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        for wait_seconds in (*STATUS_RETRY_SECONDS, None):
            try:
                await self._connection.request(
                    "DELETE", path, body=body, content_type=JSON, check=self._check_may_write
                )
                return Written(Outcome.WRITTEN)
            except KubeError as error:
                # A conflict tells of another pod under this name, and stays one.
                written = _written(error)
                if wait_seconds is None or written.outcome is not Outcome.UNKNOWN:
                    return written
            await self._sleep(wait_seconds)
        raise AssertionError("the last attempt returns")

    async def patch_object(self, path: str, changes: Mapping[str, Any]) -> str:
        """Merges the changes into the object there, and returns its version; KubeError says why
        not. With a resourceVersion among them, only while the object has that version."""
        response = await self._connection.request(
            "PATCH",
            path,
            body=self._encode(changes),
            content_type=MERGE_PATCH,
            check=self._check_may_write,
        )
        patched = self._decode_patched(response.body, f"The answer about {path} cannot be read")
        return patched.metadata.resource_version

    async def get_pod(self, namespace: str, name: str) -> Pod | None:
        """The newest state of the pod, None when there is no such pod; KubeError when unknown."""
        try:
            response = await self._connection.request(
                "GET", f"/api/v1/namespaces/{namespace}/pods/{name}"
            )
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return self._decode_pod(response.body, f"The pod {namespace}/{name} cannot be read")

    async def _patch_once(self, path: str, body: bytes) -> None:
        await self._connection.request(
            "PATCH",
            path,
            body=body,
            content_type=STRATEGIC_MERGE_PATCH,
            check=self._check_may_write,
        )

    def _check_may_write(self) -> None:
        if not self._may_write():
            raise ApiError(403, "NotLeader", "this process does not hold the leader lease")


def _may_pass(error: KubeError) -> bool:
    """Whether the same patch may succeed a moment later; it can be sent twice without harm."""
    return not isinstance(error, ApiError) or error.status >= 500 or error.status == 409


def _written(error: KubeError) -> Written:
    message = str(error)
    if isinstance(error, Withdrawn):
        return Written(Outcome.REJECTED, message, was_sent=False)
    if not isinstance(error, ApiError) or error.status >= 500:
        was_sent = not isinstance(error, NotConnected | CredentialsError)
        return Written(Outcome.UNKNOWN, message, was_sent)
    # A status patch for a pod that was replaced under its name is told so by 422.
    if error.status == 409 or (error.status == 422 and "metadata.uid" in message):
        return Written(Outcome.CONFLICT, message)
    if error.status == 404:
        return Written(Outcome.GONE, message)
    return Written(Outcome.REJECTED, message)
