"""What becomes of an event: values in, values out; nothing is read or written here.

Source: decision seat A6. In this order: an event id that is known already, `match` and `filter`, the dedupe window,
the cooldown, the task that the templates make, the debounce, and how many runs may go on.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter

from loopagent.core.expression import Failure, parse
from loopagent.core.hashing import json_hash
from loopagent.core.json_values import compact_json
from loopagent.core.strict import same
from loopagent.core.template import fill
from loopagent.core.text import clean_json
from loopagent.trigger_port import Delivery, DeliveryStatus
from loopagent.triggers.incoming import at_path


if TYPE_CHECKING:
    from collections.abc import Mapping

    from loopagent.triggers.incoming import Event
    from loopagent.triggers.spec import TriggerSpec

START_SECONDS: Final = 10.0
"""How long whoever starts a run has the start to itself; after that others take it up."""
MAX_STARTS: Final = 5
"""How often a start is tried that fails for a reason that may pass."""
LOOK_SECONDS: Final = 1.0
"""How often it is looked whether runs have ended while events wait for that."""
MAX_REASON_CHARS: Final = 500


@dataclass(frozen=True, slots=True)
class Held:
    """An event that waits for quiet. Times are in seconds since the epoch."""

    delivery: str
    due: float
    since: float


@dataclass(frozen=True, slots=True)
class Start:
    """A run that is being made; `until` is when somebody else takes that up."""

    until: float
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class TriggerState:
    """All that is remembered of a trigger from one event to the next; it is stored as JSON."""

    plan: str = ""
    """What `next_at` was computed from."""
    next_at: float | None = None
    """The next moment of the schedule."""
    fired_at: float | None = None
    """When it last fired."""
    held: dict[str, Held] = field(default_factory=dict[str, Held])
    """Events that wait for quiet, by what makes them take each other's place."""
    line: tuple[str, ...] = ()
    """Deliveries that wait for a run to end, the oldest first."""
    starting: dict[str, Start] = field(default_factory=dict[str, Start])
    """Deliveries whose runs are being made."""
    active: tuple[str, ...] = ()
    """Runs that go on, the oldest first; only kept where their number is limited."""

    def due(self, now: float, *, enabled: bool = True) -> float | None:
        """When there is something to do; None for never."""
        times = [one.due for one in self.held.values()]
        times += [one.until for one in self.starting.values()]
        times += [now + LOOK_SECONDS] if self.line else []
        times += [self.next_at] if self.next_at is not None and enabled else []
        return min(times, default=None)


_STATE: Final = TypeAdapter(TriggerState)


def state_of(body: dict[str, Any] | None) -> TriggerState:
    """The state that a store keeps; a new one for None."""
    return TriggerState() if body is None else _STATE.validate_python(body)


def body_of(state: TriggerState) -> dict[str, Any]:
    """The state as a store keeps it."""
    body: dict[str, Any] = _STATE.dump_python(state, mode="json")
    return body


@dataclass(slots=True)
class Changes:
    """What follows from what happened.

    Args:
        state: The trigger's new state.
        put: New deliveries.
        mark: Deliveries, also new ones, that get another status, with the reason.
        start: Deliveries whose runs are to be made.
        cancel: Runs that are to be cancelled.
    """

    state: TriggerState
    put: tuple[Delivery, ...] = ()
    mark: dict[str, tuple[DeliveryStatus, str]] = field(
        default_factory=dict[str, "tuple[DeliveryStatus, str]"]
    )
    start: list[str] = field(default_factory=list[str])
    cancel: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class Task:
    """What an event asks for, or why it asks for nothing."""

    run: dict[str, Any] | None = None
    """`message`, `payload`, `conversation` and `metadata` of the run."""
    dedupe: str = ""
    debounce: str = ""
    refused: tuple[DeliveryStatus, str] | None = None


# ---------------------------------------------------------------------- what an event asks for


def task_of(spec: TriggerSpec, event: Event) -> Task:
    """Whether an event passes the filters, and the run that it asks for."""
    if not spec.enabled and event.source != "manual":
        return Task(refused=("filtered", "the trigger is not enabled"))
    if refused := _unmatched(spec, event.scope):
        return Task(refused=refused)
    wanted = {
        "message": spec.message,
        "payload": spec.payload,
        "conversation": spec.conversation,
        "metadata": spec.metadata,
    }
    keys = {"dedupeKey": spec.dedupe_key or "", "debounceKey": spec.debounce_key}
    filled = fill({**wanted, **keys}, event.scope, where="trigger")
    if filled.problems:
        said = "; ".join(f"{one.path}: {one.message}" for one in filled.problems)
        return Task(refused=("failed", said[:MAX_REASON_CHARS]))
    values = clean_json(filled.value)
    run = {name: values[name] for name in wanted}
    run["message"], run["conversation"] = _text(run["message"]), _text(run["conversation"])
    given = {"trigger": spec.name, "eventId": event.id}
    run["metadata"] = {**run["metadata"], **given}
    same: Any = [run["message"], run["payload"]] if spec.dedupe_key is None else values["dedupeKey"]
    dedupe = json_hash(same) if spec.dedupe_window_seconds else ""
    return Task(run, dedupe, json_hash(values["debounceKey"]))


def _text(value: Any) -> str:
    """What a template made, as text: a template that is one expression makes a value of any type."""
    if value is None:
        return ""
    return value if isinstance(value, str) else compact_json(value)


def _unmatched(spec: TriggerSpec, scope: Mapping[str, Any]) -> tuple[DeliveryStatus, str] | None:
    """Why an event does not pass `match` and `filter`; None when it does."""
    for path, wanted in spec.match.items():
        accepted = wanted if isinstance(wanted, list) else [wanted]
        found = at_path(path, scope)
        if accepted and not any(same(found, one) for one in accepted):
            return "filtered", f"match: {path} is none of what is wanted"
    if spec.filter is None:
        return None
    condition = parse(spec.filter)
    held = condition if isinstance(condition, Failure) else condition.holds(scope)
    if isinstance(held, Failure):
        return "failed", f"filter: {held}"[:MAX_REASON_CHARS]
    return None if held else ("filtered", "filter: the condition does not hold")


# ---------------------------------------------------------------------- what becomes of it


@dataclass(frozen=True, slots=True)
class Arrival:
    """An event that has come, with all that is needed to decide on it.

    Args:
        event: The event.
        task: What it asks for, from `task_of`.
        delivery_id: Id of its delivery.
        same: An accepted delivery of the same event.
        like: An accepted delivery of the same task within the dedupe window.
    """

    event: Event
    task: Task
    delivery_id: str
    same: Delivery | None = None
    like: Delivery | None = None


def receive(spec: TriggerSpec, state: TriggerState, arrival: Arrival) -> Changes:
    """Decide on an event that just came.

    Args:
        spec: The trigger.
        state: Its state.
        arrival: What came.
    """
    event, task = arrival.event, arrival.task
    delivery = Delivery(
        id=arrival.delivery_id,
        trigger=spec.name,
        event_id=event.id,
        source=event.source,
        at=event.at,
        updated_at=event.at,
        status="starting",
        bytes=event.bytes,
        dedupe=task.dedupe,
        task=task.run,
    )
    changes = Changes(state, (delivery,))
    refused = _refused(spec, state, arrival)
    if refused is not None:
        run_id = arrival.same.run_id if arrival.same is not None else ""
        changes.put = (replace(delivery, run_id=run_id),)
        changes.mark[delivery.id] = refused
        return changes
    if spec.debounce_seconds and event.source != "manual":
        _hold(spec, changes, delivery, task.debounce)
    else:
        _admit(spec, changes, delivery.id, event.at)
    return changes


def _refused(
    spec: TriggerSpec, state: TriggerState, arrival: Arrival
) -> tuple[DeliveryStatus, str] | None:
    event, like = arrival.event, arrival.like
    if arrival.same is not None:
        return "duplicate", f"event {event.id} is known from delivery {arrival.same.id}"
    if arrival.task.refused is not None:
        return arrival.task.refused
    if like is not None:
        window = f"{spec.dedupe_window_seconds:g} seconds"
        return "duplicate", f"delivery {like.id} within {window} is the same"
    return None if event.source == "manual" else _cooling(spec, state, event.at)


def _cooling(
    spec: TriggerSpec, state: TriggerState, now: float
) -> tuple[DeliveryStatus, str] | None:
    fired = state.fired_at
    if not spec.cooldown_seconds or fired is None or now - fired >= spec.cooldown_seconds:
        return None
    left = spec.cooldown_seconds - (now - fired)
    return "cooldown", f"it fired {now - fired:.0f} seconds ago, cooldown goes on for {left:.0f}"


def _hold(spec: TriggerSpec, changes: Changes, delivery: Delivery, key: str) -> None:
    """Wait for quiet; the last event takes the place of the one before."""
    state, now = changes.state, delivery.at
    before = state.held.get(key)
    if before is None and len(state.held) >= spec.max_waiting:
        changes.mark[delivery.id] = "busy", f"{spec.max_waiting} events wait already"
        return
    since = before.since if before is not None else now
    due = now + spec.debounce_seconds
    if spec.debounce_max_seconds is not None:
        due = min(due, since + spec.debounce_max_seconds)
    if before is not None:
        changes.mark[before.delivery] = "superseded", f"delivery {delivery.id} came after it"
    changes.mark[delivery.id] = "held", ""
    held = {**state.held, key: Held(delivery.id, max(due, now), since)}
    changes.state = replace(state, held=held)


def _admit(spec: TriggerSpec, changes: Changes, delivery_id: str, now: float) -> None:
    """Start a run, or do as `onBusy` says when as many go on as may."""
    state = changes.state
    if _has_room(spec, state) and not state.line:
        _begin(changes, delivery_id, now)
    elif spec.on_busy == "interrupt" and state.active:
        changes.cancel.append(state.active[0])
        changes.state = replace(state, active=state.active[1:])
        _begin(changes, delivery_id, now)
    elif spec.on_busy == "reject":
        changes.mark[delivery_id] = "busy", f"{_going(state)} of its runs go on"
    elif len(state.line) >= spec.max_waiting:
        changes.mark[delivery_id] = "busy", f"{spec.max_waiting} events wait already"
    else:
        changes.mark[delivery_id] = "waiting", f"{_going(state)} of its runs go on"
        changes.state = replace(state, line=(*state.line, delivery_id))


def _going(state: TriggerState) -> int:
    return len(state.active) + len(state.starting)


def _begin(changes: Changes, delivery_id: str, now: float) -> None:
    state = changes.state
    starting = {**state.starting, delivery_id: Start(now + START_SECONDS)}
    changes.state = replace(state, starting=starting, fired_at=now)
    changes.mark[delivery_id] = "starting", ""
    changes.start.append(delivery_id)


# ---------------------------------------------------------------------- what time brings


def look(spec: TriggerSpec, changes: Changes, now: float) -> None:
    """Decide on what has been waiting: for quiet, for a run to end, for somebody to make its run.

    Args:
        spec: The trigger.
        changes: What follows so far; more is added.
        now: Seconds since the epoch.
    """
    for key, held in _quiet(changes.state, now):
        rest = {name: one for name, one in changes.state.held.items() if name != key}
        changes.state = replace(changes.state, held=rest)
        cooling = _cooling(spec, changes.state, now)
        if cooling is not None:
            changes.mark[held.delivery] = cooling
        else:
            _admit(spec, changes, held.delivery, now)
    while changes.state.line and _has_room(spec, changes.state):
        first, *rest_in_line = changes.state.line
        changes.state = replace(changes.state, line=tuple(rest_in_line))
        _begin(changes, first, now)
    _take_up(changes, now)


def _quiet(state: TriggerState, now: float) -> list[tuple[str, Held]]:
    due = [(key, one) for key, one in state.held.items() if one.due <= now]
    return sorted(due, key=lambda one: one[1].due)


def _has_room(spec: TriggerSpec, state: TriggerState) -> bool:
    return spec.max_concurrent is None or _going(state) < spec.max_concurrent


def _take_up(changes: Changes, now: float) -> None:
    """Make the runs that whoever was to make them has not made."""
    state = changes.state
    late = {key: one for key, one in state.starting.items() if one.until <= now}
    given_up = [key for key, one in late.items() if one.attempts >= MAX_STARTS]
    again = {
        key: Start(now + START_SECONDS, one.attempts + 1)
        for key, one in late.items()
        if key not in given_up
    }
    rest = {key: one for key, one in state.starting.items() if key not in given_up}
    changes.state = replace(state, starting={**rest, **again})
    changes.start += again
    for key in given_up:
        changes.mark[key] = "failed", f"its run could not be made in {MAX_STARTS} attempts"


def started(spec: TriggerSpec, state: TriggerState, delivery_id: str, run_id: str) -> TriggerState:
    """The state when a run has been made; with an empty id, when none can be."""
    if delivery_id not in state.starting:
        return state
    rest = {key: one for key, one in state.starting.items() if key != delivery_id}
    counts = bool(run_id) and spec.max_concurrent is not None and run_id not in state.active
    return replace(state, starting=rest, active=(*state.active, run_id) if counts else state.active)
