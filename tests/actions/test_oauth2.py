"""Access tokens from a real token endpoint: fetched once, shared, renewed when they are refused or get old."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from urllib.parse import parse_qs

import pytest

from loopagent.actions.build import make_action
from loopagent.actions.means import Means
from tests.actions.making import Secrets, call, code, http_text, means, message, read
from tests.fakes.web import Got, Reply, Web, as_json


pytestmark = pytest.mark.anyio
SECRET = "client-CANARY-2"


class Server(Web):
    """An API and its token endpoint; `good` are the tokens that it takes."""

    def __init__(self) -> None:
        super().__init__(self._route)
        self.good: set[str] = set()
        self.given = 0
        self.life = 3600.0
        self.refuse: Reply | None = None

    @property
    def asked(self) -> list[Got]:
        return [one for one in self.seen if one.target == "/token"]

    def _route(self, got: Got) -> Reply:
        if got.target != "/token":
            token = got.headers.get("authorization", "").removeprefix("Bearer ")
            return as_json({"echo": got.headers}) if token in self.good else Reply(401)
        if self.refuse is not None:
            return self.refuse
        self.given += 1
        token = f"access-token-CANARY-{self.given}"
        self.good = {token}
        return as_json({"access_token": token, "token_type": "Bearer", "expires_in": self.life})


@pytest.fixture
def web() -> Iterator[Server]:
    with Server() as running:
        yield running


def text(web: Web, more: str = "", **kinds: str) -> str:
    auth = f"tokenUrl: {web.url}/token, clientId: me, clientSecret: {{secret: key}}{more}"
    return http_text(web, f"  auth: {{type: oauth2, {auth}}}\nsecrets: [key]\n", **kinds)


def given(**secrets: str) -> Means:
    return means(secrets=Secrets(**secrets or {"key": SECRET}))


async def test_a_token_is_fetched_once_and_used_by_all(web: Server) -> None:
    action = make_action(read(text(web, ", scopes: [a, b], audience: x")), given())
    outcomes = await asyncio.gather(*(call(action) for _ in range(8)))
    assert all(one.ok for one in outcomes)
    assert len(web.asked) == 1
    assert parse_qs(web.asked[0].body.decode()) == {
        "grant_type": ["client_credentials"],
        "scope": ["a b"],
        "audience": ["x"],
    }
    assert (
        web.asked[0].headers["authorization"]
        == "Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode()
    )


async def test_client_and_secret_in_the_body(web: Server) -> None:
    assert (await call(make_action(read(text(web, ", clientAuth: body")), given()))).ok
    form = parse_qs(web.asked[0].body.decode())
    assert (form["client_id"], form["client_secret"]) == (["me"], [SECRET])
    assert "authorization" not in web.asked[0].headers


async def test_neither_secret_nor_token_comes_back(web: Server) -> None:
    outcome = await call(make_action(read(text(web)), given()))
    assert outcome.ok
    assert "CANARY" not in str(outcome.value)
    assert "[redacted]" in str(outcome.value)


async def test_a_token_that_is_refused_is_renewed_once_for_all(web: Server) -> None:
    action = make_action(read(text(web, effects="write")), given())
    assert (await call(action)).ok
    web.good = set()
    outcomes = await asyncio.gather(*(call(action) for _ in range(6)))
    assert all(one.ok for one in outcomes)
    assert len(web.asked) == 2


async def test_a_token_is_renewed_before_it_expires(web: Server) -> None:
    web.life = 0.2
    action = make_action(read(text(web)), given())
    assert (await call(action)).ok
    await asyncio.sleep(0.15)
    assert (await call(action)).ok
    assert len(web.asked) == 2


async def test_who_is_refused_twice_is_told(web: Server) -> None:
    action = make_action(read(text(web)), given())
    web.answer = lambda got: (
        as_json({"access_token": "never-good-1"}) if got.target == "/token" else Reply(401)
    )
    assert code(await call(action)) == "http_401"
    assert [one.target for one in web.seen] == ["/token", "/x", "/token", "/x"]


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (
            as_json({"error": "invalid_client", "error_description": SECRET}, 401),
            "status 401, invalid_client",
        ),
        (Reply(500, b"<html>"), "status 500"),
        (as_json({"token_type": "mac", "access_token": "x"}), "status 200"),
        (as_json([]), "status 200"),
    ],
)
async def test_no_token(web: Server, reply: Reply, told: str) -> None:
    web.refuse = reply
    outcome = await call(make_action(read(text(web)), given()))
    assert code(outcome) == "auth_failed"
    assert told in message(outcome)
    assert SECRET not in message(outcome)


async def test_the_secret_must_belong_to_both_hosts(web: Server) -> None:
    source = text(web).replace(f"url: {web.url}/x", f"url: http://localhost:{web.port}/x")
    source = source.replace("hosts: [127.0.0.1]", "hosts: [127.0.0.1, localhost]")
    outcome = await call(make_action(read(source), given()))
    assert code(outcome) == "secret_denied"
    assert web.seen == []
