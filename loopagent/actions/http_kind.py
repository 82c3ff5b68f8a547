"""Actions of kind `http`: a request is made, sent through the guard, and its answer becomes a result."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import httpx2

from loopagent.actions.answer import breaks_off, media_type, said, view
from loopagent.actions.attempts import Again, TroubleError, after_seconds, attempted, broken_off
from loopagent.actions.pages import Pages
from loopagent.actions.request import Request, basic, make_request
from loopagent.actions.secrets import Revealed
from loopagent.actions.shaping import shape
from loopagent.actions.tokens import Grant
from loopagent.actions.values import render
from loopagent.core.reshape import Expression, ReshapeError, Template, shown
from loopagent.egress import EgressPolicy
from loopagent.egress.client import Bounds, GuardedClient, checked_url, opened
from loopagent.errors import ActionError


if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from loopagent.action import ActionContext
    from loopagent.actions.format import ActionFile
    from loopagent.actions.format_http import HttpRun, OAuth2Auth
    from loopagent.actions.means import Means
    from loopagent.egress.client import Answer

MAX_REDIRECTS: Final = 5
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_UNAUTHORIZED: Final = 401
_OK: Final = range(200, 300)
_DEFAULT_SECONDS: Final = 5.0
"""Longest wait for a connection."""


def http_runner(
    action: ActionFile, run: HttpRun, means: Means
) -> Callable[[dict[str, Any], ActionContext], Awaitable[Any]]:
    """What carries out calls of an `http` action."""
    policy = EgressPolicy.for_action(
        means.egress,
        hosts=action.egress.hosts,
        ports=action.egress.ports,
        networks=action.egress.private_networks,
    )

    async def call(params: dict[str, Any], context: ActionContext) -> Any:
        key = ",".join(action.egress.hosts) if action.limits.scope == "connection" else action.name
        told = partial(_tell_wait, context)
        async with (
            means.throttles.turn(key, action.limits, told),
            opened(means.client(policy)) as client,
        ):
            return await _Call(action, run, means, client, params, context).result()

    return call


def _tell_wait(context: ActionContext, seconds: float) -> None:
    context.progress(f"waiting {seconds:.1f} s for its turn")


@dataclass(slots=True)
class _Call:
    """One call."""

    action: ActionFile
    run: HttpRun
    means: Means
    client: GuardedClient
    params: dict[str, Any]
    context: ActionContext
    token: str = ""

    async def result(self) -> Any:
        secrets = Revealed(self.means.secrets)
        try:
            return await self._result(secrets)
        except ActionError as error:
            # A server may repeat what it was sent.
            text = secrets.masked(str(error))
            unsure = error.may_have_run and self.action.effects != "read"
            if unsure:
                text += " The call may have taken effect all the same."
            raise ActionError(
                text, code=error.code, fatal=error.fatal, may_have_run=unsure
            ) from error

    async def _result(self, secrets: Revealed) -> Any:
        request = make_request(self.action, self.run, self._scope(), secrets)
        if self.run.paginate is None:
            seen = await self._exchange(request, secrets)
            return self._shaped({**seen, "params": self.params}, seen["body"])
        pages = Pages(self.run.paginate)
        while True:
            seen = await self._exchange(pages.request(request), secrets)
            if not pages.take(seen, request):
                break
        given = {**seen, "items": pages.items, "more": pages.more, "params": self.params}
        return self._shaped(given, pages.items)

    def _shaped(self, given: dict[str, Any], whole: Any) -> Any:
        if self.means.heard is not None:
            self.means.heard("scope", given)
        return shape(self.action, given, whole)

    def _scope(self) -> dict[str, Any]:
        context = self.context
        return {
            "params": self.params,
            "run": {"id": context.run_id},
            "step": {"id": context.effect_id},
            "call": {"key": context.idempotency_key},
        }

    async def _exchange(self, request: Request, secrets: Revealed) -> dict[str, Any]:
        """One request, as often as it takes; gives what expressions see of its answer."""
        again = Again(
            self.action.retry,
            self.action.repeatable,
            self._seconds_left,
            self.means.chance,
            self.context.progress,
        )
        return await attempted(partial(self._attempt, request, secrets), again)

    def _seconds_left(self) -> float:
        return self.context.seconds_left

    async def _attempt(self, request: Request, secrets: Revealed) -> dict[str, Any]:
        auth = self.run.auth
        answer = await self._authorized(request, secrets)
        if answer.status == _UNAUTHORIZED and auth is not None and auth.type == "oauth2":
            # The token may have been taken back before its time; nothing was done with the request.
            answer = await self._authorized(request, secrets, refused=self.token)
        answer = await self._followed(request, answer)
        seen: dict[str, Any] = secrets.masked(view(answer))
        if self.means.heard is not None:
            sent = secrets.masked(request.public())
            self.means.heard("exchange", {"request": sent, "response": seen})
        self._check(seen, answer)
        return seen

    async def _authorized(
        self, request: Request, secrets: Revealed, *, refused: str = ""
    ) -> Answer:
        if self.run.auth is None or self.run.auth.type != "oauth2":
            return await self._send(request)
        grant = self._grant(self.run.auth, request, secrets)
        token = await self.means.tokens.get(grant, self._ask_token, refused=refused)
        self.token = secrets.kept(token)
        return await self._send(request.with_header("authorization", f"Bearer {token}"))

    def _grant(self, auth: OAuth2Auth, request: Request, secrets: Revealed) -> Grant:
        """What to ask a token for; its secret must belong to both hosts, since the token goes to the other."""
        api, target = checked_url(request.address), checked_url(auth.token_url)
        render(auth.client_secret, {}, secrets.to(api.scheme, api.host))
        reveal = secrets.to(target.scheme, target.host)
        return Grant(
            auth.token_url,
            shown(render(auth.client_id, {}, reveal)),
            shown(render(auth.client_secret, {}, reveal)),
            auth.scopes,
            auth.audience,
            auth.client_auth,
        )

    async def _ask_token(self, grant: Grant) -> Answer:
        headers = [
            ("content-type", "application/x-www-form-urlencoded"),
            ("accept", "application/json"),
        ]
        user = grant.user()
        if user is not None:
            headers.append(("authorization", basic(*user)))
        return await self.client.fetch(
            "POST", grant.url, headers=headers, content=grant.form(), bounds=self._bounds()
        )

    async def _send(self, request: Request) -> Answer:
        return await self.client.fetch(
            request.method,
            request.url,
            headers=request.headers,
            content=request.content,
            bounds=self._bounds(),
        )

    def _bounds(self) -> Bounds:
        seconds = min(self.run.timeout or self.action.timeout, max(0.1, self._seconds_left()))
        return Bounds(min(_DEFAULT_SECONDS, seconds), seconds, self.run.max_bytes)

    async def _followed(self, request: Request, answer: Answer) -> Answer:
        """The answer at the end of redirects within one origin, where the file allows them."""
        start = checked_url(request.url)
        for _ in range(MAX_REDIRECTS):
            if answer.status not in _REDIRECTS or "location" not in answer.headers:
                return answer
            if self.run.redirects == "refuse" or request.method not in {"GET", "HEAD"}:
                break
            target = start.join(answer.headers["location"])
            if _origin(target) != _origin(start):
                break
            headers = request.headers
            if self.token:
                headers = request.with_header("authorization", f"Bearer {self.token}").headers
            answer = await self._send(Request(request.method, str(target), headers=headers))
        text = "The server redirects elsewhere, which is not followed; `run.url` has to name the right address."
        raise ActionError(text, code="redirect_refused")

    def _check(self, seen: dict[str, Any], answer: Answer) -> None:
        """Complain about an answer that means an error.

        Raises:
            TroubleError: It does.
        """
        try:
            found = self._failure({**seen, "params": self.params}, media_type(answer)[0])
        except ReshapeError as error:
            text = f"The answer cannot be judged: {error}."
            raise ActionError(text, code="bad_answer", may_have_run=True) from error
        if found is not None:
            failure, retryable = found
            after = after_seconds(answer.headers, self.means.clock())
            cause = str(answer.status)
            raise TroubleError(cause, failure, retryable=retryable, after_seconds=after)
        if breaks_off(media_type(answer)[0], seen["body"]):
            raise broken_off()

    def _failure(self, given: dict[str, Any], kind: str) -> tuple[ActionError, bool] | None:
        """What an answer that means an error means, and whether the file says that another attempt may help."""
        for rule in self.action.errors:
            if Expression(rule.when).holds(given):
                text = Template(rule.message).fill(given) or f"The server answered: {rule.code}."
                return ActionError(text, code=rule.code), rule.retryable
        success = self.run.success
        fine = given["status"] in _OK if success is None else Expression(success).holds(given)
        if fine:
            return None
        text = f"The server answered with {said(given, kind)}"
        return ActionError(text, code=f"http_{given['status']}"), False


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
