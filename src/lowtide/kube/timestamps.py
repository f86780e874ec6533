"""Times as the API server spells them; used by lease and kube_events."""

import datetime


def micro_time(epoch_seconds: float) -> str:
    """2026-01-02T03:04:05.000006Z"""
    return _utc(epoch_seconds).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def second_time(epoch_seconds: float) -> str:
    """2026-01-02T03:04:05Z"""
    return _utc(epoch_seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


def _utc(epoch_seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(epoch_seconds, datetime.UTC)
