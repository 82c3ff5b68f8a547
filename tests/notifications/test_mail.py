"""Mail to a real server: with and without TLS, refused for now, refused for good."""

from __future__ import annotations

import ssl
from email.message import EmailMessage
from typing import Any

import pytest

from loopagent.errors import ConfigError
from loopagent.notifications import NotificationSettings
from loopagent.notifications.mailing import MailError, MailServer, Security, send, server_at
from tests.notifications.receivers import CERTIFICATE, Post
from tests.notifications.test_webhooks import DONE, app, settled


pytestmark = pytest.mark.anyio
HOSTILE = "Delete it?\r\nBcc: eve@evil.example\r\n\r\n<b>now</b>"
ASK_HOSTILE = {"taskComplete": False, "nextStep": {"type": "Chat", "message": HOSTILE}}


def told(**more: Any) -> NotificationSettings:
    mail = {"to": ["ann@example.com", "bob@example.com"], "sender": "agents@example.com"}
    given: dict[str, Any] = {"mail": mail, "first_retry_seconds": 0.05, **more}
    return NotificationSettings.model_validate({"base_url": "https://agents.example", **given})


def message() -> EmailMessage:
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = "a@example.com", "b@example.com", "Hello"
    made.set_content("Hello\n")
    return made


async def test_people_are_written_to_with_a_link_to_the_card() -> None:
    with Post(refuse=[451], login=("robot", "p@ss-word")) as post:
        env = {"LOOPAGENT_SMTP_URL": f"smtp+plain://robot:p%40ss-word@127.0.0.1:{post.port}"}
        async with app(told(), ASK_HOSTILE, DONE, env=env) as made:
            view = await made.start("clerk", "Do it")
            view = await made.wait(view.id, timeout_seconds=30)
            request = view.asks[0]["requestId"]
            (row,) = await settled(made)
            assert made.redactor.mask("p@ss-word") != "p@ss-word"
    assert [one.status for one in row.attempts] == [451, 250]
    assert post.recipients == [["ann@example.com", "bob@example.com"]]
    (mail,) = post.mails
    assert mail["Bcc"] is None
    assert mail["Message-ID"] == f"<{row.id}@example.com>"
    assert mail["Subject"].startswith("Your answer is needed")
    assert mail.get_content_type() == "text/plain"
    assert f"Open it: https://agents.example/requests/{request}" in mail.get_content().splitlines()


async def test_a_refused_login_says_nothing_of_the_password() -> None:
    with Post(login=("robot", "right-password")) as post:
        env = {"LOOPAGENT_SMTP_URL": f"smtp+plain://robot:wrong-password@127.0.0.1:{post.port}"}
        async with app(told(give_up_seconds=0), env=env) as made:
            await made.start("clerk", "Do it")
            (row,) = await settled(made)
    assert row.status == "failed"
    assert (row.attempts[0].status, row.attempts[0].error) == (
        535,
        "the mail server refuses the login",
    )


@pytest.mark.parametrize("mode", ["starttls", "tls"])
async def test_tls(mode: Security) -> None:
    trust = ssl.create_default_context(cafile=str(CERTIFICATE))
    trust.check_hostname = False
    with Post(mode=mode) as post:
        server = MailServer("127.0.0.1", post.port, mode)
        await send(server, message(), timeout_seconds=10, trust=trust)
        with pytest.raises(MailError, match="cannot be used: SSLCertVerificationError"):
            await send(server, message(), timeout_seconds=10)
    assert post.secured == [True]


async def test_nothing_is_sent_where_tls_is_wanted_and_not_offered() -> None:
    with Post() as post:
        server = MailServer("127.0.0.1", post.port, "starttls", "robot", "password")
        with pytest.raises(MailError, match="SMTPNotSupportedError"):
            await send(server, message(), timeout_seconds=10)
    assert post.mails == []


async def test_a_server_that_is_not_there() -> None:
    with Post() as post:
        gone = MailServer("127.0.0.1", post.port, "none")
    with pytest.raises(MailError, match="ConnectionRefusedError"):
        await send(gone, message(), timeout_seconds=10)


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("smtp://mail.example", MailServer("mail.example", 587, "starttls")),
        ("smtps://u:p%3A@mail.example", MailServer("mail.example", 465, "tls", "u", "p:")),
        ("smtp+plain://localhost:2525", MailServer("localhost", 2525, "none")),
    ],
)
def test_addresses_of_mail_servers(url: str, server: MailServer) -> None:
    assert server_at(url, "X") == server


@pytest.mark.parametrize("url", ["", "mail.example", "http://u:secret@mail.example", "smtp://h:x"])
def test_what_is_no_mail_server(url: str) -> None:
    with pytest.raises(ConfigError, match="X names no mail server") as refused:
        server_at(url, "X")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"mail": {"to": ["a@b\nBcc: c@d"], "sender": "x@example.com"}},
        {"mail": {"to": [], "sender": "x@example.com"}},
        {"webhooks": [{"name": "mail", "url": "https://a.example"}]},
        {"webhooks": [{"name": "a", "url": "https://a.example"}] * 2},
    ],
)
def test_settings_that_cannot_work(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        NotificationSettings.model_validate(wrong)
