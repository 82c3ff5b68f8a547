"""Nothing in the package opens a connection but the guarded client."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopagent.core.described import parsed


PACKAGE = Path(__file__).resolve().parents[2] / "loopagent"
DIALLERS = {
    "egress/transport.py",
    "egress/standin.py",
    "egress/lent.py",
    "actions/mcp_client.py",
    "notifications/mailing.py",
}
"""Where a pool of connections may be, what dials only this machine in its place, and who lends or borrows a client.

Mail is no HTTP; the one server that it goes to is named by the operator, in the environment.
"""
MODULES = {
    "aiohttp",
    "ftplib",
    "grpc",
    "http.client",
    "httpcore",
    "httpcore2",
    "httpx",
    "imaplib",
    "niquests",
    "nntplib",
    "poplib",
    "pycurl",
    "requests",
    "smtplib",
    "telnetlib",
    "urllib.request",
    "urllib3",
    "websocket",
    "websockets",
    "xmlrpc.client",
}
"""Modules whose business is to call somewhere."""
CALLS = {
    "AsyncClient",
    "AsyncConnectionPool",
    "AsyncHTTPProxy",
    "AsyncHTTPTransport",
    "Client",
    "HTTPTransport",
    "connect_ssl",
    "connect_tcp",
    "connect_unix",
    "create_connection",
    "create_datagram_endpoint",
    "create_unix_connection",
    "getaddrinfo",
    "gethostbyname",
    "open_connection",
    "open_unix_connection",
    "sock_connect",
    "urlopen",
    "urlretrieve",
}
"""Names that dial, whatever they are reached through."""
PLAIN = {"socket.socket", "socket.fromfd", "ssl.SSLSocket"}
"""Connections by hand."""
SHORTCUTS = {"delete", "get", "head", "options", "patch", "post", "put", "request", "stream"}
"""Functions of httpx2 itself, each with a client of its own."""


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [one.name for one in node.names]
    if isinstance(node, ast.ImportFrom):
        module = node.module or ""
        return [module, *(f"{module}.{one.name}" for one in node.names)]
    return []


def used(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        return f"{owner}.{node.attr}"
    return f".{node.id}" if isinstance(node, ast.Name) else ""


def other_clients(source: str) -> Iterator[str]:
    for node in ast.walk(parsed(source)):
        for name in imported(node):
            if name in PLAIN or any(name == one or name.startswith(f"{one}.") for one in MODULES):
                yield name
            if name.rpartition(".")[2] in CALLS or name in {f"httpx2.{one}" for one in SHORTCUTS}:
                yield name
        owner, _, name = used(node).rpartition(".")
        if f"{owner}.{name}" in PLAIN or name in CALLS or (owner == "httpx2" and name in SHORTCUTS):
            yield f"{owner}.{name}"


def test_there_is_no_other_client() -> None:
    found = {
        f"{path.relative_to(PACKAGE).as_posix()}: {name}"
        for path in PACKAGE.rglob("*.py")
        for name in other_clients(path.read_text(encoding="utf-8"))
        if path.relative_to(PACKAGE).as_posix() not in DIALLERS
    }
    assert found == set()


def test_the_one_client_is_seen() -> None:
    source = (PACKAGE / "egress/transport.py").read_text(encoding="utf-8")
    assert "httpcore2" in set(other_clients(source))


@pytest.mark.parametrize(
    "source",
    [
        "import httpx2\nhttpx2.AsyncClient()",
        "import httpx2\nhttpx2.get('x')",
        "from httpx2 import AsyncClient",
        "from httpx2 import post",
        "import httpx2 as h\nh.Client()",
        "import httpcore2",
        "from urllib.request import urlopen",
        "from urllib import request",
        "import urllib.request as r",
        "import requests.sessions",
        "import http.client",
        "from http import client",
        "import socket\nsocket.create_connection(('x', 1))",
        "import asyncio\nasync def f(): await asyncio.open_connection('x', 1)",
        "async def f(loop): await loop.create_connection(None, 'x', 1)",
        "import anyio\nasync def f(): await anyio.connect_tcp('x', 1)",
        "import smtplib",
        "import socket\nsocket.socket().connect(('x', 1))",
        "from socket import socket",
    ],
)
def test_every_usual_client_would_be_found(source: str) -> None:
    assert list(other_clients(source))


@pytest.mark.parametrize(
    "source",
    [
        "import httpx2\nhttpx2.URL('x')",
        "from urllib.parse import quote",
        "{}.get('x')",
        "from http import HTTPStatus",
    ],
)
def test_what_dials_nothing_is_fine(source: str) -> None:
    assert not list(other_clients(source))
