"""What must come of a scenario against what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from loopagent.core.json_values import is_object
from loopagent.core.paths import look_up, parse_path
from loopagent.matching import differences, shown


if TYPE_CHECKING:
    from loopagent.ports import ModelRequest
    from loopagent.project.files import Loc
    from loopagent.scenario_spec import Expectations, PromptCheck

MAX_NEAREST: Final = 3
"""Events that are shown when none fits."""
Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Something came out otherwise than expected.

    `loc` is the place in the scenario, `details` are lines that show the difference.
    """

    loc: Loc
    message: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a run. `run` is the run as JSON, `status` also says `waiting`; `prompts` are oldest first."""

    run: dict[str, Any]
    status: str
    events: list[Event]
    prompts: list[ModelRequest]


def check(expect: Expectations, played: Played) -> list[Mismatch]:
    """Every expectation that does not hold."""
    return [one for holds in CHECKS for one in holds(expect, played)]


def _ending(expect: Expectations, played: Played) -> Iterator[Mismatch]:
    run = played.run
    if expect.status != played.status:
        yield Mismatch(
            ("expect", "status"),
            f"expected {expect.status}, got {played.status}",
            tuple(_circumstances(played)),
        )
    for key, wanted, got in (
        ("reason", expect.reason, run["reason"]),
        ("message", expect.message, run["message"]),
    ):
        if wanted is not None and (found := differences(wanted, got)):
            yield Mismatch(("expect", key), "is not as expected", tuple(found))


def _circumstances(played: Played) -> Iterator[str]:
    """Why a run ended as it did, or what it waits for."""
    if played.run["reason"]:
        yield f"reason: {played.run['reason']}"
    if played.run["message"]:
        yield f"message: {shown(played.run['message'])}"
    for event in played.events[-3:] if played.status == "failed" else ():
        yield f"event {event['seq']} {event['type']} {shown(event['data'])}"
    closed = {one["data"].get("requestId") for one in played.events if _closes(one)}
    for event in played.events if played.status == "waiting" else ():
        if _asks(event) and event["data"]["requestId"] not in closed:
            yield f"no entry in `answers` fits this request: {shown(_seen(event['data']))}"


def _asks(event: Event) -> bool:
    return event["type"] in {"request.created", "client_tool.requested"}


def _closes(event: Event) -> bool:
    return event["type"].startswith(("request.", "client_tool.")) and not _asks(event)


def _seen(data: dict[str, Any]) -> dict[str, Any]:
    return {
        key: data[key] for key in ("kind", "title", "subject", "tool", "params") if data.get(key)
    }


def _payload(expect: Expectations, played: Played) -> Iterator[Mismatch]:
    payload = played.run["payload"]
    if expect.payload is not None and (found := differences(expect.payload, payload, whole=True)):
        yield Mismatch(("expect", "payload"), "is not as expected", tuple(found))
    for text, wanted in expect.payload_at.items():
        path = parse_path(text)
        got = None if isinstance(path, str) else _look_up(payload, path)
        if found := differences(wanted, got):
            yield Mismatch(("expect", "payloadAt", text), "is not as expected", tuple(found))


def _look_up(payload: Any, path: tuple[str | int, ...]) -> Any:
    try:
        return look_up(payload, path)
    except LookupError:
        return None


def _counts(expect: Expectations, played: Played) -> Iterator[Mismatch]:
    turns = sum(one["type"] == "turn.started" for one in played.events)
    if expect.model_calls not in {None, turns}:
        yield Mismatch(("expect", "modelCalls"), f"expected {expect.model_calls}, got {turns}")
    started = Counter(
        one["data"]["action"] for one in played.events if one["type"] == "action.started"
    )
    for name, wanted in expect.calls.items():
        if started[name] != wanted:
            what = f"expected {wanted} calls, got {started[name]}"
            yield Mismatch(("expect", "calls", name), what)


def _events(expect: Expectations, played: Played) -> Iterator[Mismatch]:
    after = 0
    for index, wanted in enumerate(expect.events):
        body = as_event(wanted)
        found = _first(body, played.events, after)
        if found is None:
            last = f"after event {played.events[after - 1]['seq']}" if after else "at all"
            what = f"no event fits {shown(body)} {last}"
            nearest = tuple(_nearest(body, played.events[after:]))
            yield Mismatch(("expect", "events", index), what, nearest)
            return  # those that follow would only repeat it
        after = found + 1


def _no_events(expect: Expectations, played: Played) -> Iterator[Mismatch]:
    for index, unwanted in enumerate(expect.no_events):
        found = _first(as_event(unwanted), played.events, 0)
        if found is not None:
            event = played.events[found]
            what = f"event {event['seq']} should not have happened"
            details = (f"{event['type']} {shown(event['data'])}",)
            yield Mismatch(("expect", "noEvents", index), what, details)


def as_event(wanted: Any) -> dict[str, Any]:
    """An expected event as an object."""
    return dict(wanted) if is_object(wanted) else {"type": wanted}


def _first(body: dict[str, Any], events: list[Event], after: int) -> int | None:
    fitting = (i for i in range(after, len(events)) if not differences(body, events[i]))
    return next(fitting, None)


def _nearest(body: dict[str, Any], events: list[Event]) -> Iterator[str]:
    """Events of the same type with how they differ, the nearest ones first; else which types there were."""
    same = [(differences(body, one), one) for one in events if one["type"] == body["type"]]
    for found, event in sorted(same, key=lambda one: len(one[0]))[:MAX_NEAREST]:
        yield f"event {event['seq']} {event['type']}: {'; '.join(found)}"
    if not same:
        types = list(dict.fromkeys(one["type"] for one in events))
        yield f"what followed: {', '.join(types) or 'nothing'}"


def _requests(expect: Expectations, played: Played) -> Iterator[Mismatch]:
    if not expect.requests:
        return
    asked = [one["data"] for one in played.events if _asks(one)]
    if len(asked) != len(expect.requests):
        what = f"expected {len(expect.requests)} requests, got {len(asked)}"
        yield Mismatch(("expect", "requests"), what, tuple(shown(_seen(one)) for one in asked))
    for index, (wanted, got) in enumerate(zip(expect.requests, asked, strict=False)):
        if found := differences(wanted, got):
            yield Mismatch(("expect", "requests", index), "is not as expected", tuple(found))


def _prompts(expect: Expectations, played: Played) -> Iterator[Mismatch]:
    for index, one in enumerate(expect.prompts):
        loc = ("expect", "prompts", index)
        asked = played.prompts if one.call is None else played.prompts[one.call - 1 : one.call]
        asked = [prompt for prompt in asked if one.agent in {None, prompt.agent}]
        if asked:
            yield from _prompt(loc, one, [_text(prompt) for prompt in asked])
        else:
            calls = ", ".join(f"{at}: {p.agent}" for at, p in enumerate(played.prompts, 1))
            yield Mismatch(loc, "there was no such model call", (f"calls: {calls or 'none'}",))


def _prompt(loc: Loc, wanted: PromptCheck, texts: list[str]) -> Iterator[Mismatch]:
    for index, part in enumerate(wanted.contains):
        if not any(part in text for text in texts):
            what = f"no prompt says {shown(part)}" if len(texts) > 1 else f"misses {shown(part)}"
            yield Mismatch((*loc, "contains", index), what)
    for index, part in enumerate(wanted.excludes):
        if any(part in text for text in texts):
            yield Mismatch((*loc, "excludes", index), f"a prompt says {shown(part)}")


def _text(prompt: ModelRequest) -> str:
    return "\n".join([prompt.system, *(one.text for one in prompt.messages)])


CHECKS: Final[tuple[Callable[[Expectations, Played], Iterator[Mismatch]], ...]] = (
    _ending,
    _events,
    _no_events,
    _requests,
    _counts,
    _payload,
    _prompts,
)
