"""Asks the API server who somebody is and what he may do: TokenReview and SubjectAccessReview.

`server/guard` asks it about those who want to see what is not for everybody."""

import hashlib
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

import msgspec

from lowtide.kube.connection import Connection
from lowtide.kube.decoding import AnswerDecoder
from lowtide.objects.meta import Wire

T = TypeVar("T")

# As long as kube-scheduler believes an answer.
_BELIEVED_SECONDS: Final = 10.0
_MOST_BELIEVED: Final = 1000
_PATIENCE_SECONDS: Final = 5.0


class User(Wire, frozen=True):
    """As a TokenReview names him."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, list[str]] = {}


class _TokenStatus(Wire, frozen=True):
    authenticated: bool = False
    user: User = User()


class _TokenReview(Wire, frozen=True):
    status: _TokenStatus = _TokenStatus()


class _AccessStatus(Wire, frozen=True):
    allowed: bool = False


class _AccessReview(Wire, frozen=True):
    status: _AccessStatus = _AccessStatus()


class _Believed(Generic[T]):
    """Answers for a while; the oldest go first."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._answers: dict[Hashable, tuple[float, T]] = {}

    def answer_for(self, key: Hashable) -> tuple[T] | None:
        found = self._answers.get(key)
        if found is None or self._clock() >= found[0]:
            return None
        return (found[1],)

    def keep(self, key: Hashable, answer: T) -> None:
        self._answers.pop(key, None)
        if len(self._answers) >= _MOST_BELIEVED:
            del self._answers[next(iter(self._answers))]
        self._answers[key] = self._clock() + _BELIEVED_SECONDS, answer


class Reviews:
    """Each question is one to the API server, whose answer counts for ten seconds. KubeError where
    it does not answer. `authentication` and `authorization` may be the same connection."""

    def __init__(
        self,
        authentication: Connection,
        authorization: Connection,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._authentication = authentication
        self._authorization = authorization
        self._users: _Believed[User] = _Believed(clock)
        # Apart: whoever makes tokens up cannot have those of others forgotten.
        self._nobodys: _Believed[None] = _Believed(clock)
        self._allowed: _Believed[bool] = _Believed(clock)
        self._encode = msgspec.json.Encoder().encode
        self._decode_token = AnswerDecoder(_TokenReview).decode
        self._decode_access = AnswerDecoder(_AccessReview).decode

    async def user_of(self, token: str) -> User | None:
        """None where the token is nobody's."""
        if not token or not token.isascii():
            return None
        # Not the token itself: memory may be dumped.
        key = hashlib.sha256(token.encode()).digest()
        known = self._users.answer_for(key)
        if known is not None:
            return known[0]
        if self._nobodys.answer_for(key) is not None:
            return None
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        }
        response = await self._authentication.request(
            "POST",
            "/apis/authentication.k8s.io/v1/tokenreviews",
            body=self._encode(review),
            timeout_seconds=_PATIENCE_SECONDS,
            attempts=1,
        )
        status = self._decode_token(response.body, "The TokenReview cannot be read").status
        if not status.authenticated:
            self._nobodys.keep(key, None)
            return None
        self._users.keep(key, status.user)
        return status.user

    async def may(self, user: User, verb: str, path: str) -> bool:
        extra = tuple((name, tuple(values)) for name, values in sorted(user.extra.items()))
        key = user.username, user.uid, user.groups, extra, verb, path
        believed = self._allowed.answer_for(key)
        if believed is not None:
            return believed[0]
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": user.username,
                "uid": user.uid,
                "groups": user.groups,
                "extra": user.extra,
                "nonResourceAttributes": {"path": path, "verb": verb},
            },
        }
        response = await self._authorization.request(
            "POST",
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            body=self._encode(review),
            timeout_seconds=_PATIENCE_SECONDS,
            attempts=1,
        )
        answer = self._decode_access(response.body, "The SubjectAccessReview cannot be read")
        self._allowed.keep(key, answer.status.allowed)
        return answer.status.allowed
