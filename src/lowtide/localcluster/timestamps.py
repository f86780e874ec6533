"""Unix seconds to and from the time strings of Kubernetes objects; used all over this room."""

from datetime import UTC, datetime


def timestamp(unix_seconds: float) -> str:
    return datetime.fromtimestamp(unix_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def unix_seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def age_text(seconds: float) -> str:
    """An age as kubectl prints it: 45s, 3m20s, 15m, 5h30m, 9h, 2d3h, 12d."""
    whole = max(0, int(seconds))
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return f"{minutes}m{whole % 60}s" if whole % 60 else f"{minutes}m"
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    return f"{days}d"
