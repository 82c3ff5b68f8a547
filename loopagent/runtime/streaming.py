"""A reply while it arrives: handed out piece by piece, taken back when it does not count.

One `ReplyStream` for each model call, so one for each run at a time. Pieces of text that come in while it could not
work are taken together in its next pass: nothing queues up. It looks first whether the call is still wanted, so that
after a cancel nothing more is shown or begun. It never waits for anybody.

Source: events and states, section 4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from loopagent.core.presenting.parts import Delta, Retracted, Shown
from loopagent.core.presenting.presenter import Presenter
from loopagent.core.turns import reply_rules
from loopagent.redaction import Redactor, StreamRedactor


if TYPE_CHECKING:
    from loopagent.core.facts import Fact
    from loopagent.ports import ModelReply
    from loopagent.runtime.bus import Bus
    from loopagent.runtime.early import EarlyCalls
    from loopagent.runtime.live import Live


REASONS: Final = {"reply.rejected": "refused", "reply.truncated": "truncated"}
"""Event that says that a reply does not count → why what was shown of it is taken back."""
JOIN_FROM: Final = 1_000
"""Pieces nobody reads yet that are joined at a time."""
COUNTS: Final = "reply.received"
"""Event that says that a reply counts."""


class ReplyStream:
    """Follows one model call; nobody reads along until somebody listens or calls may begin early.

    Args:
        live: The run.
        effect_id: The call.
        bus: Whoever listens.
        redactor: Takes secrets out of what is shown.
        early: Begins calls of what comes, where that is allowed.
    """

    attempt = 1
    _presenter: Presenter | None = None
    """None as long as nobody listens."""
    _masked: StreamRedactor
    """Made with the presenter."""
    _scheduled = False
    _shown = False
    _over = False

    def __init__(
        self,
        live: Live,
        effect_id: str,
        bus: Bus,
        redactor: Redactor,
        early: EarlyCalls | None = None,
    ) -> None:
        self.run_id = live.run_id
        self.root_id = live.state.root_id or live.run_id
        self.effect_id = effect_id
        self._live = live
        self._bus = bus
        self._redactor = redactor
        self._early = early
        self._unread: list[str] = []
        self._arrived: list[str] = []
        if early is not None or bus.heard(self.run_id, self.root_id):
            self.wake()

    def wake(self) -> None:
        """Somebody listens from now on: read what has come so far."""
        if self._presenter is None:
            limits = self._live.state.spec.limits
            self._presenter = Presenter(max_chars=limits.max_reply_chars)
            self._masked = StreamRedactor(self._redactor)
            self._pass()

    # ------------------------------------------------------------ the reply comes

    def feed(self, text: str) -> None:
        """Take a piece of the reply; it is looked at in the next pass, if anybody listens."""
        self._arrived.append(text)
        if self._presenter is None:
            if len(self._arrived) >= JOIN_FROM:
                self._unread.append("".join(self._arrived))
                self._arrived.clear()
        elif not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._pass)

    def restart(self, reason: str) -> None:
        """The model is asked again: what has come of its reply does not count."""
        if self.wanted:
            self._retract(reason)
        if self._early is not None:
            self._early.restart()
        self.attempt += 1
        self._unread.clear()
        self._arrived.clear()
        if self._presenter is not None:
            self._presenter = None
            self.wake()

    def finish(self, reply: ModelReply | None) -> None:
        """The stream has ended, with a reply or without: show what is missing, and close what stays incomplete."""
        self._over = True
        if self._presenter is None:
            return
        self._pass()
        if not self.wanted:
            return
        if reply is None:
            self._hand_out(self._presenter.finish())
            return
        rules = reply_rules(self._live.state, bound=reply.bound)
        shown = self._presenter.finish(reply.text, reply.finish, rules=rules)
        for one in shown:
            if self._early is not None and isinstance(one, Retracted):
                self._early.take_back(one)
        self._hand_out(shown)

    def settled(self, facts: Iterable[Fact]) -> None:
        """What became of the reply is stored: take back what was shown of one that does not count.

        Args:
            facts: What was stored.
        """
        self._over = True
        self._arrived.clear()
        if not self._shown or self._live.state.ended:
            return
        kinds = {one.type for one in facts}
        if COUNTS not in kinds:
            why = [reason for kind, reason in REASONS.items() if kind in kinds]
            self._retract(why[0] if why else "interrupted")

    @property
    def wanted(self) -> bool:
        """Whether the run still waits for this reply."""
        return self.effect_id in self._live.state.pending

    def _pass(self) -> None:
        """Look at everything that has arrived; first of all, whether it is still wanted."""
        self._scheduled = False
        arrived, self._arrived = self._arrived, []
        arrived, self._unread = [*self._unread, *arrived], []
        if arrived and self.wanted and self._presenter is not None:
            self._show(self._presenter.feed("".join(arrived)))

    # ------------------------------------------------------------ what is shown

    @property
    def message(self) -> str:
        """What a person may have read of its message."""
        shown = "" if self._presenter is None else self._presenter.message
        return self._clear(shown, done=False)

    @property
    def streams(self) -> bool:
        """Whether it is arriving: something of it has come, and more may."""
        return self.wanted and not self._over and bool(self._shown or self._arrived or self._unread)

    def snapshot(self) -> dict[str, Any] | None:
        """The event that shows all that was shown so far, for who comes late; None when there is nothing."""
        self.wake()
        if self._presenter is None or not (self._shown and self.wanted):
            return None
        fields = [self._whole(one) for one in self._presenter.snapshot()]
        return self._event("reply.snapshot", {"fields": fields})

    def _whole(self, delta: Delta) -> dict[str, Any]:
        made = delta.data()
        if delta.text is not None:
            made["text"] = self._clear(delta.text, done=delta.done)
        elif "value" in made:
            made["value"] = masked(made["value"], self._redactor.mask)
        return made

    def _clear(self, text: str, *, done: bool) -> str:
        """A text without secrets, and without what may be the beginning of one."""
        text = self._redactor.mask(text)
        return text if done else text[: self._redactor.open_end(text)]

    def _show(self, shown: Sequence[Shown]) -> None:
        if self._early is not None:
            self._early.hear(shown)
        self._hand_out(shown)

    def _hand_out(self, shown: Sequence[Shown]) -> None:
        if not shown:
            return
        self._shown = True
        if not self._bus.heard(self.run_id, self.root_id):
            return
        events = [event for one in shown for event in self._events(one)]
        self._bus.publish(self.run_id, events, self.root_id)

    def _events(self, one: Shown) -> Iterable[dict[str, Any]]:
        if isinstance(one, Retracted):
            for field in one.fields:
                self._masked.end(field)
            data = {"reason": "corrected", **({"fields": list(one.fields)} if one.fields else {})}
            yield self._event("reply.retracted", data)
            return
        data = one.data()
        if one.text is not None:
            text = self._masked.feed(one.field, one.text)
            data["text"] = text + (self._masked.end(one.field) if one.done else "")
            if not (data["text"] or one.done or one.truncated):
                return  # all of it is held back
        elif "value" in data:
            data["value"] = masked(data["value"], self._redactor.mask)
        yield self._event("reply.delta", data)

    def _retract(self, reason: str) -> None:
        if self._shown:
            self._shown = False
            event = self._event("reply.retracted", {"reason": reason})
            self._bus.publish(self.run_id, [event], self.root_id)

    def _event(self, kind: str, data: dict[str, Any]) -> dict[str, Any]:
        return {
            "runId": self.run_id,
            "type": kind,
            "turn": int(self.effect_id.partition(":")[0]),
            "decidedBy": "model" if kind == "reply.delta" else "engine",
            "data": {"callId": self.effect_id, "attempt": self.attempt, **data},
        }


def masked(value: Any, mask: Callable[[str], str]) -> Any:
    """A JSON value of one's own, with every text in it, keys included, as `mask` makes it."""
    if isinstance(value, str):
        return mask(value)
    if type(value) is dict:
        fields: dict[str, Any] = value
        return {mask(key): masked(one, mask) for key, one in fields.items()}
    if type(value) is list:
        items: list[Any] = value
        return [masked(one, mask) for one in items]
    return value
