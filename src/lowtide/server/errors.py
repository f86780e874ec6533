"""What can be wrong with a server before it serves; the command line tells it to the user."""


class ServerError(Exception):
    """The server cannot start; its text is one sentence for the user."""
