"""Actions out of short texts, called through the one invoker against a real server of the test."""

from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path
from typing import Any

from loopagent.action import Action, ActionContext
from loopagent.actions.build import make_action
from loopagent.actions.format import ActionFile
from loopagent.actions.means import Means
from loopagent.actions.reading import read_actions
from loopagent.actions.secrets import SecretValue
from loopagent.core.outcome import Outcome
from loopagent.egress import EgressSettings
from loopagent.runtime.invoke import Invoker
from tests.fakes.web import Web


LOOPBACK = ip_network("127.0.0.0/8")
LOCAL = EgressSettings(private_networks=(str(LOOPBACK),))
HEAD = "name: {name}\ndescription: Does it.\neffects: {effects}\n"


class Secrets:
    """A store of secrets that are for the loopback."""

    def __init__(self, hosts: tuple[str, ...] = ("127.0.0.1",), **values: str) -> None:
        self.hosts = hosts
        self.values = values

    def get(self, name: str) -> SecretValue | None:
        value = self.values.get(name)
        return None if value is None else SecretValue(name, value, self.hosts)


def read(text: str) -> ActionFile:
    reading = read_actions(text, Path("x.action.yaml"))
    assert reading.problems == []
    return reading.actions[0]


def http_text(
    web: Web, rest: str, *, effects: str = "read", path: str = "/x", name: str = "it"
) -> str:
    """An `http` action for the server; `rest` is further lines of `run`, indented by two, and then of the file."""
    egress = f"egress: {{hosts: [127.0.0.1], ports: [{web.port}]}}\n"
    run = f"run:\n  kind: http\n  url: {web.url}{path}\n"
    return HEAD.format(name=name, effects=effects) + egress + run + rest.lstrip("\n")


def means(**more: Any) -> Means:
    given: dict[str, Any] = {"egress": LOCAL, "chance": lambda: 0.0, **more}
    return Means(**given)


async def call(
    action: Action[..., Any], params: dict[str, Any] | None = None, told: list[str] | None = None
) -> Outcome:
    """How a call ends; `told` gets its progress."""
    invoker = Invoker()
    heard = None if told is None else told.append
    context = ActionContext("run-1", "1:action.0", on_progress=heard)
    try:
        return await invoker.invoke(action, params or {}, context)
    finally:
        await invoker.aclose()


async def called(web: Web, rest: str, params: dict[str, Any] | None = None, **more: Any) -> Outcome:
    """How a call of an `http` action ends."""
    kinds = {key: more.pop(key) for key in ("effects", "path") if key in more}
    return await call(make_action(read(http_text(web, rest, **kinds)), means(**more)), params)


def code(outcome: Outcome) -> str:
    assert outcome.error is not None, outcome
    return outcome.error.code


def message(outcome: Outcome) -> str:
    assert outcome.error is not None, outcome
    return outcome.error.message
