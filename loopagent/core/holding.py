"""Who takes care of an open request: a mark on it that others see. It decides nothing and ends with the request."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loopagent.core.effects import AskHuman, CallClientTool, key_of
from loopagent.core.facts_requests import RequestClaimed, RequestReleased
from loopagent.core.people import request_id


if TYPE_CHECKING:
    from loopagent.core.events import RequestHeld
    from loopagent.core.tx import Tx


def held(tx: Tx, event: RequestHeld) -> None:
    """Give a request to somebody, or to nobody; one that is closed by now, or stands so already, is left alone."""
    request = tx.state.pending.get(event.effect_id)
    if not isinstance(request, AskHuman | CallClientTool) or request.holder == event.holder:
        return
    tx.clock(event.at)
    was, name = request.holder, request_id(tx.state, request)
    tx.state.pending = {**tx.state.pending, request.id: replace(request, holder=event.holder)}
    fact = (
        RequestClaimed(request_id=name, holder=event.holder, by=event.by, was=was)
        if event.holder
        else RequestReleased(request_id=name, by=event.by, was=was)
    )
    tx.fact(fact, "human", key=key_of(request.id))
