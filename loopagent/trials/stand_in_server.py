"""A server that answers what a test of an action says, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from loopagent.actions.format import Mock, MockRequest, MockResponse
from loopagent.matching import differences


TOKEN: Final = "access-token-of-the-stand-in"  # noqa: S105 - it opens nothing
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
MAX_BODY_BYTES: Final = 20_000_000
_NOT_EXPECTED: Final = 599


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came in; names of headers are in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        """Its path, as sent."""
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str | list[str]]:
        """Its query; a name that stands several times has a list."""
        found = parse_qs(urlsplit(self.target).query, keep_blank_values=True)
        return {name: one[0] if len(one) == 1 else one for name, one in found.items()}

    @property
    def json(self) -> Any:
        """Its body as JSON; None when it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    def public(self) -> dict[str, Any]:
        """Method, address and body, for people."""
        text = self.body.decode("utf-8", "replace")
        shown: dict[str, Any] = {"method": self.method, "target": self.target}
        return {**shown, "body": text} if text else shown


def mismatches(wanted: MockRequest, asked: Asked) -> list[str]:
    """How a request differs from what is expected; empty when it fits."""
    got: dict[str, Any] = {
        "method": asked.method,
        "path": asked.path,
        "query": asked.query,
        "json": asked.json,
        "text": asked.body.decode("utf-8", "replace"),
    }
    given = wanted.model_dump(by_alias=True, exclude_unset=True)
    headers = {name.lower(): one for name, one in (given.pop("headers", None) or {}).items()}
    found = [
        f"{name}: {each.removeprefix('(value)').lstrip(': ')}"
        for name, one in given.items()
        for each in differences(one, got[name], whole=True)
    ]
    for name, one in headers.items():
        if asked.headers.get(name) != one:
            found.append(f"headers.{name}: {asked.headers.get(name)!r} instead of {one!r}")
    return found


@dataclass
class StandInServer:
    """What is answered, in order, and what came in.

    Args:
        mocks: The exchanges.
        token_path: Path of a token endpoint, which is answered by itself and not remembered.
    """

    mocks: Sequence[Mock]
    token_path: str | None = None
    asked: list[Asked] = field(default_factory=list[Asked])
    problems: list[str] = field(default_factory=list[str])
    port: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def running(self) -> Iterator[StandInServer]:
        """Listen on a free port of the loopback until the end of the block."""
        handler = type("Handler", (_Handler,), {"owner": self})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        self.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="stand-in")
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def answer(self, asked: Asked) -> MockResponse:
        """What to answer; what was not expected is a problem."""
        if self.token_path is not None and (asked.method, asked.path) == ("POST", self.token_path):
            return MockResponse.model_validate({"json": {"access_token": TOKEN}})
        with self._lock:
            self.asked.append(asked)
            number = len(self.asked)
        if number > len(self.mocks):
            self.problems.append(
                f"request {number}, {asked.method} {asked.target}, is not expected"
            )
            return MockResponse(status=_NOT_EXPECTED)
        mock = self.mocks[number - 1]
        self.problems += [f"request {number}: {one}" for one in mismatches(mock.request, asked)]
        return mock.response


class _Handler(BaseHTTPRequestHandler):
    owner: StandInServer
    protocol_version = "HTTP/1.1"

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except OSError:  # the client left
            self.close_connection = True

    def respond(self) -> None:
        size = min(int(self.headers.get("content-length") or 0), MAX_BODY_BYTES)
        headers = {name.lower(): one for name, one in self.headers.items()}
        asked = Asked(self.command, self.path, headers, self.rfile.read(size))
        given = self.owner.answer(asked)
        body, kind = _body(given)
        self.send_response(given.status)
        named = {name.lower() for name in given.headers}
        for name, one in given.headers.items():
            self.send_header(name, one)
        if kind and "content-type" not in named:
            self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - their name
        del format, args


for _method in METHODS:
    setattr(_Handler, f"do_{_method}", _Handler.respond)


def _body(given: MockResponse) -> tuple[bytes, str]:
    if "json_" in given.model_fields_set:
        return json.dumps(given.json_).encode(), "application/json"
    if given.text is not None:
        return given.text.encode(), "text/plain; charset=utf-8"
    return b"", ""
