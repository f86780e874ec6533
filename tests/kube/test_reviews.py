from contextlib import AsyncExitStack

import pytest
from tests.kube.conftest import ApiServer, ManualClock, document, status

from lowtide.kube.connection import Connection
from lowtide.kube.errors import ApiError
from lowtide.kube.kubeconfig import plain_access
from lowtide.kube.reviews import Reviews, User

ANN = User(username="ann", uid="7", groups=("ops",), extra={"scopes": ["read"]})
KNOWN = {
    "status": {
        "authenticated": True,
        "user": {"username": "ann", "uid": "7", "groups": ["ops"], "extra": {"scopes": ["read"]}},
    }
}


@pytest.fixture
async def reviews(stack: AsyncExitStack, server: ApiServer, clock: ManualClock) -> Reviews:
    connection = await stack.enter_async_context(Connection(plain_access(server.url), clock))
    return Reviews(connection, connection, clock=clock)


async def test_a_token_says_who_somebody_is(reviews: Reviews, server: ApiServer) -> None:
    server.answers = [document(KNOWN, 201)]
    assert await reviews.user_of("secret") == ANN
    asked = server.asked[0]
    assert (asked.method, asked.path) == ("POST", "/apis/authentication.k8s.io/v1/tokenreviews")
    assert asked.json == {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": "secret"},
    }


async def test_a_token_may_be_nobodys(reviews: Reviews, server: ApiServer) -> None:
    server.answers = [document({"status": {"error": "no such token"}}, 201)]
    assert await reviews.user_of("secret") is None


@pytest.mark.parametrize("is_allowed", [True, False])
async def test_the_api_server_says_whether_he_may(
    reviews: Reviews, server: ApiServer, is_allowed: bool
) -> None:
    server.answers = [document({"status": {"allowed": is_allowed}}, 201)]
    assert await reviews.may(ANN, "get", "/metrics") is is_allowed
    asked = server.asked[0]
    assert asked.path == "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    assert asked.json == {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": "ann",
            "uid": "7",
            "groups": ["ops"],
            "extra": {"scopes": ["read"]},
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        },
    }


async def test_an_answer_counts_for_ten_seconds(
    reviews: Reviews, server: ApiServer, clock: ManualClock
) -> None:
    server.answers = [document(KNOWN), document({"status": {"allowed": True}}), document({})]
    for _ in range(2):
        assert await reviews.user_of("secret") == ANN
        assert await reviews.may(ANN, "get", "/metrics")
        clock.advance(9.9)
    clock.advance(0.1)
    assert await reviews.user_of("secret") is None
    assert not await reviews.may(ANN, "get", "/metrics")
    assert len(server.asked) == 4


async def test_one_users_answer_is_not_anothers(reviews: Reviews, server: ApiServer) -> None:
    server.answers = [document({"status": {"allowed": True}}), document({})]
    assert await reviews.may(ANN, "get", "/metrics")
    assert not await reviews.may(User(username="ann"), "get", "/metrics")
    assert not await reviews.may(ANN, "get", "/other")


async def test_no_answer_is_no_answer(reviews: Reviews, server: ApiServer) -> None:
    server.answers = [status(403, "Forbidden", "you may not"), document(KNOWN)]
    with pytest.raises(ApiError, match="you may not"):
        await reviews.user_of("secret")
    assert await reviews.user_of("secret") == ANN


@pytest.mark.parametrize("token", ["", "b\udce4d", "bäd"])
async def test_what_can_be_no_token_is_nobodys(
    reviews: Reviews, server: ApiServer, token: str
) -> None:
    assert await reviews.user_of(token) is None
    assert server.asked == []


async def test_made_up_tokens_push_no_user_out(reviews: Reviews, server: ApiServer) -> None:
    server.answers = [document(KNOWN), document({})]
    assert await reviews.user_of("secret") == ANN
    for number in range(1001):
        assert await reviews.user_of(f"made-up-{number}") is None
    assert await reviews.user_of("secret") == ANN
