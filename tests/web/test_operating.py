"""Pages for whoever looks after a server: keys and sessions, notifications, decisions; and signing in at a provider."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import httpx2
import pytest
from playwright.sync_api import Browser, expect

from tests.fakes.oidc import CLIENT, SECRET, OidcServer
from tests.http.server import make_project, serving
from tests.notifications.receivers import ENV, Hook
from tests.web.browser import PHONE, watched
from tests.web.test_inbox import asked


if TYPE_CHECKING:
    from playwright.sync_api import Page

ANN = {"sub": "248289761001", "name": "Ann Bee", "roles": ["loopagent-operators"]}
TOKEN = {"authorization": "Bearer t0ken-t0ken"}


@pytest.fixture(scope="module")
def provider() -> Iterator[OidcServer]:
    made = OidcServer(dict(ANN))
    with made.web:
        yield made


@pytest.fixture(scope="module")
def hook() -> Iterator[Hook]:
    with Hook(answers=[410]) as made:
        yield made


@pytest.fixture(scope="module")
def client(
    tmp_path_factory: pytest.TempPathFactory, provider: OidcServer, hook: Hook
) -> Iterator[httpx2.Client]:
    """A server on a port that is known before, since the provider sends people back to it."""
    folder = tmp_path_factory.mktemp("operating")
    project, port = make_project(folder / "project"), free_port()
    (project / "loopagent.toml").write_text(
        settings(port, provider.issuer, hook.url), encoding="utf-8"
    )
    env = {**ENV, "LOOPAGENT_OIDC_SECRET": SECRET, "LOOPAGENT_API_TOKEN": "t0ken-t0ken"}
    with serving(project, folder / "runs.db", port=port, **env) as (found, _):
        found.headers.update(TOKEN)
        yield found


def settings(port: int, issuer: str, hook: str) -> str:
    return f"""
    [oidc]
    base_url = "http://127.0.0.1:{port}"
    [[oidc.providers]]
    name = "work"
    label = "Example Work"
    issuer = {json.dumps(issuer)}
    client_id = "{CLIENT}"
    operator_roles = ["loopagent-operators"]
    [[notifications.webhooks]]
    name = "ops"
    url = {json.dumps(hook)}
    """


def free_port() -> int:
    import socket  # noqa: PLC0415 - for this only

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def sign_in(page: Page, goes_to: str) -> None:
    page.goto(goes_to)
    page.get_by_role("link", name="Sign in with Example Work").click()
    expect(page.get_by_role("button", name="Sign out (Ann Bee")).to_be_visible()


def test_somebody_signs_in_decides_is_named_and_leaves(
    browser: Browser, client: httpx2.Client, site: str, provider: OidcServer
) -> None:
    request = asked(client, "mailer")
    with watched(browser, site) as seen:
        page = seen.page
        page.goto(f"/requests/{request['id']}")
        expect(page.get_by_role("link", name="Sign in with Example Work")).to_be_visible()
        seen.check()
        sign_in(page, f"/requests/{request['id']}")
        page.get_by_role("button", name="Approve").click()
        expect(page.get_by_text("by Ann Bee (work/248289761001)")).to_be_visible()
        page.goto("/audit?by=Ann")
        expect(page.get_by_role("list").get_by_text("approved")).to_be_visible()
        seen.check()
        page.get_by_role("button", name="Sign out").click()
        page.wait_for_url(f"{provider.issuer}/logout?**")
        assert provider.left[-1]["post_logout_redirect_uri"] == f"{site}/signin"
        page.goto("/audit")
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_whoever_may_do_nothing_reads_what_is_missing(
    browser: Browser, client: httpx2.Client, site: str, provider: OidcServer
) -> None:
    provider.change = {"roles": ["visitor"]}
    try:
        with watched(browser, site, viewport=PHONE) as seen:
            seen.page.goto("/signin")
            seen.page.get_by_role("link", name="Sign in with Example Work").click()
            expect(seen.page.get_by_text("(it holds visitor)")).to_be_visible()
            seen.check()
    finally:
        provider.change = {}


def test_a_key_is_made_shown_once_and_revoked(
    browser: Browser, client: httpx2.Client, site: str
) -> None:
    with watched(browser, site, viewport=PHONE) as seen:
        page = seen.page
        sign_in(page, "/keys")
        page.get_by_label("Name", exact=True).fill("nightly")
        page.get_by_label("Tenant", exact=True).fill("acme")
        page.get_by_label("admin").check()
        page.get_by_role("button", name="Make the key").click()
        text = page.locator(".made pre").inner_text()
        assert re.fullmatch(r"la_[0-9a-f]{12}_[0-9a-f]{64}", text)
        seen.check()
        page.goto("/keys")
        expect(page.get_by_text("this browser")).to_be_visible()
        assert text not in page.content()
        page.get_by_text("Revoke").first.click()
        seen.check()
        page.get_by_role("button", name="Revoke nightly").click()
        expect(page.get_by_text("revoked", exact=True)).to_be_visible()
        mine = page.get_by_role("listitem").filter(has_text="this browser")
        mine.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_a_disabled_receiver_is_enabled_and_told_again(
    browser: Browser, client: httpx2.Client, site: str, hook: Hook
) -> None:
    asked(client, "mailer")
    with watched(browser, site) as seen:
        page = seen.page
        sign_in(page, "/notifications")
        expect(page.get_by_text("disabled", exact=True)).to_be_visible()
        seen.check()
        page.get_by_role("button", name="Enable ops").click()
        expect(page.get_by_text("enabled", exact=True)).to_be_visible()
        page.get_by_role("button", name="Send again").last.click()
        expect(page.get_by_text("Receivers")).to_be_visible()
        page.goto("/notifications?status=sent")
        seen.check()
