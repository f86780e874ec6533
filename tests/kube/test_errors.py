import pytest

from lowtide.kube.errors import (
    ApiError,
    KubeError,
    NoAnswer,
    Redirected,
    Unreadable,
    is_forbidden,
    may_pass,
)

GOING = "unable to create new content in namespace x because it is being terminated"


@pytest.mark.parametrize(
    ("error", "want"),
    [
        pytest.param(ApiError(403, "Forbidden", "no right to"), True, id="a right is missing"),
        pytest.param(ApiError(403, "Forbidden", GOING), False, id="but not a namespace that goes"),
        pytest.param(ApiError(404, "NotFound", "none"), False, id="nor anything else"),
        pytest.param(NoAnswer("silence"), False, id="nor silence"),
    ],
)
def test_forbidden_is(error: KubeError, want: bool) -> None:
    assert is_forbidden(error) is want


@pytest.mark.parametrize(
    ("error", "want"),
    [
        pytest.param(ApiError(503, "Unavailable", "later"), True, id="a server that broke down"),
        pytest.param(ApiError(429, "TooManyRequests", "later"), True, id="one that is busy"),
        pytest.param(NoAnswer("silence"), True, id="silence"),
        pytest.param(Redirected("elsewhere"), True, id="a proxy that wants a login"),
        pytest.param(ApiError(422, "Invalid", "bad"), False, id="but not what is wrong with it"),
        pytest.param(Unreadable("odd"), False, id="nor an answer that cannot be read"),
    ],
)
def test_what_may_pass_is(error: KubeError, want: bool) -> None:
    assert may_pass(error) is want
