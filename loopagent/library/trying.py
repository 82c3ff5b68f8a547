"""Trying out a text before it is published: what it would send, one call, and the tests inside of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from loopagent.action import ActionContext
from loopagent.actions.build import FileAction, make_action
from loopagent.actions.format import HTTP_KINDS, McpRun, PipelineRun, PromptRun
from loopagent.actions.preview import preview
from loopagent.core.outcome import Outcome
from loopagent.core.params import check_params
from loopagent.core.reshape import ReshapeError, Template
from loopagent.errors import ActionError, RequestError
from loopagent.trials.action_tests import ActionTestResult, run_action_test


if TYPE_CHECKING:
    from loopagent.actions.format import ActionFile
    from loopagent.actions.means import Means
    from loopagent.library.surroundings import Surroundings


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of a test call; nowhere in it is a secret.

    `exchanges` are the requests that were sent, each with its answer, as `{request, response}`. `scope` is what
    `result.select` sees; None when there was no answer.
    """

    outcome: Outcome
    exchanges: tuple[dict[str, Any], ...] = ()
    scope: dict[str, Any] | None = None


@dataclass(slots=True)
class _Heard:
    """Remembers what an action tells of its call."""

    exchanges: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    scope: dict[str, Any] | None = None

    def hear(self, kind: str, data: dict[str, Any]) -> None:
        if kind == "exchange":
            self.exchanges.append(data)
        else:
            self.scope = data


def checked(action: FileAction, params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters that satisfy the schema, with its defaults.

    Raises:
        RequestError: `invalid_params`: they do not.
    """
    given, problems, _ = check_params(action.spec.parameters, dict(params))
    if problems:
        errors = [{"pointer": _pointer(one.path), "detail": one.message} for one in problems]
        text = "; ".join(map(str, problems[:5]))
        raise RequestError("invalid_params", f"The parameters are wrong: {text}.", errors=errors)
    return given


def _pointer(path: str) -> str:
    return "/params" + path.replace(".", "/").replace("[", "/").replace("]", "")


def shown(action: FileAction, params: Mapping[str, Any]) -> dict[str, Any]:
    """What a call would send, with names in place of secrets; nothing is sent.

    Returns:
        `kind`, and for `http` and `openapi` `method`, `url`, `headers` and perhaps `body`; for `prompt` `system`,
        `prompt` and `model`; for `mcp` `server`, `tool` and `arguments`; for `pipeline` the names of the `steps`.

    Raises:
        RequestError: `invalid_params`, or `no_request`: it cannot be made of these.
    """
    given, kind = checked(action, params), action.file.run.kind
    try:
        about = preview(action.sent, given) if kind in HTTP_KINDS else _other(action.file, given)
    except (ActionError, ReshapeError) as error:
        raise RequestError("no_request", str(error)) from error
    return {"kind": kind, **about}


def _other(file: ActionFile, params: dict[str, Any]) -> dict[str, Any]:
    run = file.run
    if isinstance(run, PromptRun):
        prompt = Template(run.template).fill({"params": params})
        return {"system": run.system, "prompt": prompt, "model": run.model}
    if isinstance(run, McpRun):
        return {"server": run.server, "tool": run.tool, "arguments": params}
    assert isinstance(run, PipelineRun)  # the page has no other kinds
    steps = [{"id": one.id, "action": one.action} for one in run.steps]
    return {"steps": steps, "params": params}


async def call(
    action: FileAction,
    params: Mapping[str, Any],
    around: Surroundings,
    means: Means,
    files: Mapping[str, str],
) -> Tried:
    """Call an action once, as an engine would, and look on.

    Raises:
        RequestError: `invalid_params`.
    """
    given, heard = checked(action, params), _Heard()
    file = action.file.model_copy(update={"enabled": True})
    watched = make_action(file, replace(means, heard=heard.hear), None, files)
    context = ActionContext("test", "1:action.0", agent="test", ask=around.ask)
    outcome = await around.invoker.invoke(watched, given, context)
    return Tried(outcome, tuple(heard.exchanges), heard.scope)


async def tests(file: ActionFile, means: Means, files: Mapping[str, str]) -> list[ActionTestResult]:
    """Run the tests inside of an action, against a stand-in; nothing outside of this machine is called."""

    def run() -> list[ActionTestResult]:
        return [run_action_test(file, one, means=means, documents=files) for one in file.tests]

    return await asyncio.to_thread(run)
