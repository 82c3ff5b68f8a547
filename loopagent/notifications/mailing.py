"""Mail over SMTP, by the standard library, in a thread."""

from __future__ import annotations

import asyncio
import smtplib
import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import unquote, urlsplit

from loopagent.errors import ConfigError


if TYPE_CHECKING:
    from email.message import EmailMessage

Security = Literal["starttls", "tls", "none"]
_SCHEMES: Final[dict[str, tuple[Security, int]]] = {
    "smtp": ("starttls", 587),
    "smtps": ("tls", 465),
    "smtp+plain": ("none", 25),
}
PERMANENT: Final = range(500, 600)
"""Answers of a server that will not change by asking again."""


class MailError(Exception):
    """A mail could not be handed over.

    Args:
        message: Why, without secrets.
        status: What the server answered.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class MailServer:
    """Where mail is handed over."""

    host: str
    port: int
    security: Security
    user: str = ""
    password: str = field(default="", repr=False)


def server_at(url: str, name: str) -> MailServer:
    """The mail server that an environment variable names.

    Args:
        url: Its value.
        name: Its name.

    Raises:
        ConfigError: It names none; the message does not show it.
    """
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if host is None or parts.scheme not in _SCHEMES:
        shape = "smtp://USER:PASSWORD@HOST:587, smtps://… or smtp+plain://…"
        raise ConfigError(f"{name} names no mail server; write {shape}")
    security, usual = _SCHEMES[parts.scheme]
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return MailServer(host, port or usual, security, user, password)


def password_in(url: str) -> str:
    """The password in the address of a mail server, empty for none."""
    try:
        return unquote(urlsplit(url.strip()).password or "")
    except ValueError:
        return ""


async def send(
    server: MailServer,
    message: EmailMessage,
    *,
    timeout_seconds: float,
    trust: ssl.SSLContext | None = None,
) -> None:
    """Hand a mail over.

    Args:
        server: To whom.
        message: The mail.
        timeout_seconds: Longest silence of the server, and about half of the longest time in all.
        trust: Certificates that are trusted; None for those of the system.

    Raises:
        MailError: It did not work.
    """
    try:
        async with asyncio.timeout(2 * timeout_seconds):
            await asyncio.to_thread(_send, server, message, timeout_seconds, trust)
    except smtplib.SMTPResponseException as error:
        raise MailError(_reason(error), error.smtp_code) from error
    except smtplib.SMTPRecipientsRefused as error:
        code = next(iter(error.recipients.values()))[0]
        raise MailError("the mail server refuses every recipient", code) from error
    except TimeoutError as error:
        raise MailError("the mail server took too long") from error
    except (OSError, smtplib.SMTPException) as error:
        raise MailError(f"the mail server cannot be used: {type(error).__name__}") from error


def _reason(error: smtplib.SMTPResponseException) -> str:
    """Without what the server said: it may repeat what it was told."""
    login = isinstance(error, smtplib.SMTPAuthenticationError)
    return "the mail server refuses the login" if login else "the mail server refuses the mail"


def _send(
    server: MailServer, message: EmailMessage, timeout_seconds: float, trust: ssl.SSLContext | None
) -> None:
    context = trust or ssl.create_default_context()
    made = (
        smtplib.SMTP_SSL(server.host, server.port, timeout=timeout_seconds, context=context)
        if server.security == "tls"
        else smtplib.SMTP(server.host, server.port, timeout=timeout_seconds)
    )
    with made as smtp:
        if server.security == "starttls":
            smtp.starttls(context=context)
        if server.user:
            smtp.login(server.user, server.password)
        smtp.send_message(message)
