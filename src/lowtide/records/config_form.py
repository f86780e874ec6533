"""The configuration as a recording keeps it: what was written, without what is secret in it."""

import re
from collections.abc import Mapping
from typing import Any, Final

from lowtide.config.load import API_VERSION, OWN_SCHEDULER_NAME, LoadedConfig
from lowtide.readings.address import shown_address

LEFT_OUT: Final = "left-out"

_SECRET = re.compile(r"(?i)(password|passwd|token|secret|authorization|credential|api_?key)")
_NAMES_A_FILE = re.compile(r"(?i)(file|path)$")
_NAMES_A_PLACE = re.compile(r"(?i)(address|addresses|url|urlPrefix|host|master)$")
_SCHEME = re.compile(r"[a-z]+://")
_TLS_DATA: Final = frozenset({"certData", "keyData", "caData"})


def recorded_config(loaded: LoadedConfig) -> dict[str, Any]:
    """Enough to build the same profiles from."""
    data = loaded.document.data
    if not data:
        return {
            "apiVersion": API_VERSION,
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": OWN_SCHEDULER_NAME}],
        }
    return {str(key): _without_secrets(str(key), value) for key, value in data.items()}


def _without_secrets(key: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        if key == "headers":
            # Whatever their names: nobody knows which of them are secrets.
            return dict.fromkeys(map(str, value), LEFT_OUT)
        return {
            str(name): _without_secrets(str(name), each)
            for name, each in value.items()
            if name not in _TLS_DATA
        }
    if isinstance(value, list):
        return [_without_secrets(key, each) for each in value]
    if not isinstance(value, str):
        return value
    if _SECRET.search(key) and not _NAMES_A_FILE.search(key):
        return LEFT_OUT
    return shown_address(value) if is_address(key, value) else value


def is_address(key: str, value: str) -> bool:
    """Whether a text says where something is to be asked."""
    return bool(_SCHEME.match(value) or _NAMES_A_PLACE.search(key))
