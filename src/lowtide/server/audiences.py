"""Who may ask for what: one table of every path that any mode serves, but for the extender's verbs,
whose paths are a user's. `serving` stands before each route what the table says of it."""

from enum import Enum
from typing import Final

from lowtide.server.errors import ServerError


class Audience(Enum):
    """Beyond loopback; on it everything is for everybody on the machine."""

    EVERYBODY = "everybody"
    GRANTED = "whom the API server lets get the path"
    VIEWERS = "this machine, and whom the API server lets get /lowtide"
    MACHINE = "this machine, where nobody else is served"


# A path, or with `*` at its end all that begin so; the path itself goes before these.
AUDIENCES: Final = {
    # The kubelet's probes have neither token nor certificate. What a single check says is not for
    # everybody: it tells why.
    "/healthz": Audience.EVERYBODY,
    "/livez": Audience.EVERYBODY,
    "/readyz": Audience.EVERYBODY,
    "/healthz/*": Audience.GRANTED,
    "/livez/*": Audience.GRANTED,
    "/readyz/*": Audience.GRANTED,
    "/metrics": Audience.GRANTED,
    "/metrics/resources": Audience.GRANTED,
    "/": Audience.VIEWERS,
    "/page/*": Audience.VIEWERS,
    "/api/*": Audience.VIEWERS,
    "/debug": Audience.MACHINE,
    "/debug/*": Audience.MACHINE,
}


def audience_of(path: str) -> Audience:
    """ServerError where the table does not say: then it is for nobody."""
    if path in AUDIENCES:
        return AUDIENCES[path]
    for beginning, audience in AUDIENCES.items():
        if beginning.endswith("*") and path.startswith(beginning[:-1]):
            return audience
    raise ServerError(
        f"cannot serve {path}: the table of audiences does not say who may ask for it; "
        f"it has {', '.join(AUDIENCES)}"
    )
