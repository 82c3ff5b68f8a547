"""Who takes care of a request, as the core sees it."""

from __future__ import annotations

from loopagent.core.events import RequestHeld
from tests.core.play import Play, act


def hold(play: Play, effect_id: str, holder: str) -> Play:
    """Give a request to somebody, a second later."""
    play.at += 1
    return play.give(RequestHeld(effect_id, holder, play.at, by="boss"))


def test_a_holder_is_a_mark_on_the_request_and_ends_with_it() -> None:
    play = Play().reply(act(("mail", {"item": 1})))
    (ask,) = play.state.asks
    before = list(play.types)
    hold(play, ask.id, "ann")
    hold(play, ask.id, "ann")  # stands so already
    hold(play, ask.id, "bob")
    hold(play, ask.id, "")
    hold(play, "9:nothing", "ann")  # closed by now, or never there
    hold(play, ask.id, "eve")
    (held,) = play.state.asks
    assert (held.holder, held.content_hash) == ("eve", ask.content_hash)
    told = [(one.type, one.data.get("holder"), one.data.get("was")) for one in play.facts]
    assert told[len(before) :] == [
        ("request.claimed", "ann", ""),
        ("request.claimed", "bob", "ann"),
        ("request.released", None, "bob"),
        ("request.claimed", "eve", ""),
    ]
    assert all(one.decided_by == "human" for one in play.facts[len(before) :])
    play.answer("approve")
    assert not play.state.asks
