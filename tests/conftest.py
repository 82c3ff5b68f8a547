"""What every test lives with: asyncio, repeatable Hypothesis, no network, no provider's key.

The network guard is an audit hook: Python itself announces every connection and every name look-up
before it makes it, so nothing needs to be patched. Loopback stays open, because tests talk to real
servers of their own.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.postgres import PostgresServer


settings.register_profile(
    "dev", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "ci", settings.get_profile("dev"), max_examples=100, derandomize=True, print_blob=True
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

PROVIDER_VARIABLES = (
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "LOOPAGENT_MODEL",
)
for _name in PROVIDER_VARIABLES:
    os.environ.pop(_name, None)  # inherited by subprocesses too: no test can reach an account


class NetworkBlockedError(RuntimeError):
    """A test tried to leave this machine."""


_attempts: list[str] = []


def _is_local(host: object) -> bool:
    if isinstance(host, bytes | bytearray):
        host = host.decode("ascii", "replace")
    if host is None or host in {"", "localhost"}:
        return True
    try:
        address = ipaddress.ip_address(str(host).partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _guard(event: str, args: tuple[Any, ...]) -> None:
    if event == "socket.getaddrinfo":
        host = args[0]
    elif event in {"socket.connect", "socket.sendto"} and isinstance(args[1], tuple):
        host = args[1][0]
    else:
        return
    if not _is_local(host):
        _attempts.append(f"{event} {host}")
        message = f"{event}: tests reach loopback only, not {host!r}"
        raise NetworkBlockedError(message)


sys.addaudithook(_guard)


@pytest.fixture(autouse=True)
def blocked() -> Iterator[list[str]]:
    """Attempts to leave the machine; one fails the test, even if its code swallowed the refusal."""
    _attempts.clear()
    yield _attempts
    assert not _attempts, f"the test tried to reach the network: {_attempts}"


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio, the only loop the runtime supports."""
    return "asyncio"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server for this process of the test run; only tests that ask for it start it."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


_numbers = count(1)


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    """The URL of a store with a schema of its own."""
    return postgres_server.url(schema=f"test_{next(_numbers)}")
