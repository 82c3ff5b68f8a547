"""What people do to a run as a whole, for `App`: pause it, resume it, raise its limits, fork it."""

from __future__ import annotations

from collections.abc import Mapping
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from loopagent.comparing import Side, compare, side
from loopagent.core.advance import advance
from loopagent.core.control import may_try_again
from loopagent.core.control_state import RAISABLE, with_raised
from loopagent.core.events import (
    ApprovalRevoked,
    Forked,
    LimitsRaised,
    PauseRequested,
    ResumeRequested,
)
from loopagent.core.limits import reached
from loopagent.core.loop_state import may_go_on
from loopagent.core.loop_view import UNATTENDED
from loopagent.core.schema_check import schema_problems
from loopagent.core.text import clean_text
from loopagent.errors import RequestError
from loopagent.intake import checked_metadata, field_errors, invalid_limits, limit_errors, plain
from loopagent.intake import message as checked_message
from loopagent.ports import Commit
from loopagent.reading import Reading
from loopagent.runtime.fold import before_turn
from loopagent.runtime.line import MAX_SHOWN
from loopagent.tree import under_way


if TYPE_CHECKING:
    from collections.abc import Callable

    from loopagent.core.agent_spec import AgentSpec
    from loopagent.core.events import Event
    from loopagent.core.state import RunState
    from loopagent.ports import Snapshot, StoredArtifact
    from loopagent.runview import RunView


class Controlling(Reading):
    """What `App` does to runs as a whole, beside reading them."""

    async def pause(self, run_id: str, *, reason: str = "", by: str = "client") -> RunView:
        """Let a run stand still, with those below it, until it is resumed; not even a restart moves it.

        What is under way ends and is kept; nothing new begins. Messages and answers are taken meanwhile.

        Raises:
            RequestError: `unknown_run` (404), `run_ended` (409).
        """

        def decide(state: RunState) -> list[Event]:
            if state.ended:
                text = f"The run has ended ({state.status}); there is nothing to pause."
                raise RequestError("run_ended", text, status=409)
            return [PauseRequested(self._clock(), clean_text(reason), clean_text(by))]

        await self._bring(run_id, decide)
        return await self.get(run_id)

    async def _bring(self, run_id: str, decide: Callable[[RunState], list[Event]]) -> None:
        """Deliver what means something only to a run that stands as it stands in the store."""
        await self.engine.refresh(run_id)
        await self.engine.bring(run_id, decide)

    async def resume(self, run_id: str, *, by: str = "client") -> RunView:
        """Let a run go on that is paused, that a failing model ended, or that another process left in the middle.

        The runs below it go on as well. Nothing happens to one that goes on anyway, or that ended for good.

        Raises:
            RequestError: `unknown_run` (404); 409: `limit_reached`, raise the limit; `parent_paused`, resume that
                run; `conversation_busy`, another run of its conversation has not ended; `no_worker`, it goes on as
                soon as somebody works on runs, and this process does not.
        """
        first = await self._load(run_id)
        await self._check_above(first.state)
        for state in await under_way(first.state, self.store.load):
            if state.ended or state.paused is not None:
                await self._go_on(state, by)
            await self.engine.resume(state.id)
        view = await self.get(run_id)
        if view.loop.reason == UNATTENDED and not self.engine.elsewhere.works:
            text = "Nobody works on runs here: start `loopagent worker`, and the run goes on by itself."
            raise RequestError("no_worker", text, status=409, retryable=True)
        return view

    async def _go_on(self, state: RunState, by: str) -> None:
        if may_go_on(state) is not None:
            await self._check_conversation(state)

        def decide(now: RunState) -> list[Event]:
            if may_go_on(now) == "limit" and not may_try_again(now):
                text = "The run reached a limit and has no room left: raise the limit to go on."
                raise RequestError("limit_reached", text, status=409)
            return [ResumeRequested(self._clock(), clean_text(by))]

        await self._bring(state.id, decide)

    async def _check_above(self, state: RunState) -> None:
        above = await self.store.load(state.parent_id) if state.parent_id else None
        if above is not None and above.state.paused is not None and state.paused is not None:
            text = f"Run {above.state.id!r} above it is paused: resume that one."
            raise RequestError("parent_paused", text, status=409)

    async def _check_conversation(self, state: RunState) -> None:
        """An ended run goes on only where no other one of its conversation does."""
        if state.conversation:
            row = await self.store.conversation(state.user, state.conversation, tenant=state.tenant)
            if row is not None and row.active:
                text = f"Run {row.active[0]!r} of this conversation has not ended; one at a time."
                raise RequestError("conversation_busy", text, status=409, retryable=True)

    async def raise_limits(
        self, run_id: str, limits: Mapping[str, Any], *, by: str = "client"
    ) -> RunView:
        """Let a run, with those below it, spend more; one that ended at a limit goes on.

        Args:
            run_id: The run.
            limits: `maxTurns`, `maxSeconds`, `maxTokens` and `maxCostUsd`, or their Python names: what is allowed in
                all from now on, None for any amount.
            by: Who raises them.

        Raises:
            RequestError: `unknown_run` (404), `run_ended` (409), `conversation_busy` (409), `invalid_limits`: not
                higher than before, or still used up.
        """
        state = (await self._load(run_id)).state
        if state.ended:
            await self._check_conversation(state)

        def decide(now: RunState) -> list[Event]:
            wanted = higher_limits(now, limits)
            return [LimitsRaised(wanted, self._clock(), clean_text(by))] if wanted else []

        await self._bring(run_id, decide)
        return await self.get(run_id)

    async def revoke_approval(self, run_id: str, approval: str, *, by: str = "client") -> RunView:
        """Ask again about a call that was approved in advance: in this run, and wherever it holds in its conversation.

        Raises:
            RequestError: `unknown_run`, `unknown_approval` (404).
        """
        state = (await self._load(run_id)).state
        kept = next((one for one in state.remembered if one.id == approval), None)
        if kept is None:
            text = f"The run remembers no approval {approval!r}."
            raise RequestError("unknown_approval", text, status=404)
        others = await self._talk(state) if kept.scope == "session" else ()
        for one in dict.fromkeys((run_id, *others)):
            await self._bring(
                one, lambda _: [ApprovalRevoked(approval, self._clock(), clean_text(by))]
            )
        return await self.get(run_id)

    async def _talk(self, state: RunState) -> list[str]:
        """Ids of the runs of a conversation, of those that said something lately."""
        row = await self.store.conversation(state.user, state.conversation, tenant=state.tenant)
        if row is None:
            return []
        first = max(1, row.last - MAX_SHOWN + 1)
        said = await self.store.said(row.user, row.id, tenant=row.tenant, first=first)
        ids = dict.fromkeys([*(one.run_id for one in said), *row.active])
        return [one for one in ids if await self.store.load(one) is not None]

    async def fork(
        self,
        run_id: str,
        *,
        turn: int | None = None,
        message: str | None = None,
        payload: Any = None,
        limits: Mapping[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        by: str = "client",
    ) -> RunView:
        """Start a copy of a run as it was before one of its turns; the run itself is not changed.

        The copy is a run without parent and conversation. It has the transcript, events, artifacts and counts of the
        original up to there, and no open sub-agents. An approved plan stays approved unless the copy is given a
        message or another payload.

        Args:
            run_id: The run, ended or not.
            turn: The turn that is taken anew; None for the last one.
            message: What is said to the copy before that.
            payload: Working data that it has instead; None leaves it as it was.
            limits: Limits that it has instead, as for `raise_limits`, higher or lower.
            metadata: Anything JSON to find the copy by.
            by: Who forks it.

        Raises:
            RequestError: `unknown_run`, `unknown_turn` (404), `not_forkable` (409), `log_gone` (410),
                `invalid_message`, `invalid_payload`, `invalid_limits`, `invalid_metadata`.
        """
        source = (await self._load(run_id)).state
        about = checked_metadata(metadata, source.spec.limits)
        new_id = f"run_{token_hex(8)}"
        event = Forked(
            run_id=run_id,
            turn=source.turn if turn is None else turn,
            at=self._clock(),
            by=clean_text(by),
            message="" if message is None else checked_message(message, source.spec),
            payload=None if payload is None else _payload(source.spec, payload),
            new_payload=payload is not None,
            limits=_fields(source.spec, limits or {}),
        )
        await self.need_log(run_id)
        entries = await self.store.log(run_id)
        copy, history = before_turn(source, entries, event.turn, new_id)
        new = advance(copy, event)
        commit = Commit(
            new.state,
            len(history),
            event.at,
            (event,),
            new.facts,
            new.messages,
            artifacts=await self._artifacts(source, new.state),
            history=history,
        )
        await self.engine.adopt(commit, about)
        return await self.get(new_id)

    async def compare(self, run_id: str, other_id: str) -> dict[str, Any]:
        """Two runs side by side, turn by turn; see `loopagent.comparing.compare`.

        Raises:
            RequestError: `unknown_run` (404), `log_gone` (410).
        """
        sides: list[Side] = []
        for one in (run_id, other_id):
            state = (await self._load(one)).state
            await self.need_log(one)
            sides.append(side(state, await self.store.log(one)))
        return compare(*sides)

    async def _artifacts(self, source: RunState, copy: RunState) -> tuple[StoredArtifact, ...]:
        """What the copy knows of the artifacts of the original, each once."""
        known = dict.fromkeys(one.artifact_id for one in copy.artifacts)
        found = [await self.store.artifact(source.id, one) for one in known]
        return tuple(one for one in found if one is not None)

    async def _load(self, run_id: str) -> Snapshot:
        snapshot = await self.store.load(run_id)
        if snapshot is None:
            raise RequestError("unknown_run", f"There is no run {run_id!r}.", status=404)
        return snapshot


def higher_limits(state: RunState, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Limits that may be raised, by the fields of `Limits`, without those that are so already.

    Raises:
        RequestError: `run_ended` (409), `invalid_limits`.
    """
    if state.ended and may_go_on(state) != "limit":
        text = f"The run has ended ({state.status}), but at no limit; fork it or start a new one."
        raise RequestError("run_ended", text, status=409)
    fields = _fields(state.spec, wanted)
    if not fields:
        raise invalid_limits([{"pointer": "", "detail": f"one of {', '.join(RAISABLE)} is needed"}])
    before = {name: getattr(state.spec.limits, name) for name in fields}
    lower = [name for name, value in fields.items() if _lower(value, before[name])]
    if lower:
        raise invalid_limits(
            [
                {
                    "pointer": f"/{wire}",
                    "detail": f"must be more than it is: {_shown(before[name])}",
                }
                for wire, name in RAISABLE.items()
                if name in lower
            ]
        )
    raised = state.fork()
    raised.spec = with_raised(state.spec, fields)
    still = reached(raised, turn=True) if state.ended else None
    if still is not None:
        text = f"{still.value:g} is used already, of {still.maximum:g}: more is needed to go on"
        raise invalid_limits([{"pointer": f"/{still.limit}", "detail": text}])
    return {name: value for name, value in fields.items() if value != before[name]}


def _shown(limit: float | None) -> str:
    return "no limit" if limit is None else f"{limit:g}"


def _lower(value: float | None, before: float | None) -> bool:
    """Whether a limit would be lower than before; None is no limit."""
    return value is not None and (before is None or value < before)


def _fields(spec: AgentSpec, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Wanted limits by the fields of `Limits`, checked.

    Raises:
        RequestError: `invalid_limits`.
    """
    fields = {RAISABLE.get(name, name): value for name, value in wanted.items()}
    unknown = sorted(fields.keys() - set(RAISABLE.values()))
    if unknown:
        known = ", ".join(RAISABLE)
        raise invalid_limits(
            [{"pointer": f"/{one}", "detail": f"must be one of {known}"} for one in unknown]
        )
    try:
        checked = spec.limits.model_validate({**spec.limits.model_dump(), **fields})
    except ValidationError as error:
        raise invalid_limits(limit_errors(error)) from error
    return {name: getattr(checked, name) for name in fields}


def _payload(spec: AgentSpec, given: Any) -> Any:
    """Working data for a copy, as plain JSON that fits the schema of its agent.

    Raises:
        RequestError: `invalid_payload`.
    """
    payload = plain("payload", given, "invalid_payload", max_bytes=spec.limits.max_payload_bytes)
    schema = {key: one for key, one in (spec.payload.schema_ or {}).items() if key != "required"}
    problems = schema_problems(schema, payload, "payload") if schema else []
    if problems:
        text = "The payload does not fit the agent's schema."
        raise RequestError("invalid_payload", text, errors=field_errors(problems))
    return payload
