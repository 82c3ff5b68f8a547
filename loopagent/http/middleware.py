"""What stands before every route: who may call, how large a body may be, and idempotency keys."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple
from weakref import WeakValueDictionary

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from loopagent.access import Caller
from loopagent.access_rules import is_open
from loopagent.app import App
from loopagent.callers import CALLER, SESSION, Access
from loopagent.clients import fingerprint
from loopagent.errors import RequestError, StoreError
from loopagent.http.bodies import replaying
from loopagent.http.problems import problem_of, problem_response
from loopagent.http.refusing import TooOftenError, refusal
from loopagent.ports import RememberedAnswer
from loopagent.web.posts import check_origin
from loopagent.web.shared import whole


MAX_KEY_CHARS = 255
SERVER_ERROR = 500
PROBES = ("/healthz", "/readyz")
NOBODY = Caller("")
"""Who calls when nobody is known: may do nothing."""
SAFE = ("GET", "HEAD", "OPTIONS")
SECRET = ("/api/v1/keys", "/keys", "/signin")
"""Where answers hold a secret, which no store may keep."""
SIGNING = ("/signin", "/signout")
MAX_SIGNING_BYTES = 20_000
"""Largest form that is read of somebody who is not known."""
USUAL = {"x-content-type-options": "nosniff", "cache-control": "no-store"}
"""Headers of every answer that has no other ones: nobody is to keep it, or take it for something else."""
STREAM = "/api/v1/runs/stream"
BEGUN = "loopagent.begun"
"""In the scope of a request for a stream: the run that the very same request began before."""
WEBHOOK = re.compile(r"/api/v1/triggers/[^/]+")


class Guard:
    """Finds out who calls; refuses who may not, who calls too often, and bodies that are too large.

    Args:
        app: The next ASGI app.
        access: Knows callers.
        most_bytes: Largest request body, and largest form with files.
    """

    def __init__(self, app: ASGIApp, *, access: Access, most_bytes: tuple[int, int]) -> None:
        self._app = app
        self._access = access
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on, or answer with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = _Started(send)
        try:
            await self._let_in(scope)
        except (RequestError, StoreError) as error:
            await refusal(Request(scope), error)(scope, receive, started)
            return
        try:
            await self._app(scope, self._limited(scope, receive), started)
        except _TooLargeError as error:  # found before anybody who answers errors
            if started.sent:
                raise
            refused = self._too_large(scope)
            await problem_response(problem_of(refused))(scope, receive, send)
            del error

    async def _let_in(self, scope: Scope) -> None:
        """Note who calls, if that may be.

        Raises:
            RequestError: 401 for nobody known, 403, 404, 413 and 429 as they mean.
        """
        method, path, headers = scope["method"], scope["path"], Headers(scope=scope)
        scope[CALLER], scope[SESSION] = NOBODY, ""
        if path not in PROBES:
            caller, scope[SESSION] = await self._access.caller(headers)
            scope[CALLER] = caller or NOBODY
            if not is_open(method, path):
                await self._check(caller, scope)
        # An absurd length is not believed: what comes is counted.
        length = whole(headers.get("content-length", "0")) or 0
        if length > self._most(scope):
            raise self._too_large(scope)

    async def _check(self, caller: Caller | None, scope: Scope) -> None:
        if caller is None:
            raise await self._access.unknown(Headers(scope=scope))
        if scope["method"] not in SAFE and _header(scope, b"authorization") is None:
            check_origin(Request(scope))  # known by what a browser sends by itself
        seconds = self._access.waits(caller)
        if seconds:
            text = f"This key makes too many requests; wait {seconds} s."
            raise TooOftenError(text, seconds)
        await self._access.check(caller, scope["method"], scope["path"])

    def _most(self, scope: Scope) -> int:
        if scope["path"] in SIGNING:
            return MAX_SIGNING_BYTES
        kind = (_header(scope, b"content-type") or "").lower()
        return self._most_bytes[kind.startswith("multipart/form-data")]

    def _too_large(self, scope: Scope) -> RequestError:
        text = f"A request body may have {self._most(scope)} bytes."
        return RequestError("too_large", text, status=413)

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        seen, most = 0, self._most(scope)

        async def limited() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > most:
                raise _TooLargeError(413, f"A request body may have {most} bytes.")
            return message

        return limited


class _TooLargeError(HTTPException):
    """The body turned out to be too large while it was read; frameworks let it pass as it is."""


class _Started:
    """Passes an answer on, with the headers that all have, and knows whether it has begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.sent = False

    async def __call__(self, message: Message) -> None:
        self.sent = True
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in USUAL.items():
                headers.setdefault(name, value)
        await self._send(message)


class Idempotency:
    """Honours `Idempotency-Key` on every POST: the same key and body get the first answer again.

    Answers are kept in the store, so this holds across restarts. A key that comes with another body is refused.
    Of a stream the run is kept that it began: asked again, it is the stream of that run. Calls of webhooks are not
    kept: events have ids. Nor is an answer that holds a secret.
    """

    def __init__(self, app: ASGIApp, *, host: App) -> None:
        self._app = app
        self._host = host
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer from memory, or pass the call on and remember the answer."""
        key = _header(scope, b"idempotency-key") if scope["type"] == "http" else None
        if key is None or not _is_kept(scope):
            await self._app(scope, receive, send)
            return
        if not key.strip() or len(key) > MAX_KEY_CHARS:
            text = f"Idempotency-Key must have 1 to {MAX_KEY_CHARS} characters."
            await problem_response(problem_of(RequestError("bad_key", text, status=400)))(
                scope, receive, send
            )
            return
        if scope["path"].strip() in SECRET:  # a line end in the address leads to the same route
            await self._app(scope, receive, send)
            return
        session = _header(scope, b"client-session") or ""
        who: Caller = scope[CALLER]
        tenant = who.key_id and who.tenant  # a person's may change from one sign-in to the next
        whose = [one for one in (who.key_id, tenant, session and fingerprint(session)) if one]
        name = "\n".join([scope["path"], key, *whose])
        lock = self._locks.setdefault(name, asyncio.Lock())
        body = await _read(receive)
        if body is None:  # whoever sent half of it is gone: half of a request is none
            return
        asked = _Asked(name, _fingerprint(scope, body))
        again = replaying(body, receive)
        if scope["path"] == STREAM:
            await self._stream(asked, lock, scope, again, send)
            return
        async with lock:
            await self._once(asked, scope, again, send)

    async def _once(self, asked: _Asked, scope: Scope, receive: Receive, send: Send) -> None:
        kept = await self._host.store.recall(asked.name)
        if kept is not None:
            await self._replay(kept, asked.fingerprint, scope, receive, send)
            return
        capture = _Capture(send)
        await self._app(scope, receive, capture)
        if 0 < capture.status < SERVER_ERROR:
            text = capture.body.decode("utf-8", "replace")
            answer = RememberedAnswer(asked.fingerprint, capture.status, text, capture.headers)
            await self._host.store.remember(asked.name, answer, at=self._host.now())

    async def _replay(
        self, kept: RememberedAnswer, fingerprint: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if kept.fingerprint != fingerprint:
            await _reused(scope, receive, send)
            return
        headers = [(name.encode(), value.encode()) for name, value in kept.headers.items()]
        headers.append((b"idempotency-replayed", b"true"))
        await send({"type": "http.response.start", "status": kept.status, "headers": headers})
        await send({"type": "http.response.body", "body": kept.body.encode()})

    async def _stream(
        self, asked: _Asked, lock: asyncio.Lock, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Pass the beginning of a stream on once, and tell its route of the run when it is asked again.

        Who asks again need not wait for the first stream to end, only for its run to be there.
        """

        async def begun(run: str) -> None:
            answer = RememberedAnswer(asked.fingerprint, 200, run, {})
            await self._host.store.remember(asked.name, answer, at=self._host.now())

        opening = _Opening(send, lock, begun)
        await lock.acquire()
        try:
            kept = await self._host.store.recall(asked.name)
            if kept is not None and kept.fingerprint != asked.fingerprint:
                await _reused(scope, receive, opening)
                return
            again = {} if kept is None else {BEGUN: kept.body}
            await self._app({**scope, **again}, receive, opening)
        finally:
            opening.release()


class _Asked(NamedTuple):
    """What is remembered of a request: under which name, and what it was."""

    name: str
    fingerprint: str


class _Opening:
    """Passes a stream on; says which run it is of, and lets others in, as soon as it begins."""

    def __init__(
        self, send: Send, lock: asyncio.Lock, begun: Callable[[str], Awaitable[None]]
    ) -> None:
        self._send = send
        self._lock: asyncio.Lock | None = lock
        self._begun = begun

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            place = Headers(raw=message["headers"]).get("location")
            if place is not None:
                await self._begun(place.rsplit("/", 1)[-1])
            self.release()
        await self._send(message)

    def release(self) -> None:
        """Let others in."""
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()


def _fingerprint(scope: Scope, body: bytes) -> str:
    query: bytes = scope.get("query_string", b"")
    return hashlib.sha256(query + b"\n" + _without_boundary(scope, body)).hexdigest()


async def _reused(scope: Scope, receive: Receive, send: Send) -> None:
    text = "This Idempotency-Key was used with another request; take a new key."
    error = RequestError("idempotency_key_reused", text, status=422)
    await problem_response(problem_of(error))(scope, receive, send)


def _is_kept(scope: Scope) -> bool:
    return scope["method"] == "POST" and not _has_own_access(scope)


def _has_own_access(scope: Scope) -> bool:
    """Whether this is a call of a webhook, which itself says who may make it."""
    path: str = scope["path"]
    return scope["method"] == "POST" and WEBHOOK.fullmatch(path) is not None


class _Capture:
    """Passes an answer on and keeps a copy."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")
        await self._send(message)


def _without_boundary(scope: Scope, body: bytes) -> bytes:
    """A form without what separates its parts: that is drawn anew for every request, also for the same form."""
    kind = _header(scope, b"content-type") or ""
    found = re.search(r'boundary="?([^";,\s]+)', kind)
    is_form = kind.lower().startswith("multipart/form-data")
    return body.replace(found[1].encode("latin-1"), b"") if is_form and found else body


async def _read(receive: Receive) -> bytes | None:
    """The whole body; None when the connection ended before."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if not message.get("more_body"):
            return bytes(body)


def _header(scope: Scope, name: bytes) -> str | None:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), None)
