"""A real HTTP server on a free port of the loopback that answers as a test says, in threads of its own."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True)
class Got:
    """A request as it came in; names of headers are in lower case, `target` is as it stood on the wire."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """What to answer; `claimed` is a Content-Length that need not be true, `drip` seconds between bytes."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    claimed: int | None = None
    drip: float = 0.0


def as_json(value: Any, status: int = 200, **headers: str) -> Reply:
    head = {"content-type": "application/json", **headers}
    return Reply(status, json.dumps(value).encode(), head)


def packed(data: bytes) -> Reply:
    return Reply(200, gzip.compress(data), {"content-encoding": "gzip"})


class Web:
    """The server; a context manager. `seen` is what came in."""

    def __init__(self, answer: Callable[[Got], Reply]) -> None:
        self.answer = answer
        self.seen: list[Got] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._thread.join(10)
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        return type("Handler", (_Handler,), {"web": self})


class _Handler(BaseHTTPRequestHandler):
    web: Web
    protocol_version = "HTTP/1.1"

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except OSError:  # the client left
            self.close_connection = True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._respond
        raise AttributeError(name)

    def _respond(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        head = {key.lower(): value for key, value in self.headers.items()}
        got = Got(self.command, self.path, head, self.rfile.read(size))
        self.web.seen.append(got)
        reply = self.web.answer(got)
        self.send_response(reply.status)
        length = len(reply.body) if reply.claimed is None else reply.claimed
        for key, value in {"content-length": str(length), **reply.headers}.items():
            self.send_header(key, value)
        self.end_headers()
        self._send(reply)
        self.close_connection = reply.claimed is not None or reply.drip > 0

    def _send(self, reply: Reply) -> None:
        if self.command == "HEAD":
            return
        for at in range(len(reply.body)) if reply.drip else ():
            self.wfile.write(reply.body[at : at + 1])
            time.sleep(reply.drip)
        if not reply.drip:
            self.wfile.write(reply.body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - their name
        pass
