"""Who is told of requests and ends: the `[notifications]` of a project's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from loopagent.core.spec import Spec
from loopagent.egress.policy import host_pattern
from loopagent.notifications.mailing import password_in
from loopagent.notifications.signing import PREFIX
from loopagent.redaction import MIN_CHARS


Format = Literal["standard", "cloudevents"]
"""How a body is put: `{type, timestamp, data}` of Standard Webhooks, or the JSON of CloudEvents 1.0."""
Payload = Literal["thin", "full"]
"""What a body holds: ids and short words, or also the request, or the run that ended, as the API shows it."""
Kind = Literal["request.created", "run.completed", "run.failed", "run.cancelled"]
Word = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,49}$")]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
Address = Annotated[str, Field(pattern=r"^[^\s@<>,;:\"]{1,64}@[^\s@<>,;:\"]{1,255}$")]
SECRET_ENV = "LOOPAGENT_WEBHOOK_SECRET"  # noqa: S105 - a name
SMTP_ENV = "LOOPAGENT_SMTP_URL"
MAIL = "mail"
"""The name under which mail is a receiver."""


class Receiver(Spec):
    """What somebody wants to be told."""

    events: tuple[Kind, ...] = ()
    """What to tell; empty for everything."""
    agents: tuple[str, ...] = ()
    """Only of runs that were started with these agents; empty for all."""


class WebhookReceiver(Receiver):
    """A program that is called with a signed request."""

    name: Word
    """What it is called in lists."""
    url: str = Field(min_length=1, max_length=2_000)
    """Its address; it may be on this machine or network."""
    format: Format = "standard"
    """How the body is put."""
    payload: Payload = "thin"
    """What the body holds."""
    secret_env: Variable = SECRET_ENV
    """Environment variable with its secret, `whsec_…`; while secrets change, several with blanks between them."""

    @field_validator("name")
    @classmethod
    def _is_no_mail(cls, name: str) -> str:
        if name == MAIL:
            raise ValueError(f"{MAIL} stands for mail; take another name")
        return name


class MailReceiver(Receiver):
    """People who are written to."""

    to: tuple[Address, ...] = Field(min_length=1, max_length=100)
    """Their addresses."""
    sender: Address
    """The address in `From`."""
    smtp_env: Variable = SMTP_ENV
    """Environment variable with the mail server: `smtp://USER:PASSWORD@HOST:587` (turns TLS on, or sends nothing),
    `smtps://…:465` (TLS from the beginning), `smtp+plain://HOST:25` (no TLS)."""


class NotificationSettings(Spec):
    """Who is told when a request opens or a run ends, and how hard it is tried."""

    base_url: str | None = Field(default=None, pattern=r"^https?://[^\s]+$", max_length=1_000)
    """Where people find the pages of this server; links in notifications begin with it."""
    webhooks: tuple[WebhookReceiver, ...] = Field(default=(), max_length=50)
    """Programs that are called."""
    mail: MailReceiver | None = None
    """People who are written to."""
    run_webhooks: bool = True
    """Whether whoever starts a run may name an address to call."""
    hosts: tuple[str, ...] = Field(default=(), max_length=1_000)
    """Hosts that addresses of runs may lead to, like `hooks.example.com` or `*.example.com`; empty for all."""
    secret_env: Variable = SECRET_ENV
    """Environment variable with the secret for addresses of runs."""
    run_format: Format = "standard"
    """How the body is put for addresses of runs."""
    run_payload: Payload = "thin"
    """What the body holds for addresses of runs."""
    max_payload_bytes: int = Field(default=1_000_000, ge=1_000, le=100_000_000)
    """Largest full body; what would be larger is sent thin."""
    disable_after: int = Field(default=5, ge=0, le=1_000_000)
    """So many notifications given up in a row disable their receiver; 0: never."""
    timeout_seconds: float = Field(default=15.0, gt=0, le=120)
    """How long an attempt may take."""
    first_retry_seconds: float = Field(default=5.0, gt=0, le=3_600)
    """Pause after the first attempt that failed; each further one is twice as long, less up to half by chance."""
    max_retry_seconds: float = Field(default=3_600.0, gt=0, le=86_400)
    """Longest pause."""
    give_up_seconds: float = Field(default=86_400.0, ge=0, le=2_592_000)
    """How long it is tried."""
    parallel: int = Field(default=8, ge=1, le=100)
    """Attempts of one process at the same time."""
    keep_days: float = Field(default=30.0, gt=0)
    """How long delivered and failed ones are kept."""

    @field_validator("hosts")
    @classmethod
    def _are_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(host_pattern, hosts))

    @model_validator(mode="after")
    def _have_names_of_their_own(self) -> NotificationSettings:
        names = [one.name for one in self.webhooks]
        twice = sorted({one for one in names if names.count(one) > 1})
        if twice:
            raise ValueError(f"two webhooks are named {twice[0]!r}; rename one")
        return self

    def secret_values(self, env: Mapping[str, str]) -> list[str]:
        """What must not be seen: the secrets, and the password for mail."""
        names = {self.secret_env, *(one.secret_env for one in self.webhooks)}
        found = [part for name in sorted(names) for part in env.get(name, "").split()]
        found += [one.removeprefix(PREFIX) for one in found]
        if self.mail is not None:
            found.append(password_in(env.get(self.mail.smtp_env, "")))
        return [one for one in found if len(one) >= MIN_CHARS]
