"""Who may see what is not for everybody, such as /metrics, where others than this machine can ask:
the API server says who somebody is and whether he may, as it does for kube-scheduler."""

from collections.abc import Iterable

from aiohttp import web
from aiohttp.typedefs import Handler

from lowtide.kube.errors import KubeError
from lowtide.kube.reviews import Reviews, User
from lowtide.logs import Log

_LOG = Log(__name__)
_MASTERS = "system:masters"
_ANONYMOUS = User(username="system:anonymous", groups=("system:unauthenticated",))
_AUTHENTICATED = "system:authenticated"
_BEARER = "bearer "


class Guard:
    """`open_paths` are for everybody: paths, or beginnings of paths that end in `*`."""

    def __init__(self, reviews: Reviews, open_paths: Iterable[str]) -> None:
        self._reviews = reviews
        self._open_paths = frozenset(open_paths)
        self._open_prefixes = tuple(each[:-1] for each in self._open_paths if each.endswith("*"))

    def for_known(self, handler: Handler, path: str | None = None) -> Handler:
        """The same for those who may ask it, by permission to that path, else to the request's own;
        401 or 403 for others."""

        async def answer(request: web.Request) -> web.StreamResponse:
            rejection = await self._rejection(request, path or request.path)
            return await handler(request) if rejection is None else rejection

        return answer

    async def _rejection(self, request: web.Request, path: str) -> web.Response | None:
        if path in self._open_paths or path.startswith(self._open_prefixes):
            return None
        try:
            user = await self._user_of(request)
            if user is None:
                return _rejected(401, f"{path} is for known users; the token is not valid here")
            verb = request.method.lower()
            if _MASTERS in user.groups or await self._reviews.may(user, verb, path):
                return None
        except KubeError as error:
            _LOG.warning("The API server does not say who may ask", path=path, err=str(error))
            return _rejected(503, f"the API server does not say who may {request.method} {path}")
        return _rejected(
            403,
            f'{user.username} may not {verb} {path}; a ClusterRole with nonResourceURLs: ["{path}"]'
            f' and verbs: ["{verb}"] would let him',
        )

    async def _user_of(self, request: web.Request) -> User | None:
        """By his certificate, which the handshake has checked, or his token."""
        certificate = request.get_extra_info("peercert")
        if certificate:
            return _user_of_certificate(certificate["subject"])
        authorization = request.headers.get("Authorization", "")
        if not authorization:
            return _ANONYMOUS
        if not authorization.lower().startswith(_BEARER):
            return None
        return await self._reviews.user_of(authorization[len(_BEARER) :].strip())


def _user_of_certificate(subject: Iterable[Iterable[tuple[str, str]]]) -> User:
    """As the API server reads one: the common name, and the organisations as groups."""
    pairs = [pair for part in subject for pair in part]
    names = [value for kind, value in pairs if kind == "commonName"]
    groups = [value for kind, value in pairs if kind == "organizationName"]
    return User(username=names[0] if names else "", groups=(*groups, _AUTHENTICATED))


def _rejected(status: int, why: str) -> web.Response:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return web.json_response({"error": why}, status=status, headers=headers)
