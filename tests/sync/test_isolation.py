"""The guards of conftest hold: no test leaves the machine, none reaches a provider's account."""

from __future__ import annotations

import os
import socket
import sys

import pytest


def test_names_are_not_looked_up(blocked: list[str]) -> None:
    with pytest.raises(RuntimeError, match="loopback only"):
        socket.getaddrinfo("provider.invalid", 443)
    assert blocked == ["socket.getaddrinfo provider.invalid"]
    blocked.clear()


@pytest.mark.parametrize(
    "address", [("192.0.2.1", 443), ("2001:db8::1", 443, 0, 0), (b"provider.invalid", 80)]
)
def test_far_addresses_are_refused(blocked: list[str], address: tuple[object, ...]) -> None:
    with pytest.raises(RuntimeError, match="loopback only"):
        sys.audit("socket.connect", None, address)  # what Python announces before it connects
    assert len(blocked) == 1
    blocked.clear()


def test_loopback_is_open(blocked: list[str]) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()),
    ):
        pass
    assert blocked == []


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "LOOPAGENT_MODEL"]
)
def test_no_account_is_in_reach(name: str) -> None:
    assert name not in os.environ
