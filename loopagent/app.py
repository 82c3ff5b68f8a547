"""The six verbs: start, answer, post and cancel change a run; get and events read it.

HTTP and the command line use nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Literal, get_args

from loopagent.access import OPERATOR, Caller
from loopagent.attachments import Attachment, checked_attachments
from loopagent.clients import ToolAnswer, answer_call, with_client_tools
from loopagent.conversations import OnBusy
from loopagent.core.client_tool_spec import ClientToolSpec
from loopagent.core.effects import AskHuman
from loopagent.core.events import CancelRequested, Delivery, Event, MessagePosted
from loopagent.core.origin import Origin
from loopagent.core.plan_state import Mode
from loopagent.core.state import RunState
from loopagent.core.text import clean_text
from loopagent.errors import RequestError
from loopagent.hooks import with_hooks
from loopagent.hosting import Hosting
from loopagent.inbox import check_holder
from loopagent.intake import (
    answer_of,
    check_choice,
    check_open,
    checked_metadata,
    choose_model,
    mode_change,
    new_run,
    settled,
    usable_model,
    with_limits,
    with_plan_mode,
)
from loopagent.intake import message as checked_message
from loopagent.intake import payload as checked_payload
from loopagent.runview import RunView


class App(Hosting):
    """Agents, a store and the engine that runs them.

    Args:
        agents: The agents that may be run.
        store: A store, or its URL: `sqlite:///runs.db`, `memory://`.
        model: `provider:model` for agents that name none; default: the environment's `LOOPAGENT_MODEL`.
        env: Where keys and defaults come from; default: the process environment.
        base_dir: What relative paths in model names are relative to.
        retry: How failed model calls are repeated.
        structured: When models are held to the schema of a reply; default: `LOOPAGENT_STRUCTURED`, else `auto`.
        secrets: Environment variables, beside the well-known ones, whose values are masked wherever they turn up.
        retention: How long ended runs and their logs are kept; default: for ever.
        hooks: Functions that are asked around the runs of every agent, see `loopagent.hooks`.
        secret_values: Further values that are masked.
        embedder: Finds notes by meaning too: a model such as `openai:NAME`, or a function; see `runtime.similar`.
        actions: Actions to list beside those of the agents.
        clock: Seconds since the epoch; tests give their own.
        recover: Whether to take up runs that an earlier process left in the middle, and to do what triggers are due.
        work: Whether to work on runs; if not, they are left to other processes that share the store.
        max_runs: Runs that are worked on at the same time at most; the others wait, for this process or another. Who
            waits to ask an overloaded model again takes nobody's place.
        lease_seconds: How long after the death of this process others wait before they take up its runs.
        grace_seconds: How long calls under way may go on when the app is closed.
        triggers: What starts runs by itself: schedules and webhooks.
        notifications: Who is told when a request opens or a run ends.
        egress: Where addresses may lead that clients name for notifications.
        means: What actions that are built in the page may use: egress, secrets, MCP servers; see `actions.means`.
        library: How many of them there may be, and how large.
        telemetry: What is told of runs; default: traces and metrics, if OpenTelemetry was set up before, else nothing.
    """

    async def start(
        self,
        agent: str,
        message: str,
        *,
        payload: Any = None,
        model: str | None = None,
        metadata: dict[str, Any] | None = None,
        limits: dict[str, Any] | None = None,
        client_tools: Iterable[ClientToolSpec | Mapping[str, Any] | str] | None = None,
        client: str = "",
        plan_mode: bool | None = None,
        conversation: str | None = None,
        user: str = "",
        tenant: str = "",
        on_busy: OnBusy = "reject",
        attachments: Iterable[Attachment] = (),
        by: str = "client",
        origin: Origin | None = None,
        webhook: str | None = None,
    ) -> RunView:
        """Start a run.

        Args:
            agent: Name of the agent.
            message: The task.
            payload: Working data to start with; None takes the agent's initial payload.
            model: Another model than the agent's, if the agent allows that.
            metadata: Anything JSON to find the run by; never shown to a model.
            limits: Limits that replace the agent's, by their camelCase or Python name.
            client_tools: Tools that the client of this run carries out, beside the agent's.
            client: Fingerprint of the client that alone may answer them, see `clients.fingerprint`; empty for any.
            plan_mode: Whether a person must approve a plan before anything changes; None as the agent says.
            conversation: Id of the user's conversation to continue, or to begin.
            user: Who the run is for; users never see anything of each other.
            tenant: The organisation of that user; users of different ones are never the same.
            on_busy: What to do when a run of the conversation has not ended, see `Conversations.begin`.
            attachments: Files that the model can look into.
            by: Who starts it.
            origin: The trigger that starts it, and its event; the run's id follows from them.
            webhook: Address that is called when a request opens or the run ends, see `loopagent.notifications`.

        Raises:
            ConflictError: The run of this event exists.
            RequestError: `unknown_agent`, `invalid_message`, `invalid_payload`, `no_model`, `model_override`,
                `invalid_limits`, `invalid_client_tools`, `plan_mode`, `invalid_on_busy`, `invalid_conversation`,
                `invalid_user`, `invalid_metadata`, `conversation_busy` (409), `invalid_attachments`,
                `attachments_too_large`, `invalid_webhook`.
        """
        known = self._registry.agent(agent)
        offered = await self.offered(known.spec, tenant)
        spec = with_plan_mode(with_limits(offered, limits), plan_mode)
        spec = with_hooks(with_client_tools(spec, client_tools, client), self._registry.hooks)
        name = choose_model(spec, model, self._default_model, known.model_object)
        answers = usable_model(name, self._performer.models.open)
        data = checked_payload(known, payload, spec.limits.max_payload_bytes)
        whose = {
            "user": user,
            "tenant": tenant,
            "conversation": conversation or "",
            "client": client,
            "notify": self.notifications.hearers(agent, webhook),
        }
        state = new_run(spec, answers, data, whose, origin)
        task, given = checked_message(message, spec), checked_attachments(attachments, spec.limits)
        about = checked_metadata(metadata, spec.limits)
        begin = self.conversations.begin
        with self.telemetry.starting(state):
            await begin(state, task, by=by, metadata=about, on_busy=on_busy, given=given)
        return await self.get(state.id)

    async def answer(
        self,
        request: str,
        *,
        decision: str,
        values: dict[str, Any] | None = None,
        edited: Any = None,
        feedback: str = "",
        revision: int | None = None,
        content_hash: str | None = None,
        remember: Literal["", "run", "session"] = "",
        by: str = "client",
        who: Caller = OPERATOR,
        unless_held: bool = False,
    ) -> RunView:
        """Answer a request; the first answer wins.

        Args:
            request: Id of the request.
            decision: `approve`, `reject`, `answer` or `terminate`, as the request allows.
            values: Form values by question id.
            edited: Parameters to run, or the plan to follow, instead of what was shown.
            feedback: Text for the model.
            revision: Revision that was seen; a stale one is refused.
            content_hash: Content hash that was seen; a stale one is refused.
            remember: With `approve`: whether the very same call needs no approval any more in this `run`, or in its
                conversation, the `session`; as far as the request offers it.
            by: Who answers.
            who: The same, as far as it matters who may; a request that names approvers is for them alone.
            unless_held: Refuse it where somebody else takes care of the request, see `Inbox.claim`.

        Raises:
            RequestError: `unknown_request` (404), `not_an_approver` (403), `already_resolved`, `stale` or `claimed`
                (409), `gone` (410), `invalid_answer` (422).
        """
        stored = await self.inbox.row(request)
        given = answer_of(decision, values or {}, edited, feedback, by=by, remember=remember)

        def decide(state: RunState) -> list[Event]:
            ask = state.pending.get(request.removeprefix(f"{stored.run_id}:"))
            if unless_held and isinstance(ask, AskHuman):
                check_holder(ask, by, "only that person may answer it")
            return [settled(state, stored, given, (revision, content_hash), self._clock(), who=who)]

        await self.inbox.deliver(stored, decide)
        return await self.get(stored.run_id)

    async def answer_call(self, run_id: str, call_id: str, answer: ToolAnswer) -> RunView:
        """Give what a client tool brought back, or its error; the first answer counts.

        Raises:
            RequestError: `unknown_run`, `unknown_call` (404), `wrong_client` (403), `already_resolved` (409), `gone`
                (410), `result_too_large` (413), `invalid_result` (422); the call stays open after the last two.
        """
        at = (run_id, call_id)
        hooking = self._performer.hooking
        await answer_call(self.store, self.engine, self._clock, at, answer, hooking=hooking)
        return await self.get(run_id)

    async def post(
        self, run_id: str, text: str, *, delivery: Delivery = "queue", by: str = "client"
    ) -> RunView:
        """Say something to a run: it answers an open question, else waits for a turn boundary.

        Args:
            run_id: The run.
            text: What to say.
            delivery: `queue` waits at the back; `steer` goes to the front and aborts the model call under way.
            by: Who says it.

        Raises:
            RequestError: `unknown_run` (404), `run_ended` (409), `invalid_message` or `invalid_delivery` (422),
                `too_many_messages` (429).
        """
        check_choice("delivery", delivery, get_args(Delivery))

        def decide(state: RunState) -> list[Event]:
            check_open(state)
            partial = self.engine.runs.partial(run_id) if delivery == "steer" else ""
            said = checked_message(text, state.spec)
            return [MessagePosted(said, self._clock(), delivery, by, partial)]

        await self.engine.deliver(run_id, decide)
        return await self.get(run_id)

    async def cancel(self, run_id: str, *, reason: str = "", by: str = "client") -> RunView:
        """Stop a run and everything it is doing; an ended run stays as it is.

        Raises:
            RequestError: `unknown_run` (404).
        """
        await self.engine.bring(
            run_id, lambda _: [CancelRequested(self._clock(), clean_text(reason), by)]
        )
        return await self.get(run_id)

    async def set_mode(self, run_id: str, mode: Mode, *, by: str = "client") -> RunView:
        """Switch a run to planning (only reading happens until a plan is approved) or to acting.

        Raises:
            RequestError: `unknown_run` (404), `run_ended` or `plan_open` (409), `plan_mode` or `invalid_mode` (422).
        """
        await self.engine.deliver(
            run_id, lambda now: [mode_change(self.agents, now, mode, self._clock(), by=by)]
        )
        return await self.get(run_id)

    @cached_property
    def asgi(self) -> Callable[..., Awaitable[None]]:
        """The HTTP API and the pages, for any ASGI server, or mounted at the root of another application.

        A server that tells of its start and end opens and closes the app with itself; where the application around it
        does that, open the app there. The environment's `LOOPAGENT_API_TOKEN` is a key, as for `loopagent serve`.
        """
        from loopagent.http import create_api  # noqa: PLC0415 - what serves an app lies above it

        return create_api(self, token=self.env.get("LOOPAGENT_API_TOKEN") or None)

    async def delete(self, run_id: str) -> None:
        """Remove an ended run and everything that belongs to it.

        Raises:
            RequestError: `unknown_run` (404), `run_active` (409).
        """
        view = await self.get(run_id)
        if not view.state.ended:
            text = "The run is still going on; cancel it first."
            raise RequestError("run_active", text, status=409)
        await self.store.delete(run_id)
