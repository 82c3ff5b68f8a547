"""Action files to actions: what agents call, and the one invoker carries out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from pydantic import BaseModel

from loopagent.action import Action, ActionContext
from loopagent.actions.checks_names import NO_PARAMS
from loopagent.actions.format import HTTP_KINDS, ActionFile, OpenApiRun, PythonRun
from loopagent.actions.format_approval import ApprovalSection
from loopagent.actions.http_kind import http_runner
from loopagent.actions.mcp_kind import mcp_runner
from loopagent.actions.means import Means
from loopagent.actions.openapi_kind import as_http
from loopagent.actions.pipeline_kind import pipeline_runner
from loopagent.actions.prompt_kind import prompt_runner
from loopagent.actions.python_kind import function_of, python_runner
from loopagent.actions.shaping import keeping_of
from loopagent.code_digest import function_digest
from loopagent.core.action_spec import ActionRetry, ActionSpec
from loopagent.core.hashing import json_hash
from loopagent.errors import ActionError, ConfigError


if TYPE_CHECKING:
    from pathlib import Path

    from loopagent.actions.format import McpRun, PipelineRun, PromptRun
    from loopagent.actions.format_http import HttpRun

Runner: TypeAlias = Callable[[dict[str, Any], ActionContext], Awaitable[Any]]
"""Carries out one call: parameters that satisfy the schema, and what is known of the call."""
Made: TypeAlias = tuple[Runner, dict[str, Any] | None]
"""A runner, and the schema of the parameters where the file may leave it out."""


KINDS: Final[dict[str, Callable[[ActionFile, Means], Made]]] = {
    "http": lambda file, means: (http_runner(file, cast("HttpRun", file.run), means), None),
    "mcp": lambda file, means: (mcp_runner(file, cast("McpRun", file.run), means), None),
    "prompt": lambda file, means: (
        prompt_runner(file, cast("PromptRun", file.run), means),
        None,
    ),
    "pipeline": lambda file, means: (
        pipeline_runner(file, cast("PipelineRun", file.run), means),
        None,
    ),
}
"""What makes the runner of each kind."""


DISABLED: Final = "{name} is disabled; look at its file, then set `enabled: true` in it"
"""What is said of an action that nobody has looked at."""


class FileAction(Action[..., Any]):
    """An action that was made of a file.

    Args:
        file: The file.
        run: Carries out calls.
        parameters: The schema, where the file has none.
        path: Where the file is.
    """

    def __init__(
        self,
        file: ActionFile,
        run: Runner,
        parameters: dict[str, Any] | None = None,
        path: Path | None = None,
    ) -> None:
        self.file = file
        self.path = path
        self.keeping = keeping_of(file)
        self.sent = file
        """The file with the request that is sent, for kinds that take it from elsewhere."""

        async def call(params: dict[str, Any], context: ActionContext | None) -> Any:
            if not file.enabled:
                raise ActionError(DISABLED.format(name=file.name), code="action_disabled")
            return await run(params, context or ActionContext("", ""))

        call.__name__ = call.__qualname__ = file.name
        super().__init__(call, spec_of(file, parameters), BaseModel, ("context",))

    def arguments(self, params: dict[str, Any], context: ActionContext | None) -> dict[str, Any]:
        """The parameters as they are: a file has a schema and no types."""
        return {"params": params, "context": context}


def is_disabled(action: Action[..., Any]) -> bool:
    """Whether an action was made of a file that a person has not enabled yet."""
    return isinstance(action, FileAction) and not action.file.enabled


class StandIn(Action[..., Any]):
    """An action that only looks like another one.

    Args:
        spec: Of the other one.
        run: Carries out calls.
    """

    def __init__(self, spec: ActionSpec, run: Runner) -> None:
        async def call(params: dict[str, Any], context: ActionContext) -> Any:
            return await run(params, context)

        super().__init__(call, spec, BaseModel, ("context",))

    def arguments(self, params: dict[str, Any], context: ActionContext | None) -> dict[str, Any]:
        """The parameters as they are."""
        return {"params": params, "context": context}


def spec_of(file: ActionFile, parameters: dict[str, Any] | None = None) -> ActionSpec:
    """What the engine knows about the action of a file.

    Args:
        file: The file.
        parameters: The schema, where the file has none.
    """
    approval = file.approval or ApprovalSection()
    return ActionSpec(
        name=file.name,
        description=file.description,
        parameters=file.params or parameters or NO_PARAMS,
        effects=file.effect_class,
        approval=approval.policy,
        asking=approval.asking,
        fingerprint=digest_of(file) if approval.remember != "never" else "",
        timeout_ms=max(1_000, round(file.timeout * 1000)),
        idempotent=file.idempotent or file.idempotency is not None,
        max_calls=file.limits.per_run,
        retry=_retry(file),
        max_result_chars=file.result.max_chars,
    )


def digest_of(file: ActionFile) -> str:
    """SHA-256 of what an action does, without its tests and examples."""
    said = file.model_dump(mode="json", by_alias=True, exclude={"tests", "examples"})
    return json_hash(said)


def _retry(file: ActionFile) -> ActionRetry:
    """Repetition by the invoker; kinds that send requests have their own, which knows more."""
    if file.run.kind in HTTP_KINDS:
        return ActionRetry()
    return ActionRetry(max_attempts=file.retry.attempts, backoff_seconds=file.retry.wait)


def _of_python(file: ActionFile, means: Means, path: Path | None) -> FileAction:
    assert isinstance(file.run, PythonRun)
    function = function_of(file, file.run, means.allowed_modules)
    made = FileAction(file, python_runner(file, function), function.spec.parameters, path)
    if made.spec.fingerprint:
        both = json_hash([made.spec.fingerprint, function_digest(function.fn)])
        made.spec = made.spec.model_copy(update={"fingerprint": both})
    return made


def make_action(
    file: ActionFile,
    means: Means,
    path: Path | None = None,
    documents: Mapping[str, str] | None = None,
) -> FileAction:
    """The action of a file.

    Args:
        file: The file, checked.
        means: What it may use.
        path: Where the file is.
        documents: The OpenAPI documents that belong to it, by name; None when they lie beside the file.

    Raises:
        ConfigError: It cannot be carried out here.
    """
    if isinstance(file.run, OpenApiRun):
        http = as_http(file, file.run, path, documents)
        runner = http_runner(http, cast("HttpRun", http.run), means)
        made = FileAction(file, runner, http.params, path)
        made.sent = http
        if made.spec.fingerprint:
            made.spec = made.spec.model_copy(update={"fingerprint": digest_of(http)})
        return made
    kind = file.run.kind
    if isinstance(file.run, PythonRun):
        return _of_python(file, means, path)
    maker = KINDS.get(kind)
    if maker is None:
        raise ConfigError(f"actions of kind {kind} are not supported by this version of loopagent")
    return FileAction(file, *maker(file, means), path)
