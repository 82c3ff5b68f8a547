"""Actions of kind `pipeline`: several actions, one after another, each called by the one invoker."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from loopagent.actions.inside import call_inside
from loopagent.actions.shaping import shape
from loopagent.actions.values import ABSENT, render, render_each
from loopagent.core.json_values import is_array
from loopagent.core.params import check_params
from loopagent.core.reshape import Expression, ReshapeError
from loopagent.errors import ActionError


if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from loopagent.action import ActionContext
    from loopagent.actions.format import ActionFile, PipelineRun, PipelineStep
    from loopagent.actions.means import Means

MAX_NESTED: Final = 5
"""Pipelines inside of pipelines."""


def pipeline_runner(
    file: ActionFile, run: PipelineRun, means: Means
) -> Callable[[dict[str, Any], ActionContext], Awaitable[Any]]:
    """What carries out calls of a pipeline."""

    async def call(params: dict[str, Any], context: ActionContext) -> Any:
        value = await _Walk(run, means, params, context).result()
        if means.heard is not None:
            means.heard("scope", {"result": value, "params": params})
        return shape(file, {"result": value, "params": params}, value)

    return call


@dataclass(slots=True)
class _Walk:
    """One call of a pipeline."""

    run: PipelineRun
    means: Means
    params: dict[str, Any]
    context: ActionContext
    results: dict[str, Any] = field(default_factory=dict[str, Any])

    async def result(self) -> Any:
        value: Any = None
        for step in self.run.steps:
            try:
                value = await self._step(step)
            except ReshapeError as error:
                raise ActionError(f"Step {step.id}: {error}.", code="invalid_request") from error
            self.results[step.id] = value
        if "output" not in self.run.model_fields_set:
            return value
        try:
            made = render(self.run.output, self._scope(), _no_secret)
        except ReshapeError as error:
            raise ActionError(f"The output cannot be made: {error}.", code="bad_answer") from error
        return None if made is ABSENT else made

    def _scope(self, **more: Any) -> dict[str, Any]:
        return {"params": self.params, "steps": self.results, **more}

    async def _step(self, step: PipelineStep) -> Any:
        if step.for_each is None:
            scope = self._scope()
            return await self._called(step, scope, step.id) if _wanted(step, scope) else None
        items = Expression(step.for_each).of(self._scope())
        if not is_array(items):
            raise ReshapeError(f"forEach {step.for_each!r} gives no list")
        if len(items) > self.run.max_items:
            raise ReshapeError(
                f"forEach gives {len(items)} items, {self.run.max_items} are allowed"
            )
        self.context.progress(f"step {step.id}: {len(items)} calls of {step.action}")
        slots = asyncio.Semaphore(step.max_concurrency)
        async with asyncio.TaskGroup() as group:
            calls = [
                group.create_task(self._each(step, slots, index, item))
                for index, item in enumerate(items)
            ]
        ended = [one.result() for one in calls]
        failed = next((one for one in ended if isinstance(one, Exception)), None)
        if failed is not None:
            raise failed
        return ended

    async def _each(
        self, step: PipelineStep, slots: asyncio.Semaphore, index: int, item: Any
    ) -> Any:
        """The result for one item; a failure is given back, so that those under way come to their end."""
        async with slots:
            scope = self._scope(item=item, index=index)
            try:
                if not _wanted(step, scope):
                    return None
                return await self._called(step, scope, f"{step.id}.{index}")
            except (ActionError, ReshapeError) as error:
                return error

    async def _called(self, step: PipelineStep, scope: dict[str, Any], name: str) -> Any:
        action = self.means.actions.get(step.action)
        if action is None:
            text = f"Step {step.id}: there is no action {step.action!r}."
            raise ActionError(text, code="unknown_action", fatal=True)
        if self.context.effect_id.count("/") >= MAX_NESTED:
            raise ActionError(f"Step {step.id}: pipelines are nested too deeply.", code="too_deep")
        params, problems, _ = check_params(
            action.spec.parameters, render_each(step.with_, scope, _no_secret)
        )
        if problems:
            text = f"Step {name} ({step.action}): {problems[0]}."
            raise ActionError(text, code="invalid_params")
        try:
            return await call_inside(self.context, action, params, name)
        except ActionError as error:
            if step.on_error == "null" and not error.fatal:
                return None
            text = f"Step {name} ({step.action}): {error}"
            raise ActionError(
                text, code=error.code, fatal=error.fatal, may_have_run=error.may_have_run
            ) from error


def _wanted(step: PipelineStep, scope: dict[str, Any]) -> bool:
    return step.when is None or Expression(step.when).holds(scope)


def _no_secret(name: str) -> str:
    raise ReshapeError(f"secrets such as {name!r} are for http actions")
