"""What a trigger file says."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from loopagent.core.spec import Spec


Seconds = Annotated[float, Field(ge=0, le=366 * 86_400)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=100)]
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", max_length=100)]
EnvName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)]


class Schedule(Spec):
    """When a trigger fires by itself: `cron`, `everySeconds` or `at`."""

    cron: str | None = Field(default=None, min_length=1, max_length=200)
    """Five fields: minute, hour, day of month, month, day of week; `0 7 * * MON-FRI` is at seven on working days."""
    every_seconds: Annotated[int, Field(ge=1, le=366 * 86_400)] | None = None
    """Time from one moment to the next; moments are counted from 1970-01-01 UTC, so a restart does not shift them."""
    at: tuple[str, ...] = Field(default=(), max_length=1_000)
    """Dates and times, each fires once: `2027-03-01T09:00` by the time zone below, or with an offset of its own."""
    time_zone: str = Field(default="UTC", max_length=100)
    """Whose clock `cron` and `at` go by, for example `Europe/Vienna`."""
    missed: Literal["once", "skip"] = "once"
    """When nothing ran at a moment: fire once for all that were missed, or leave them out."""
    grace_seconds: Seconds = 60.0
    """Up to so late a moment does not count as missed."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        given = [self.cron is not None, self.every_seconds is not None, bool(self.at)]
        if sum(given) != 1:
            raise ValueError("must have one of cron, everySeconds, at")
        return self


class WebhookAuth(Spec):
    """How a sender proves who it is. Secrets come from the environment and are never written down."""

    type: Literal["server", "bearer", "hmac", "standard", "none"] = "server"
    """`server`: the token of the server. `bearer`: a token of its own. `hmac`: a signature of the body.
    `standard`: Standard Webhooks. `none`: anybody who can connect."""
    secret_env: tuple[EnvName, ...] = Field(default=(), max_length=10)
    """Environment variables with the secret; several while it is being changed, any of them will do."""
    header: HeaderName = "X-Hub-Signature-256"
    """`hmac`: the header with the signature."""
    prefix: str = Field(default="sha256=", max_length=50)
    """`hmac`: what stands before the signature."""
    algorithm: Literal["sha256", "sha384", "sha512"] = "sha256"
    """`hmac`: the hash."""
    encoding: Literal["hex", "base64"] = "hex"
    """`hmac`: how the signature is written."""
    timestamp_header: HeaderName | None = None
    """`hmac`: the header with the time in seconds; it is signed too, before the body and a dot."""
    tolerance_seconds: Annotated[float, Field(ge=1, le=86_400)] = 300.0
    """How far the time that was signed may be from now."""

    @model_validator(mode="after")
    def _has_secret(self) -> Self:
        needs = self.type in ("bearer", "hmac", "standard")
        if needs != bool(self.secret_env):
            what = "needs" if needs else "takes no"
            raise ValueError(f"type {self.type} {what} secretEnv")
        return self


class EventId(Spec):
    """Where the id of an event stands: a header, or a field."""

    header: HeaderName | None = None
    """A header, for example `X-GitHub-Delivery`."""
    field: str | None = Field(default=None, min_length=1, max_length=500)
    """A path, for example `body.id`."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.header is None) == (self.field is None):
            raise ValueError("must have one of header, field")
        return self


class Webhook(Spec):
    """How a trigger is called from outside, at `POST /api/v1/triggers/NAME`."""

    auth: WebhookAuth = WebhookAuth()
    """How senders prove who they are."""
    event_id: EventId | None = None
    """Where the id stands; an event without it is refused then. Default: `webhook-id` or `idempotency-key`, if sent."""
    max_body_bytes: Annotated[int, Field(ge=1, le=10_000_000)] = 1_000_000
    """Largest body."""


class TriggerSpec(Spec):
    """What starts runs of an agent, and which.

    Templates and conditions see `event` (`id`, `trigger`, `source`, `at`, and `dueAt` and `missed` of a schedule),
    and of a webhook `body`, `headers` and `query`. What an event holds is data: it fills texts and nothing else.
    """

    name: Name
    """What it is called, and how its runs know it; the address of a webhook."""
    description: str = Field(default="", max_length=2_000)
    """For people."""
    enabled: bool = True
    """A trigger that is not fires nothing, and forgets the moments that pass."""
    agent: str = Field(min_length=1, max_length=200)
    """Whose runs it starts."""
    schedule: Schedule | None = None
    """Fires by the clock."""
    webhook: Webhook | None = None
    """Fires when it is called."""
    message: str = Field(min_length=1, max_length=100_000)
    """The task, a template: `Look at {{ body.issue.title }}`."""
    payload: Any = None
    """Templates that make the payload; null takes the agent's initial one."""
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Templates that make the metadata; `trigger` and `eventId` are added."""
    conversation: str = Field(default="", max_length=1_000)
    """A template that makes the id of a conversation; empty for none."""
    user: str = Field(default="", max_length=200)
    """Who the runs are for."""
    tenant: str = Field(default="", max_length=200)
    """Organisation of that user."""
    match: dict[str, Any] = Field(default_factory=dict[str, Any], max_length=100)
    """Paths and what must stand there: a value, or a list of which any will do; nothing matches everything."""
    filter: str | None = Field(default=None, min_length=1, max_length=2_000)
    """A condition that must hold."""
    dedupe_window_seconds: Seconds = 0.0
    """How long events that are the same, though their ids are not, count once; 0 for not at all."""
    dedupe_key: str | None = Field(default=None, min_length=1, max_length=2_000)
    """A template; events for which it gives the same are the same. Default: those that make the same task."""
    debounce_seconds: Seconds = 0.0
    """How long it must be quiet before the last of several events fires; 0 for at once."""
    debounce_key: str = Field(default="", max_length=2_000)
    """A template; only events for which it gives the same take each other's place."""
    debounce_max_seconds: Seconds | None = None
    """After this long the last one fires though it is not quiet."""
    cooldown_seconds: Seconds = 0.0
    """How long nothing fires after something did; events of that time are left out."""
    max_concurrent: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """How many of its runs may go on at the same time."""
    on_busy: Literal["enqueue", "reject", "interrupt"] = "enqueue"
    """When as many go on, or one of the conversation does: wait, leave the event out, or cancel the oldest."""
    max_waiting: Annotated[int, Field(ge=1, le=10_000)] = 100
    """How many events may wait, for runs to end or for quiet; more are refused."""
    keep_days: Annotated[float, Field(gt=0, le=3_660)] = 30.0
    """How long it is remembered what was delivered."""

    @property
    def kind(self) -> Literal["schedule", "webhook"]:
        """What fires it."""
        return "schedule" if self.schedule is not None else "webhook"

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.schedule is None) == (self.webhook is None):
            raise ValueError("must have one of schedule, webhook")
        return self

    @property
    def secret_names(self) -> tuple[str, ...]:
        """Environment variables that hold its secrets."""
        return () if self.webhook is None else self.webhook.auth.secret_env
