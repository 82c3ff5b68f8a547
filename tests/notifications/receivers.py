"""Real receivers: a web server that takes webhooks, and a mail server."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socketserver
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self


SECRET = base64.b64encode(b"0123456789abcdef01234567").decode()
ENV = {"LOOPAGENT_WEBHOOK_SECRET": f"whsec_{SECRET}"}
CERTIFICATE = Path(__file__).parent.parent / "egress" / "localhost.pem"


def until(done: Callable[[], Any], seconds: float = 30.0) -> Any:
    end = time.monotonic() + seconds
    while not (found := done()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
    return found


@dataclass
class Call:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    def signed_with(self, secret: str) -> bool:
        """As Standard Webhooks has receivers do it, word for word."""
        stamp = self.headers["webhook-timestamp"]
        assert abs(int(stamp) - time.time()) < 300
        text = f"{self.id}.{stamp}.{self.raw.decode()}"
        key = base64.b64decode(secret)
        wanted = base64.b64encode(hmac.new(key, text.encode(), hashlib.sha256).digest()).decode()
        return f"v1,{wanted}" in self.headers["webhook-signature"].split(" ")


@dataclass
class Hook:
    """Takes webhooks; `answers` are the statuses of the first calls, later ones get 204; 0 never answers."""

    answers: list[int] = field(default_factory=list[int])
    calls: list[Call] = field(default_factory=list[Call])
    released: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["content-length"]))
                names = {key.lower(): value for key, value in self.headers.items()}
                hook.calls.append(Call(self.path, names, raw))
                status = hook.answers.pop(0) if hook.answers else 204
                if status == 0:
                    hook.released.wait(60)
                    return
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                del format, args

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook?key=in-the-address"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()


@dataclass
class Post:
    """A mail server. `mode` is `none`, `starttls` or `tls`; `refuse` are answers to the first mails, like 451."""

    mode: str = "none"
    refuse: list[int] = field(default_factory=list[int])
    login: tuple[str, str] | None = None
    mails: list[EmailMessage] = field(default_factory=list[EmailMessage])
    recipients: list[list[str]] = field(default_factory=list[list[str]])
    secured: list[bool] = field(default_factory=list[bool])

    def __enter__(self) -> Self:
        post = self
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                try:
                    Talk(post, self.request, context).run()
                except OSError:
                    return  # a client that goes away

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class Talk:
    """One connection to a mail server."""

    def __init__(self, post: Post, connection: Any, context: ssl.SSLContext) -> None:
        self.post, self.context = post, context
        self.secured = post.mode == "tls"
        self.known = post.login is None
        self.to: list[str] = []
        self.use(context.wrap_socket(connection, server_side=True) if self.secured else connection)

    def use(self, connection: Any) -> None:
        self.connection = connection
        self.lines = connection.makefile("rb")

    def say(self, text: str) -> None:
        self.connection.sendall(f"{text}\r\n".encode())

    def run(self) -> None:
        try:
            self.listen()
        finally:
            self.lines.close()
            self.connection.close()

    def listen(self) -> None:
        self.say("220 test")
        while line := self.lines.readline():
            word, _, rest = line.decode().strip().partition(" ")
            if word.upper() == "QUIT":
                self.say("221 bye")
                return
            self.answer(word.upper(), rest)

    def answer(self, word: str, rest: str) -> None:
        if word == "EHLO":
            extra = (
                "STARTTLS" if self.post.mode == "starttls" and not self.secured else "AUTH PLAIN"
            )
            self.say(f"250-test\r\n250 {extra}")
        elif word == "STARTTLS":
            self.say("220 go")
            self.lines.close()
            self.use(self.context.wrap_socket(self.connection, server_side=True))
            self.secured = True
        elif word == "AUTH":
            _, user, password = base64.b64decode(rest.split()[1]).decode().split("\0")
            self.known = (user, password) == self.post.login
            self.say("235 ok" if self.known else f"535 wrong {password}")
        elif word == "RCPT":
            self.to.append(rest.partition("<")[2].partition(">")[0])
            self.say("250 ok")
        elif word == "DATA":
            self.take()
        else:
            self.say("250 ok" if self.known else "530 who are you")

    def take(self) -> None:
        self.say("354 go on")
        found = b""
        while (line := self.lines.readline()) != b".\r\n":
            found += line
        if self.post.refuse:
            self.say(f"{self.post.refuse.pop(0)} not now")
            return
        made = message_from_bytes(found, policy=policy.default)
        assert isinstance(made, EmailMessage)
        self.post.mails.append(made)
        self.post.recipients.append(self.to)
        self.post.secured.append(self.secured)
        self.say("250 taken")
