"""Who we are to the API server, as its audit log shows it."""

from importlib.metadata import PackageNotFoundError, version


def user_agent() -> str:
    try:
        return f"lowtide/{version('lowtide')}"
    except PackageNotFoundError:  # run from a source tree that was not installed
        return "lowtide/0"
