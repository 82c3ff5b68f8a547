"""Receivers that keep failing are told nothing more, until somebody enables them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import httpx2

from loopagent.errors import RequestError
from loopagent.logs import log
from loopagent.notifications.spec import MAIL


if TYPE_CHECKING:
    from loopagent.notification_port import FailingReceiver, Notice
    from loopagent.notifications.senders import Told
    from loopagent.notifications.spec import NotificationSettings, Receiver
    from loopagent.ports import Store

GONE: Final = 410
"""The status by which a receiver says that it wants to hear nothing more."""
ID_CHARS: Final = 12


@dataclass(frozen=True, slots=True)
class ReceiverView:
    """A receiver as people see it. `target` shows no secret; `failing` is what is known of failures."""

    id: str
    kind: Literal["webhook", "mail", "run"]
    target: str
    events: tuple[str, ...]
    agents: tuple[str, ...]
    failing: FailingReceiver | None

    @property
    def is_disabled(self) -> bool:
        """Whether nothing is sent there any more."""
        return self.failing is not None and self.failing.disabled_at is not None

    def public(self) -> dict[str, Any]:
        """As JSON, for people and clients."""
        failing = self.failing
        return {
            "id": self.id,
            "kind": self.kind,
            "target": self.target,
            "events": list(self.events),
            "agents": list(self.agents),
            "status": "disabled" if self.is_disabled else "failing" if failing else "enabled",
            "failures": failing.failures if failing else 0,
            "failedAt": failing.at if failing else None,
            "error": failing.error if failing else "",
            "disabledAt": failing.disabled_at if failing else None,
        }


class Receivers:
    """The receivers of an app.

    Args:
        settings: Who they are, and how many failures disable one.
        store: Keeps who fails.
        clock: Seconds since the epoch.
    """

    def __init__(
        self, settings: NotificationSettings, store: Store, clock: Callable[[], float]
    ) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock
        named: list[tuple[str, Receiver]] = [(one.name, one) for one in settings.webhooks]
        if settings.mail is not None:
            named.append((MAIL, settings.mail))
        self.named = dict(named)

    async def list(self) -> list[ReceiverView]:
        """Those of the settings, and addresses of runs that fail."""
        failing = {one.target: one for one in await self._store.receivers()}
        urls = {one.name: one.url for one in self._settings.webhooks}
        views = [
            ReceiverView(
                name,
                "mail" if name == MAIL else "webhook",
                shown_target(urls.get(name, name)),
                one.events,
                one.agents,
                failing.get(name),
            )
            for name, one in self.named.items()
        ]
        others = [one for one in failing.values() if "://" in one.target]
        return views + [
            ReceiverView(id_of(one.target), "run", shown_target(one.target), (), (), one)
            for one in others
        ]

    async def enable(self, receiver_id: str) -> ReceiverView:
        """Send to one again that was disabled.

        Raises:
            RequestError: `unknown_receiver` (404); `not_disabled` (409).
        """
        found = next((one for one in await self.list() if one.id == receiver_id), None)
        if found is None:
            text = f"There is no receiver {receiver_id!r}."
            raise RequestError("unknown_receiver", text, status=404)
        failing = found.failing
        if failing is None or not await self._store.forget_receiver(failing.target, disabled=True):
            text = f"The receiver {receiver_id} is not disabled."
            raise RequestError("not_disabled", text, status=409)
        log.info("notification.receiver_enabled", receiver=receiver_id)
        return next(one for one in [*await self.list(), found] if one.id == receiver_id)

    async def disabled(self, target: str) -> bool:
        """Whether nothing is sent to a target."""
        known = await self._store.receiver(target)
        return known is not None and known.disabled_at is not None

    async def heard(self, before: Notice, after: Notice, told: Told) -> None:
        """Count what came of a notification that was sent, or given up."""
        target = before.target
        if after.status == "sent":
            if await self._store.receiver(target) is not None:
                await self._store.forget_receiver(target, disabled=False)
        elif after.status == "failed" and ("://" in target or target in self.named):
            most = 1 if told.status == GONE else self._settings.disable_after
            now = self._clock()
            row = await self._store.receiver_failed(
                target, at=now, error=told.error, disable_after=most
            )
            if row.disabled_at == now:
                log.warning(
                    "notification.receiver_disabled",
                    receiver=id_of(target),
                    failures=row.failures,
                    error=told.error,
                )


def id_of(target: str) -> str:
    """By what people name a receiver: its name, or a word for the address that a run named."""
    if "://" not in target:
        return target
    return f"run-{hashlib.sha256(target.encode()).hexdigest()[:ID_CHARS]}"


def shown_target(target: str) -> str:
    """Who is told, as lists show it: of an address only what holds no secret of its owner's."""
    if "://" not in target:
        return target
    url = httpx2.URL(target)
    return f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}/…"
