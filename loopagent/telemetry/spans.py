"""Runs as traces: what the public facts and the work on effects tell, as spans of OpenTelemetry.

```text
invoke_agent {agent}        a run, for as long as it is worked on without a break
└─ turn {number}
   ├─ chat {model}          one attempt at a model call
   ├─ execute_tool {action}
   └─ invoke_agent {agent}  the run of a sub-agent
```

Nothing is held open while a run waits for a person: its spans end then, and the run goes on in a trace of its own that
links to the one it began in, which the run remembers. So it makes no difference which process goes on, and when.

Only names, numbers and ids are told. Prompts, replies, parameters and results are told if that was asked for, and then
without secrets.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import context as contexts
from opentelemetry.trace import (
    Link,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from loopagent.core.effects import RunAction, SetTimer, StartRun
from loopagent.telemetry import names


if TYPE_CHECKING:
    from opentelemetry.context import Context

    from loopagent.core.effects import Effect
    from loopagent.core.outcome import Outcome
    from loopagent.core.state import RunState
    from loopagent.ports import Commit

_W3C: Final = TraceContextTextMapPropagator()
_HEADER: Final = "traceparent"
MAX_CONTENT_CHARS: Final = 100_000
"""Length up to which one content attribute is told."""


@dataclass(slots=True)
class _Period:
    """The open spans of a run that is worked on."""

    run: Span
    turn: Span | None = None


class Tracing:
    """Makes spans of what happens to runs.

    Args:
        tracer: Makes spans.
        mask: Takes secrets out of content; None leaves content out.
    """

    def __init__(self, tracer: Tracer, mask: Callable[[str], str] | None = None) -> None:
        self.tracer = tracer
        self._mask = mask
        self._periods: dict[str, _Period] = {}

    # ------------------------------------------------------------------ runs

    def begin(self, state: RunState) -> str:
        """Open the span of a run that is about to be created, below whatever is going on.

        Returns:
            Where the trace stands, as `traceparent`; the run remembers it.
        """
        period = self._open(state, None, ())
        carrier: dict[str, str] = {}
        _W3C.inject(carrier, set_span_in_context(period.run))
        return carrier.get(_HEADER, "")

    def abandon(self, run_id: str) -> None:
        """Close the spans of a run that was not created, or that this process lets go of."""
        period = self._periods.pop(run_id, None)
        if period is not None:
            _close(period)

    def close(self) -> None:
        """Close all spans: the process stops, the runs go on in another."""
        for run_id in list(self._periods):
            self.abandon(run_id)

    def committed(self, commit: Commit) -> None:
        """Tell what a commit says that happened."""
        told = [(_FACTS[one.type], one) for one in commit.facts if one.type in _FACTS]
        if not told:
            return
        state = commit.state
        period = self._periods.get(state.id) or self._resume(state, fresh=commit.version == 0)
        for tell, fact in told:
            if not tell(self, period, state, fact.data):
                self.abandon(state.id)

    def _resume(self, state: RunState, *, fresh: bool) -> _Period:
        """Open the span of a run that nobody here worked on: a child's below its parent's, else with a link."""
        parent = self._periods.get(state.parent_id or "")
        if parent is not None:
            return self._open(state, set_span_in_context(parent.turn or parent.run), ())
        earlier = _context_of(state.trace)
        links = () if earlier is None else (Link(earlier, {"loopagent.link": "earlier"}),)
        period = self._open(state, contexts.Context(), links)
        if not fresh:
            period.run.add_event(names.RESUMED)
        return period

    def _open(self, state: RunState, parent: Context | None, links: tuple[Link, ...]) -> _Period:
        about = {
            names.OPERATION_NAME: names.INVOKE_AGENT,
            names.AGENT_NAME: state.spec.name,
            names.RUN_ID: state.id,
            names.ROOT_RUN_ID: state.root_id or state.id,
        }
        if state.conversation:
            about[names.CONVERSATION_ID] = state.conversation
        if state.origin is not None:
            about[names.TRIGGER_NAME] = state.origin.trigger
        name = f"{names.INVOKE_AGENT} {state.spec.name}"
        run = self.tracer.start_span(name, parent, SpanKind.INTERNAL, about, links=links)
        period = self._periods[state.id] = _Period(run)
        return period

    def turn_span(self, period: _Period, state: RunState) -> Span:
        """The span of the turn, opened unless it is open."""
        if period.turn is None:
            about: dict[str, str | int] = {names.TURN_NUMBER: state.turn, names.RUN_ID: state.id}
            parent = set_span_in_context(period.run)
            name = f"{names.TURN} {state.turn}"
            period.turn = self.tracer.start_span(name, parent, attributes=about)
        return period.turn

    # ------------------------------------------------------------------ effects

    @contextmanager
    def effect(self, state: RunState, effect: Effect) -> Iterator[Span | None]:
        """Stand in the trace of a run while an effect is performed; a call of an action has a span of its own."""
        if isinstance(effect, SetTimer | StartRun):
            yield None
            return
        period = self._periods.get(state.id) or self._resume(state, fresh=False)
        around = set_span_in_context(self.turn_span(period, state), contexts.get_current())
        if not isinstance(effect, RunAction):
            with standing(around):
                yield None
            return
        span = self._tool(state, effect, around)
        try:
            with standing(set_span_in_context(span, around)):
                yield span
        finally:
            span.end()

    def _tool(self, state: RunState, effect: RunAction, around: Context) -> Span:
        about: dict[str, str | int] = {
            names.OPERATION_NAME: names.EXECUTE_TOOL,
            names.TOOL_NAME: effect.action,
            names.TOOL_TYPE: "function",
            names.TOOL_CALL_ID: effect.id,
            names.AGENT_NAME: state.spec.name,
            names.RUN_ID: state.id,
            names.TURN_NUMBER: state.turn,
        }
        name = f"{names.EXECUTE_TOOL} {effect.action}"
        span = self.tracer.start_span(name, around, SpanKind.INTERNAL, about)
        self.content(span, names.TOOL_CALL_ARGUMENTS, effect.params)
        return span

    def performed(self, span: Span | None, outcome: Outcome) -> None:
        """Tell how a call of an action ended."""
        if span is None:
            return
        if outcome.error is not None:
            fail(span, outcome.error.code)
        self.content(span, names.TOOL_CALL_RESULT, outcome.value)

    # ------------------------------------------------------------------ content

    @property
    def with_content(self) -> bool:
        """Whether content is told."""
        return self._mask is not None

    def content(self, span: Span, name: str, value: Any) -> None:
        """Tell content, if that was asked for, without secrets."""
        if self._mask is not None and span.is_recording():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            span.set_attribute(name, self._mask(text)[:MAX_CONTENT_CHARS])


def fail(span: Span, kind: str) -> None:
    """Mark a span as failed; the kind is a stable word, never a message."""
    span.set_attribute(names.ERROR_TYPE, kind)
    span.set_status(Status(StatusCode.ERROR))


def arriving(headers: dict[str, str]) -> Context | None:
    """The trace that a call over HTTP comes with, unless one is recorded already; names in lower case."""
    if get_current_span().get_span_context().is_valid or _HEADER not in headers:
        return None
    return _W3C.extract(headers)


@contextmanager
def standing(place: Context) -> Iterator[None]:
    """Be in a place of a trace for a while."""
    token = contexts.attach(place)
    try:
        yield
    finally:
        contexts.detach(token)


def _context_of(traceparent: str) -> SpanContext | None:
    if not traceparent:
        return None
    found = get_current_span(_W3C.extract({_HEADER: traceparent}, contexts.Context()))
    return found.get_span_context() if found.get_span_context().is_valid else None


def _close(period: _Period) -> None:
    if period.turn is not None:
        period.turn.end()
    period.run.end()


# ---------------------------------------------------------------------- facts
# Each returns whether the run goes on here.

_Tell = Callable[[Tracing, _Period, "RunState", dict[str, Any]], bool]


def _begun(tracing: Tracing, period: _Period, state: RunState, data: dict[str, Any]) -> bool:
    del tracing, period, state, data
    return True


def _turn_started(tracing: Tracing, period: _Period, state: RunState, data: dict[str, Any]) -> bool:
    del data
    tracing.turn_span(period, state)
    return True


def _turn_ended(tracing: Tracing, period: _Period, state: RunState, data: dict[str, Any]) -> bool:
    del tracing, state
    if period.turn is not None:
        period.turn.set_attribute(names.TURN_OUTCOME, data["outcome"])
        period.turn.end()
        period.turn = None
    return True


def _reply(tracing: Tracing, period: _Period, state: RunState, data: dict[str, Any]) -> bool:
    tracing.turn_span(period, state).set_attribute(names.STEP_TYPE, data["type"])
    return True


def _event(name: str, *keys: str) -> _Tell:
    """An event on the innermost span, with words and numbers of the fact."""

    def tell(tracing: Tracing, period: _Period, state: RunState, data: dict[str, Any]) -> bool:
        del tracing, state
        about = {f"loopagent.{key}": data[key] for key in keys if data.get(key) is not None}
        (period.turn or period.run).add_event(name, about)
        return True

    return tell


def _waits(tracing: Tracing, period: _Period, state: RunState, data: dict[str, Any]) -> bool:
    del tracing, state
    period.run.add_event(names.WAITING, {"loopagent.requests": data["requests"]})
    return False


def _ends(tracing: Tracing, period: _Period, state: RunState, data: dict[str, Any]) -> bool:
    del tracing
    period.run.set_attribute(names.RUN_STATUS, state.status)
    if state.status == "failed":
        fail(period.run, data["reason"])
    return False


_FACTS: Final[dict[str, _Tell]] = {
    "run.created": _begun,
    "turn.started": _turn_started,
    "turn.ended": _turn_ended,
    "reply.received": _reply,
    "reply.rejected": _event(names.REPLY_REJECTED),
    "model.retry": _event(names.MODEL_RETRY, "attempt", "kind", "delayMs", "model", "nextModel"),
    "request.created": _event(names.REQUEST_CREATED, "requestId", "kind"),
    "request.resolved": _event(names.REQUEST_RESOLVED, "requestId", "decision"),
    "run.waiting": _waits,
    "run.completed": _ends,
    "run.failed": _ends,
    "run.cancelled": _ends,
}
