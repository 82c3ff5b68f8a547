"""Notifications at work: what is due is claimed, sent, and tried again until it is through or given up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from secrets import SystemRandom
from typing import TYPE_CHECKING, Any, Final

import httpx2

from loopagent.egress import EgressDeniedError
from loopagent.egress.client import checked_url
from loopagent.errors import ConfigError, RequestError, StoreError
from loopagent.logs import log
from loopagent.notification_port import MAX_ATTEMPTS_KEPT, Attempt, Notice
from loopagent.notifications import mailing, signing
from loopagent.notifications.outbox import ONLY
from loopagent.notifications.receivers import Receivers, id_of, shown_target
from loopagent.notifications.senders import More, Senders, Told


if TYPE_CHECKING:
    from loopagent.notifications.spec import NotificationSettings
    from loopagent.ports import Store

POLL_SECONDS: Final = 5.0
"""How often at least it is looked what is due; other processes may have put something there."""
LEAST_SECONDS: Final = 0.01
LEASE_FACTOR: Final = 2.0
"""How many times `timeout_seconds` a claim lasts: as long as a mail may take."""
LEASE_SECONDS: Final = 3.0
"""What a claim lasts beyond that."""
FORGET_SECONDS: Final = 3_600.0
"""How often old ones are forgotten."""
DAY_SECONDS: Final = 86_400.0
MAX_URL_CHARS: Final = 2_000
DISABLED: Final = Told(error="its receiver is disabled: enable it, then replay", final=True)


class Notifications:
    """The notifications of an app.

    Args:
        settings: Who is told.
        store: Where they are kept.
        senders: Tell receivers.
        clock: Seconds since the epoch.
        env: Where secrets come from.
        mask: Takes secrets out of texts.
        shows: Gives what a full body holds beside ids and short words.
        chance: A number between 0 and 1 that shortens pauses, so that not all try again at once.
    """

    def __init__(
        self,
        settings: NotificationSettings,
        *,
        store: Store,
        senders: Senders,
        clock: Callable[[], float],
        env: Mapping[str, str],
        mask: Callable[[str], str],
        shows: More | None = None,
        chance: Callable[[], float] | None = None,
    ) -> None:
        self.settings = settings
        self._store = store
        self._senders = senders
        self._clock = clock
        self._env = env
        self._mask = mask
        self._shows = shows
        self.receivers = Receivers(settings, store, clock)
        self._chance = chance or SystemRandom().random
        self._woken = asyncio.Event()
        self._forgot = 0.0

    def check(self) -> None:
        """Refuse receivers that nothing can be sent to.

        Raises:
            ConfigError: Which, and what to do.
        """
        for one in self.settings.webhooks:
            signing.secrets_in(self._env, one.secret_env)
            checked_address(one.url, f"notifications.webhooks: {one.name}")
        mail = self.settings.mail
        if mail is not None:
            mailing.server_at(self._env.get(mail.smtp_env, ""), mail.smtp_env)

    def wake(self) -> None:
        """Look at once what is due: a run of this process may have something to tell."""
        self._woken.set()

    # ------------------------------------------------------------------ who

    def hearers(self, agent: str, webhook: str | None = None) -> tuple[str, ...]:
        """Who is told of a new run; pinned to it, see `RunState.notify`.

        Args:
            agent: The agent it is started with.
            webhook: An address that whoever starts it wants called as well.

        Raises:
            RequestError: `invalid_webhook` (422): it is none, or may not be called.
        """
        named = self.receivers.named.items()
        wanting = [(name, one) for name, one in named if not one.agents or agent in one.agents]
        entries = [
            name + (ONLY + ",".join(one.events) if one.events else "") for name, one in wanting
        ]
        return (*entries, *([] if webhook is None else [self._accepted(webhook)]))

    def _accepted(self, url: str) -> str:
        try:
            if not self.settings.run_webhooks:
                raise _refused("runs name no addresses here: set notifications.run_webhooks")
            if ONLY in url or len(url) > MAX_URL_CHARS or "://" not in url:
                raise _refused("it is no address; write https://HOST/PATH")
            checked_url(url)
            self._senders.run_policy(url)
            signing.secrets_in(self._env, self.settings.secret_env)
        except EgressDeniedError as error:
            raise _refused(str(error)) from error
        except ConfigError as error:
            raise _refused(f"nothing can be signed here: {error}") from error
        except httpx2.InvalidURL as error:
            raise _refused("it is no address; write https://HOST/PATH") from error
        return url

    # ------------------------------------------------------------------ look

    async def list(
        self,
        *,
        run_id: str | None = None,
        status: str | None = None,
        tenant: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> tuple[list[Notice], str | None]:
        """A page of notifications, newest first, and the cursor of the next page; those of a tenant, or all.

        Raises:
            RequestError: `bad_cursor` (400).
        """
        return await self._store.notices(
            run_id=run_id, status=status, tenant=tenant, cursor=cursor, limit=limit
        )

    async def get(self, notice_id: str) -> Notice:
        """One notification.

        Raises:
            RequestError: `unknown_notification` (404).
        """
        found = await self._store.notice(notice_id)
        if found is None:
            text = f"There is no notification {notice_id!r}."
            raise RequestError("unknown_notification", text, status=404)
        return found

    async def replay(self, notice_id: str) -> Notice:
        """Have one sent again now, under the same id, whether it got through or not.

        Raises:
            RequestError: `unknown_notification` (404); `being_sent` (409), somebody tries just now;
                `receiver_disabled` (409), nothing is sent there any more.
        """
        known, now = await self.get(notice_id), self._clock()
        if await self.receivers.disabled(known.target):
            text = f"The receiver {id_of(known.target)} is disabled: enable it first."
            raise RequestError("receiver_disabled", text, status=409)
        if known.status == "sending" and (known.due or 0.0) > now:
            text = "The notification is being sent just now; look again in a moment."
            raise RequestError("being_sent", text, status=409, retryable=True)
        again = replace(known, status="waiting", due=now, since=now, tries=0)
        if not await self._store.save_notice(again):
            return await self.replay(notice_id)
        self._woken.set()
        return await self.get(notice_id)

    # ------------------------------------------------------------------ send

    async def watch(self) -> None:
        """Send what is due, for ever; run it as a task."""
        while True:
            wait = await self._try(self.sweep)
            try:
                await asyncio.wait_for(self._woken.wait(), wait)
            except TimeoutError:
                continue

    async def _try(self, work: Callable[[], Awaitable[float]]) -> float:
        try:
            return await work()
        except StoreError as error:
            log.error("notifications.not_swept", error)
            return POLL_SECONDS

    async def sweep(self) -> float:
        """Send what is due now; returns for how many seconds there is nothing more to do."""
        self._woken.clear()
        lease = self.settings.timeout_seconds * LEASE_FACTOR + LEASE_SECONDS
        most = self.settings.parallel
        while True:
            now = self._clock()
            taken = await self._store.claim_notices(now=now, lease_seconds=lease, limit=most)
            await asyncio.gather(*(self._send(one) for one in taken))
            if len(taken) < most:
                break
        await self._forget()
        due = await self._store.notice_due()
        wait = POLL_SECONDS if due is None else due - self._clock()
        return min(POLL_SECONDS, max(LEAST_SECONDS, wait))

    async def _send(self, notice: Notice) -> None:
        began = self._clock()
        told = await self._told(notice, began)
        after = judged(notice, told, self.settings, (began, self._clock()), self._chance())
        error = self._mask(told.error)
        latest = Attempt(began, max(0.0, self._clock() - began), told.status, error)
        attempts = (*notice.attempts, latest)[-MAX_ATTEMPTS_KEPT:]
        kept = await self._store.save_notice(replace(after, attempts=attempts))
        if kept and told != DISABLED:
            await self.receivers.heard(notice, after, replace(told, error=error))
        about = {"id": notice.id, "kind": notice.kind, "run_id": notice.run_id}
        if not kept:
            log.info("notification.taken_over", **about)
        elif after.status == "failed":
            log.warning("notification.failed", **about, tries=after.tries, error=error)
        else:
            log.info(f"notification.{after.status}", **about, tries=after.tries)

    async def _told(self, notice: Notice, now: float) -> Told:
        if await self.receivers.disabled(notice.target):
            return DISABLED
        return await self._senders.tell(notice, now, self._shows)

    async def _forget(self) -> None:
        now = self._clock()
        if now - self._forgot >= FORGET_SECONDS:
            self._forgot = now
            await self._store.forget_notices(now - self.settings.keep_days * DAY_SECONDS)


def judged(
    notice: Notice,
    told: Told,
    settings: NotificationSettings,
    times: tuple[float, float],
    chance: float,
) -> Notice:
    """A notification after an attempt: sent, given up, or to be tried again later.

    Args:
        notice: As it was claimed.
        told: What came of it.
        settings: Pauses, and how long it is tried.
        times: When the attempt began and ended.
        chance: Between 0 and 1; shortens the pause by up to half.
    """
    tries, (_, now) = notice.tries + 1, times
    if not told.error:
        return replace(notice, status="sent", due=None, tries=tries)
    doublings = min(tries - 1, 60)
    pause = min(settings.max_retry_seconds, settings.first_retry_seconds * 2**doublings)
    due = now + max(pause * (1 - chance / 2), min(told.after_seconds, settings.max_retry_seconds))
    if told.final or due > notice.since + settings.give_up_seconds:
        return replace(notice, status="failed", due=None, tries=tries)
    return replace(notice, status="waiting", due=due, tries=tries)


def checked_address(url: str, where: str) -> None:
    """Refuse what is no address.

    Raises:
        ConfigError: It is none.
    """
    try:
        fits = checked_url(url).scheme in ("http", "https")
    except (httpx2.InvalidURL, EgressDeniedError):
        fits = False
    if not fits:
        raise ConfigError(f"{where}: its url is no address; write https://HOST/PATH")


def public(notice: Notice) -> dict[str, Any]:
    """As JSON, for people and clients."""
    return {
        "id": notice.id,
        "type": notice.kind,
        "runId": notice.run_id,
        "agent": notice.agent,
        "target": shown_target(notice.target),
        "status": notice.status,
        "at": notice.at,
        "dueAt": notice.due,
        "tries": notice.tries,
        "data": notice.data,
        "attempts": [
            {"at": one.at, "seconds": one.seconds, "status": one.status, "error": one.error}
            for one in notice.attempts
        ],
    }


def _refused(text: str) -> RequestError:
    return RequestError("invalid_webhook", f"The webhook is not accepted: {text}")
