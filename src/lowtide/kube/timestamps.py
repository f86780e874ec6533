"""Times as the API server spells them; used by lease and kube_events."""

from datetime import datetime, timedelta

_EPOCH = datetime(1970, 1, 1)  # in UTC, as all here is; to say so takes longer each time


def micro_time(epoch_seconds: float) -> str:
    """2026-01-02T03:04:05.000006Z"""
    return _utc(epoch_seconds, "microseconds")


def second_time(epoch_seconds: float) -> str:
    """2026-01-02T03:04:05Z"""
    return _utc(epoch_seconds, "seconds")


def _utc(epoch_seconds: float, smallest: str) -> str:
    return f"{(_EPOCH + timedelta(seconds=epoch_seconds)).isoformat(timespec=smallest)}Z"
