import pytest

from lowtide.server.loopback import is_loopback


@pytest.mark.parametrize(
    ("host", "want"),
    [
        ("127.0.0.1", True),
        ("127.3.2.1", True),
        ("::1", True),
        ("localhost", True),
        ("LocalHost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("127.0.0.1.example.com", False),
        ("localhost.example.com", False),
        ("2130706433", False),  # 127.0.0.1 as one number, to some
        ("", False),
    ],
)
def test_only_this_machine_is_loopback(host: str, want: bool) -> None:
    assert is_loopback(host) is want
