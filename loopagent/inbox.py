"""What people do with requests beside deciding them: take care of one, put it off, keep views, approve alike ones.

Who takes care of a request stands in the run and its log, like every decision. What somebody puts off and likes to
look at is a private matter and kept apart.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode

from loopagent.access import OPERATOR, Caller
from loopagent.core.effects import AskHuman, CallClientTool
from loopagent.core.events import Event, RequestHeld
from loopagent.core.text import clean_text
from loopagent.desk_port import DeskRow
from loopagent.errors import RequestError
from loopagent.intake import not_open
from loopagent.runtime.needed import needed


if TYPE_CHECKING:
    from loopagent.core.state import RunState
    from loopagent.ports import RequestRow, Store
    from loopagent.runtime.engine import Engine

MAX_NAME_CHARS: Final = 80
MAX_VIEWS: Final = 100
MAX_AT_ONCE: Final = 50
"""Requests that may be approved together."""
FILTERS: Final = ("q", "status", "kind", "risk", "agent", "holder", "snoozed", "sort")
"""What a view may say."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as somebody saw it: the revision and the content hash bind the approval to that."""

    request_id: str
    revision: int
    content_hash: str


@dataclass(frozen=True, slots=True)
class Approved:
    """What became of one of the requests that were approved together; `error` is None where it was approved."""

    request_id: str
    error: RequestError | None = None


class Inbox:
    """Requests as people work with them.

    Args:
        store: Where requests and desks are kept.
        engine: Takes events to runs.
        clock: Seconds since the epoch.
        answer: `App.answer`.
    """

    def __init__(
        self,
        store: Store,
        engine: Engine,
        clock: Callable[[], float],
        answer: Callable[..., Awaitable[Any]],
    ) -> None:
        self._store = store
        self._engine = engine
        self._clock = clock
        self._answer = answer

    # ------------------------------------------------------------------ who takes care

    async def claim(self, request: str, *, by: str, take_over: bool = False) -> RequestRow:
        """Take care of a request; others see that. Nothing happens where one does so already.

        Args:
            request: Its id.
            by: Who does.
            take_over: Also where somebody else does.

        Raises:
            RequestError: `unknown_request` (404), `claimed` or `already_resolved` (409), `gone` (410).
        """
        return await self._hold(request, by, by, take_over=take_over)

    async def assign(
        self, request: str, to: str, *, by: str, take_over: bool = False
    ) -> RequestRow:
        """Have somebody take care of a request.

        Args:
            request: Its id.
            to: Who is to; a name as logs say it is `human:NAME`, a bare name means that.
            by: Who says so.
            take_over: Also where somebody takes care of it who is not `by`.

        Raises:
            RequestError: As for `claim`, and `invalid_name` (422).
        """
        name = checked_name(to.removeprefix("human:"))
        return await self._hold(request, f"human:{name}", by, take_over=take_over)

    async def release(self, request: str, *, by: str, take_over: bool = False) -> RequestRow:
        """Take care of a request no more; nothing happens where nobody does.

        Raises:
            RequestError: As for `claim`; `claimed` where it is somebody else who does.
        """
        return await self._hold(request, "", by, take_over=take_over)

    async def _hold(self, request: str, holder: str, by: str, *, take_over: bool) -> RequestRow:
        row = await self.row(request)
        effect_id = request.removeprefix(f"{row.run_id}:")

        def decide(state: RunState) -> list[Event]:
            ask = state.pending.get(effect_id)
            if not isinstance(ask, AskHuman | CallClientTool):
                raise not_open(row)
            if not take_over:
                check_holder(ask, by, "take it over if you know what became of it")
            return [RequestHeld(effect_id, clean_text(holder), self._clock(), clean_text(by))]

        await self.deliver(row, decide)
        return await self.row(request)

    async def deliver(self, row: RequestRow, decide: Callable[[RunState], Sequence[Event]]) -> None:
        """Bring events about a request to its run.

        Raises:
            RequestError: What `decide` raises; where the request was closed meanwhile, how.
        """
        asking = await self._store.load(row.run_id)
        if asking is not None and not await needed(asking.state, self._store.load):
            raise not_open(row if row.status != "open" else replace(row, status="cancelled"))
        try:
            await self._engine.bring(row.run_id, decide)
        except RequestError as error:
            if error.code != "already_resolved":
                raise
            raise not_open(await self.row(row.id)) from None

    async def row(self, request: str, who: Caller | None = None) -> RequestRow:
        """A request as it is stored.

        Args:
            request: Its id.
            who: For whom; what this caller does not reach is not there. None reaches all.

        Raises:
            RequestError: `unknown_request` (404).
        """
        found = await self._store.request(request)
        if found is None or (who is not None and not who.reaches(found.tenant)):
            text = f"There is no request {request!r}."
            raise RequestError("unknown_request", text, status=404)
        return found

    # ------------------------------------------------------------------ desks

    async def snooze(self, person: str, request: str, until: float) -> float:
        """Put a request off for one person; it comes back by itself.

        Args:
            person: Whose inbox it leaves.
            request: Its id.
            until: When it comes back, in seconds since the epoch.

        Raises:
            RequestError: `unknown_request` (404), `invalid_time` (422), it is over already.
        """
        await self.row(request)
        now = self._clock()
        if not math.isfinite(until) or until <= now:
            text = "Say a moment in the future until which the request is put off."
            where = [{"pointer": "/until", "detail": "must be in the future"}]
            raise RequestError("invalid_time", text, errors=where)
        await self._store.put_desk(DeskRow(person, "snooze", request, until), at=now)
        return until

    async def wake(self, person: str, request: str) -> bool:
        """Have a request back that was put off; False where it was not."""
        return await self._store.delete_desk(person, "snooze", request)

    async def snoozed(self, person: str) -> dict[str, float]:
        """What one person has put off: ids of requests, and until when, in seconds since the epoch."""
        now = self._clock()
        rows = await self._store.desk(person, "snooze")
        return {one.name: one.until for one in rows if one.until is not None and one.until > now}

    async def views(self, person: str) -> dict[str, str]:
        """The views that one person keeps: names, and the filters of each as in an address."""
        return {one.name: one.body for one in await self._store.desk(person, "view")}

    async def keep_view(self, person: str, name: str, query: str) -> str:
        """Keep a view under a name, in place of the one of that name; returns its filters as they are kept.

        Raises:
            RequestError: `invalid_name` (422), `too_many_views` (409).
        """
        kept, known = checked_name(name), await self.views(person)
        if kept not in known and len(known) >= MAX_VIEWS:
            text = f"There are {MAX_VIEWS} views already; remove one first."
            raise RequestError("too_many_views", text, status=409)
        body = tidied(query)
        await self._store.put_desk(DeskRow(person, "view", kept, body=body), at=self._clock())
        return body

    async def drop_view(self, person: str, name: str) -> bool:
        """Remove a view; False when there is none of that name."""
        return await self._store.delete_desk(person, "view", name)

    # ------------------------------------------------------------------ many at once

    async def approve_alike(
        self,
        seen: Iterable[Seen],
        *,
        by: str,
        who: Caller = OPERATOR,
        unless_held: bool = False,
    ) -> list[Approved]:
        """Approve several calls of one action that only reads, each exactly as it was shown.

        Either all of them are such calls, or none is approved. Each is then approved for itself: one that has changed
        or was decided meanwhile is left alone and told of.

        Args:
            seen: The requests, with what was shown of each.
            by: Who approves them.
            who: The same, as far as it matters who may, see `App.answer`.
            unless_held: Leave those alone that somebody else takes care of.

        Raises:
            RequestError: `unknown_request` (404), `not_alike` or `too_many` (422).
        """
        wanted = list({one.request_id: one for one in seen}.values())
        if len(wanted) > MAX_AT_ONCE:
            text = f"{MAX_AT_ONCE} requests may be approved together, not {len(wanted)}."
            raise RequestError("too_many", text)
        rows = [await self.row(one.request_id) for one in wanted]
        check_alike(rows)
        how = {"decision": "approve", "by": by, "who": who, "unless_held": unless_held}
        return [await self._approve(one, how) for one in wanted]

    async def _approve(self, seen: Seen, how: Mapping[str, Any]) -> Approved:
        shown = {"revision": seen.revision, "content_hash": seen.content_hash}
        try:
            await self._answer(seen.request_id, **how, **shown)
        except RequestError as error:
            return Approved(seen.request_id, error)
        return Approved(seen.request_id)


def reads_only(body: Mapping[str, Any]) -> str | None:
    """The action that a request would let be called once, if it does nothing but read; else None.

    A plan, a question, a call whose effects are unknown or that may have happened already, and calls of a loop that
    are decided together are none of these.
    """
    subject: Mapping[str, Any] = body.get("subject") or {}
    plain = body.get("kind") == "approval" and subject.get("effects") == "read"
    if not plain or subject.get("inDoubt") or "passes" in subject:
        return None
    action = subject.get("action")
    return action if isinstance(action, str) else None


def check_alike(rows: Iterable[RequestRow]) -> None:
    """Refuse what may not be approved together.

    Raises:
        RequestError: `not_alike` (422).
    """
    actions = {reads_only(one.body) for one in rows}
    if len(actions) > 1 or None in actions:
        text = "Only calls of one action that reads can be approved together; decide the others one by one."
        raise RequestError("not_alike", text)


def check_holder(ask: AskHuman | CallClientTool, by: str, advice: str) -> None:
    """Refuse what would go over the head of somebody who takes care of a request.

    Raises:
        RequestError: `claimed` (409).
    """
    if ask.holder and ask.holder != by:
        text = f"{ask.holder.removeprefix('human:')} takes care of this request; {advice}."
        raise RequestError("claimed", text, status=409)


def checked_name(name: str) -> str:
    """The name of a person or a view, fit to be stored.

    Raises:
        RequestError: `invalid_name` (422).
    """
    kept = " ".join(clean_text(name).split())
    if not kept or len(kept) > MAX_NAME_CHARS or not kept.isprintable():
        text = f"A name has 1 to {MAX_NAME_CHARS} characters that can be printed."
        raise RequestError("invalid_name", text)
    return kept


def tidied(query: str) -> str:
    """The filters of an address, without anything else and without those that say nothing."""
    pairs = dict(parse_qsl(query.removeprefix("?"), max_num_fields=100))
    return urlencode({one: clean_text(pairs[one])[:200] for one in FILTERS if pairs.get(one)})
