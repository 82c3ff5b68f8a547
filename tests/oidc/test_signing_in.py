"""Signing in at a provider: a real one over HTTP with signed tokens, and what attackers send instead."""

from __future__ import annotations

import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from loopagent import Agent, App
from loopagent.access import AccessSettings
from loopagent.callers import COOKIE
from loopagent.http import create_api
from loopagent.keys import caller_of, shown_id
from loopagent.oidc.flow import Flow
from loopagent.oidc.spec import OidcSettings
from tests.fakes import oidc as fake
from tests.fakes.oidc import CLIENT, SECRET, OidcServer
from tests.runtime.hooked import Listening, mail


pytestmark = pytest.mark.anyio
PAGE = {"accept": "text/html", "sec-fetch-site": "same-origin"}
ANN = {"sub": "248289761001", "name": "Ann Bee", "org": "acme", "roles": ["approver", "other"]}
ASKS: dict[str, Any] = {
    "taskComplete": False,
    "nextStep": {"type": "Actions", "actions": [{"name": "mail", "params": {"to": "bob"}}]},
}
PLACE: dict[str, Any] = {
    "name": "work",
    "label": "Work",
    "clientId": CLIENT,
    "tenantClaim": "org",
    "roles": {"approver": ["runs", "requests.answer"], "boss": ["admin"]},
    "operatorRoles": ["root"],
}


@pytest.fixture
def server() -> Iterator[OidcServer]:
    made = OidcServer(dict(ANN))
    with made.web:
        yield made


@asynccontextmanager
async def site(
    *servers: OidcServer, now: list[float] | None = None, **how: Any
) -> AsyncIterator[tuple[App, httpx2.AsyncClient]]:
    """An app at which people sign in; the providers are `work`, `work2` and so on."""
    more = how.pop("place", {})
    places = [
        {**PLACE, **more, "issuer": one.issuer, "name": f"work{number or ''}"}
        for number, one in enumerate(servers)
    ]
    settings = {"baseUrl": "https://test", "providers": places, **how.pop("settings", {})}
    agent = Agent("a", model=Listening(ASKS, ASKS), actions=[mail])
    clock = time.time if now is None else lambda: now[0]
    async with App(agents=[agent], env={"LOOPAGENT_OIDC_SECRET": SECRET}, clock=clock) as app:
        api = create_api(app, manage=False, oidc=OidcSettings.model_validate(settings), **how)
        transport = httpx2.ASGITransport(app=api)
        async with httpx2.AsyncClient(transport=transport, base_url="https://test") as client:
            yield app, client


async def asked(client: httpx2.AsyncClient, name: str = "work", goes_to: str = "/runs") -> str:
    """Where the browser goes."""
    answer = await client.get(f"/signin/oidc/{name}", params={"goes_to": goes_to}, headers=PAGE)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


async def back(address: str) -> str:
    """Where the provider sends it back to, as a path."""
    async with httpx2.AsyncClient(trust_env=False) as browser:
        answer = await browser.get(address)
    assert answer.status_code == 302, answer.text
    return answer.headers["location"].removeprefix("https://test")


async def signed_in(client: httpx2.AsyncClient, goes_to: str = "/runs") -> httpx2.Response:
    return await client.get(await back(await asked(client, goes_to=goes_to)), headers=PAGE)


async def test_somebody_signs_in_approves_and_leaves(server: OidcServer) -> None:
    async with site(server) as (app, client):
        await app.start("a", "Go.", tenant="acme")
        await app.start("a", "Go.", tenant="other")
        shown = await client.get("/runs?status=failed", headers=PAGE)
        assert shown.status_code == 401
        assert "Sign in with Work" in shown.text
        assert "/signin/oidc/work?goes_to=%2Fruns%3Fstatus%3Dfailed" in shown.text
        done = await signed_in(client, "/runs?status=failed")
        assert (done.status_code, done.headers["location"]) == (303, "/runs?status=failed")
        assert all(one in str(done.headers) for one in ("HttpOnly", "SameSite=lax", "Secure"))
        [request] = (await client.get("/api/v1/requests")).json()["requests"]
        form = {"decision": "approve", "revision": "1"}
        path = f"/requests/{request['id']}"
        assert (await client.post(path, data=form, headers=PAGE)).status_code == 303
        row = await app.store.request(request["id"])
        assert row is not None
        assert row.resolution is not None
        assert row.resolution["by"] == "human:oidc:work/248289761001 Ann Bee"
        assert row.tenant == "acme"
        assert "by Ann Bee (work/248289761001)" in (await client.get(path, headers=PAGE)).text
        made = await client.post("/api/v1/runs", json={"agent": "a", "message": "x"}, headers=PAGE)
        assert (await app.get(made.json()["id"])).state.user == "work/248289761001"

        kept = client.cookies[COOKIE]
        left = await client.post("/signout", headers=PAGE)
        assert f'content="0;url={server.issuer}/logout?' in left.text
        assert COOKIE not in client.cookies
        client.cookies.set(COOKIE, kept)
        assert (await client.get("/api/v1/runs")).status_code == 401


async def test_the_provider_is_told_who_leaves(server: OidcServer) -> None:
    for offered in (True, False):
        async with site(server, place={"endSession": offered}) as (_, client):
            await signed_in(client)
            left = await client.post("/signout", headers=PAGE)
            assert left.status_code == (200 if offered else 303)
            if offered:
                address = left.text.partition('href="' + server.issuer)[2].partition('"')[0]
                said = parse_qs(urlsplit(address.replace("&amp;", "&")).query)
                assert said["post_logout_redirect_uri"] == ["https://test/signin"]
                assert said["id_token_hint"][0].count(".") == 2


BAD_TOKENS: list[tuple[dict[str, Any], fake.Signed]] = [
    ({"nonce": "another"}, fake.signed),
    ({"nonce": None}, fake.signed),
    ({"iss": "https://evil.example"}, fake.signed),
    ({"aud": "somebody-else"}, fake.signed),
    ({"aud": [CLIENT, "somebody-else"]}, fake.signed),
    ({"azp": "somebody-else"}, fake.signed),
    ({"exp": 1_000}, fake.signed),
    ({"exp": None}, fake.signed),
    ({"iat": 9_999_999_999}, fake.signed),
    ({"nbf": 9_999_999_999}, fake.signed),
    ({"sub": ""}, fake.signed),
    ({}, fake.unsigned),
    ({}, fake.signed_with_the_public_key),
    ({}, fake.signed_by_another),
    ({}, fake.no_token),
]


async def test_a_token_that_proves_nothing_lets_nobody_in(server: OidcServer) -> None:
    async with site(server) as (app, client):
        for server.change, server.sign in BAD_TOKENS:
            done = await signed_in(client)
            what = (server.change, server.sign)
            assert (done.status_code, COOKIE in client.cookies) == (400, False), what
            assert "proves nothing" in done.text, what
        assert await app.keys.sessions() == []
        server.change, server.sign = {}, fake.signed
        assert (await signed_in(client)).status_code == 303


async def test_the_public_rsa_key_is_no_shared_secret(server: OidcServer) -> None:
    server.key = fake.rsa_key()
    async with site(server) as (_, client):
        assert (await signed_in(client)).status_code == 303
        server.sign = fake.signed_with_the_public_key
        client.cookies.clear()
        assert (await signed_in(client)).status_code == 400


async def test_a_short_key_is_not_trusted(server: OidcServer) -> None:
    server.key = fake.short_key()
    async with site(server) as (_, client):
        assert (await signed_in(client)).status_code == 400


async def test_a_little_skew_is_forgiven(server: OidcServer) -> None:
    server.change = {"exp": int(time.time()) - 30}
    async with (
        site(server) as (_, client),
        site(server, settings={"clockSkewSeconds": 0}) as (_, sharp),
    ):
        assert (await signed_in(client)).status_code == 303
        assert (await signed_in(sharp)).status_code == 400


async def test_an_answer_is_good_once_and_for_the_browser_that_asked(server: OidcServer) -> None:
    async with site(server) as (_, client):
        address = await asked(client)
        held = dict(client.cookies)
        path = await back(address)
        client.cookies.clear()
        assert (await client.get(path, headers=PAGE)).status_code == 400, "another browser"
        forged = path.replace("state=", "state=x")
        for name, value in held.items():
            client.cookies.set(name, value)
        assert (await client.get(forged, headers=PAGE)).status_code == 400
        assert (await client.get(path, headers=PAGE)).status_code == 303
        client.cookies.clear()
        for name, value in held.items():
            client.cookies.set(name, value)
        calls = server.asked_for("/token")
        again = await client.get(path, headers=PAGE)
        assert (again.status_code, "used before" in again.text) == (400, True)
        assert server.asked_for("/token") == calls
        for odd in (
            "",
            "x",
            "a.b.c.d",
            "a.work.1.!!!",
            "a.work.99999999999999999999.Lw==",
            "x" * 9_999,
        ):
            client.cookies.clear()
            client.cookies.set("__Host-loopagent_flow", odd)
            assert (await client.get(path, headers=PAGE)).status_code == 400, odd


async def test_whoever_takes_too_long_begins_anew(server: OidcServer) -> None:
    now = [1_000.0]
    async with site(server, now=now) as (_, client):
        path = await back(await asked(client))
        now[0] += 602
        late = await client.get(path, headers=PAGE)
        assert (late.status_code, "too long" in late.text) == (400, True)


async def test_providers_are_not_mixed_up(server: OidcServer) -> None:
    evil = OidcServer(dict(ANN))
    with evil.web:
        async with site(server, evil) as (_, client):
            path = await back(await asked(client, "work1"))
            mixed = path.replace("/work1/", "/work/")
            assert (await client.get(mixed, headers=PAGE)).status_code == 400
            evil.answer = {"iss": evil.issuer}
            server.answer = {"iss": evil.issuer}
            assert (await signed_in(client)).status_code == 400, "RFC 9207: of another issuer"
            server.answer, server.document = (
                {},
                {"authorization_response_iss_parameter_supported": True},
            )
        async with site(server) as (_, client):
            assert (await signed_in(client)).status_code == 400, "it says it always names itself"
            server.answer = {"iss": server.issuer}
            assert (await signed_in(client)).status_code == 303
        evil.document = {"issuer": server.issuer}
        async with site(evil) as (_, client):
            refused = await client.get("/signin/oidc/work", headers=PAGE)
            assert refused.status_code == 503, "a document of another issuer"


async def test_new_keys_are_found_and_old_ones_stop_counting(server: OidcServer) -> None:
    now = [1_000.0]
    async with site(server, now=now) as (_, client):
        assert (await signed_in(client)).status_code == 303
        server.key = fake.ec_key("second")
        assert (await signed_in(client)).status_code == 400, "keys were read just now"
        now[0] += 31
        assert (await signed_in(client)).status_code == 303
        reads = server.asked_for("/jwks")
        assert (await signed_in(client)).status_code == 303
        assert server.asked_for("/jwks") == reads == 2
        stale = server.key
        server.key = fake.ec_key("third")
        now[0] += 31
        assert (await signed_in(client)).status_code == 303
        server.published, server.key = [server.key], stale
        assert (await signed_in(client)).status_code == 400


@pytest.mark.parametrize("goes_to", ["https://evil.example/", "//evil.example", "/\\evil", "x"])
async def test_nobody_is_sent_elsewhere(server: OidcServer, goes_to: str) -> None:
    async with site(server) as (_, client):
        assert (await signed_in(client, goes_to)).headers["location"] == "/"
        await asked(client, goes_to="/runs")
        secret, name, at, _ = client.cookies["__Host-loopagent_flow"].split(".")
        planted = f"{secret}.{name}.{at}.{urlsafe_b64encode(goes_to.encode()).decode()}"
        flow = Flow.read(planted)
        assert flow is not None
        server.codes["planted"] = {
            "redirect_uri": "https://test/signin/oidc/work/callback",
            "nonce": flow.nonce,
            "code_challenge": flow.challenge,
        }
        client.cookies.clear()
        client.cookies.set("__Host-loopagent_flow", planted)
        path = f"/signin/oidc/work/callback?code=planted&state={flow.state}"
        assert (await client.get(path, headers=PAGE)).headers["location"] == "/"


LACKING: list[tuple[dict[str, Any], str]] = [
    ({"roles": []}, "approver, boss (it is not there or empty)"),
    ({"roles": ["nobody"]}, "approver, boss (it holds nobody)"),
    ({"roles": {"a": 1}}, "roles"),
    ({"org": None}, "which tenant you belong to"),
    ({"org": " "}, "which tenant you belong to"),
    ({"org": 7}, "which tenant you belong to"),
]


async def test_whoever_may_do_nothing_is_told_what_is_missing(server: OidcServer) -> None:
    async with site(server) as (app, client):
        for server.change, said in LACKING:
            turned = await signed_in(client)
            assert turned.status_code == 403
            assert said in turned.text
            assert "248289761001" in turned.text
            assert COOKIE not in client.cookies
        assert await app.keys.sessions() == []


async def test_roles_say_what_somebody_may_do(server: OidcServer) -> None:
    async with site(server) as (app, client):
        for roles, status in (
            (["approver"], 403),
            (["boss"], 403),
            ("boss root", 404),
        ):  # there are no metrics
            server.change = {"roles": roles}
            client.cookies.clear()
            await signed_in(client)
            assert (await client.get("/metrics")).status_code == status
        tenants = [one.tenant for one in await app.keys.sessions()]
        assert tenants == ["acme", "acme", None]
    keycloak = {
        "scopesClaim": "realm_access.roles",
        "roles": {},
        "tenantClaim": None,
        "tenant": "t",
    }
    server.change = {"realm_access": {"roles": ["runs"]}}
    async with site(server, place={**keycloak, "userClaim": "name"}) as (app, client):
        await signed_in(client)
        [row] = await app.keys.sessions()
        assert (row.tenant, row.person and (row.person.user, row.person.scopes)) == (
            "t",
            ("Ann Bee", ("runs",)),
        )


async def test_roles_say_who_may_approve(server: OidcServer) -> None:
    place = {
        "tenantClaim": None,
        "userClaim": "email",
        "roles": {"treasurer": ["requests.answer", "role:finance"], "visitor": ["role:guest"]},
    }
    server.change = {"roles": ["treasurer"], "email": "ann@example.com"}
    async with site(server, place=place) as (app, client):
        await signed_in(client)
        [row] = await app.keys.sessions()
        assert row.person is not None
        ann = caller_of(row.person, row.tenant)
        assert ann.scopes == {"requests.answer", "role:finance"}
        assert ann.approves(["role:finance"])
        assert ann.approves(["ann@example.com"])
        assert not ann.approves(["role:legal", "bob@example.com", "scope:admin"])
        await app.keys.end_session(shown_id(row))
        server.change = {"roles": ["visitor"], "email": "ann@example.com"}
        client.cookies.clear()
        turned = await signed_in(client)
        assert "allows something" in turned.text  # a role opens nothing by itself
        assert await app.keys.sessions() == []


async def test_a_session_ends_by_time_and_with_its_provider(server: OidcServer) -> None:
    now = [1_000.0]
    async with site(server, now=now, access=AccessSettings(session_hours=1)) as (app, client):
        await signed_in(client)
        assert (await client.get("/api/v1/runs")).status_code == 200
        cookie = f"{COOKIE}={client.cookies[COOKIE]}"
        plain = httpx2.ASGITransport(app=create_api(app, manage=False, token="t"))
        async with httpx2.AsyncClient(transport=plain, base_url="https://test") as other:
            answer = await other.get("/api/v1/runs", headers={"cookie": cookie})
            assert answer.status_code == 401, "the provider is not in the settings any more"
        now[0] += 3_600
        assert (await client.get("/api/v1/runs")).status_code == 401


async def test_a_refusal_and_a_provider_that_is_away_are_said(server: OidcServer) -> None:
    async with site(server) as (_, client):
        server.answer = {"error": "access_denied"}
        refused = await signed_in(client)
        assert (refused.status_code, "access_denied" in refused.text) == (400, True)
        assert (await client.get("/signin/oidc/nobody", headers=PAGE)).status_code == 404
    server.answer, server.document = {}, {"token_endpoint": "http://token.example/"}
    now = [1_000.0]
    async with site(server, now=now) as (_, client):
        assert (await client.get("/signin/oidc/work", headers=PAGE)).status_code == 503
        calls = len(server.web.seen)
        server.document = {}
        assert (await client.get("/signin/oidc/work", headers=PAGE)).status_code == 503
        assert len(server.web.seen) == calls, "nobody waits for it again so soon"
        now[0] += 5
        assert (await client.get("/signin/oidc/work", headers=PAGE)).status_code == 303
    server.document = {"token_endpoint": "https://127.0.0.2:9/token"}
    async with site(server) as (_, client):
        assert (await signed_in(client)).status_code == 503, "no other place on this network"
    async with App(env={}) as app:
        transport = httpx2.ASGITransport(app=create_api(app, manage=False))
        async with httpx2.AsyncClient(transport=transport, base_url="https://test") as client:
            assert (await client.get("/signin/oidc/work", headers=PAGE)).status_code == 404


@pytest.mark.parametrize("method", ["client_secret_post", "none"])
async def test_other_ways_of_a_client_to_say_who_it_is(server: OidcServer, method: str) -> None:
    server.document = {"token_endpoint_auth_methods_supported": [method]}
    env = "LOOPAGENT_OIDC_SECRET" if method != "none" else "NOT_SET"
    server.secret = SECRET if method != "none" else ""
    async with site(server, place={"clientSecretEnv": env}) as (_, client):
        assert (await signed_in(client)).status_code == 303


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"issuer": "http://login.example"}, "issuer"),
        ({"issuer": "https://login.example?x=1"}, "issuer"),
        ({"algorithms": ["HS256"]}, "algorithms"),
        ({"algorithms": ["none"]}, "algorithms"),
        ({"algorithms": []}, "algorithms"),
        ({"scopes": ["profile"]}, "openid"),
        ({"name": "../x"}, "name"),
        ({"roles": {"x": ["everything"]}}, "roles"),
    ],
)
def test_settings_that_are_not_safe_are_refused(change: dict[str, Any], said: str) -> None:
    place = {**PLACE, "issuer": "https://login.example", **change}
    with pytest.raises(ValueError, match=said):
        OidcSettings.model_validate({"baseUrl": "https://test", "providers": [place]})
    fine = {**PLACE, "issuer": "https://login.example"}
    with pytest.raises(ValueError, match="base_url"):
        OidcSettings.model_validate({"providers": [fine]})
    with pytest.raises(ValueError, match="rename one"):
        OidcSettings.model_validate({"baseUrl": "https://test", "providers": [fine, fine]})
