"""Looking into the artifacts of a run, for people: what the model's tools show, JSON as a tree, and differences."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from loopagent.artifacts import attempt, look
from loopagent.artifacts.changes import changes
from loopagent.artifacts.trees import tree
from loopagent.errors import RequestError
from loopagent.runtime.looking import Known


if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loopagent.app import App
    from loopagent.artifacts.source import Source
    from loopagent.artifacts.trees import Node
    from loopagent.core.outcome import Outcome
    from loopagent.core.state import Artifact, RunState

STATUS = {"no_artifact": 404, "busy": 503}
"""Of what goes wrong with a look; anything else is 422."""


def known(state: RunState, handle: str) -> Artifact:
    """An artifact of a run, by its letters or by its hash.

    Raises:
        RequestError: `unknown_artifact` (404).
    """
    named = (one for one in state.artifacts if handle.upper() == one.handle)
    hashed = (one for one in state.artifacts if handle == one.artifact_id)
    found = next(named, None) or next(hashed, None)
    if found is None:
        text = f"Run {state.id!r} has no artifact {handle!r}."
        raise RequestError("unknown_artifact", text, status=404)
    return found


async def look_into(
    app: App, run_id: str, handle: str, tool: str, params: Mapping[str, Any]
) -> Any:
    """Use one of the tools that the model has for this kind of artifact.

    Args:
        app: The app.
        run_id: The run.
        handle: Letters or hash of the artifact.
        tool: Name of the tool, as in `artifact_kinds.TOOLS`.
        params: Its parameters.

    Raises:
        RequestError: `unknown_run`, `unknown_artifact`, `no_artifact` (404); `busy` (503); `no_tool`, `bad_params`,
            `no_result`, `unreadable`, `timeout` (422).
    """

    def see(one: Source) -> Outcome:
        return look(one, tool, params)

    return await _seen(app, run_id, [handle], see)


async def tree_of(app: App, run_id: str, handle: str, path: str, start: int) -> Node:
    """JSON as a tree; errors as of `look_into`."""

    def see(one: Source) -> Outcome:
        return attempt(lambda: tree(one, path, start))

    found: Node = await _seen(app, run_id, [handle], see)
    return found


async def changes_of(app: App, run_id: str, before: str, after: str) -> dict[str, Any]:
    """What differs between two texts of a run, see `artifacts.changes`; errors as of `look_into`."""

    def see(one: Source, other: Source) -> Outcome:
        return attempt(lambda: changes(one, other))

    found: dict[str, Any] = await _seen(app, run_id, [before, after], see)
    return found


async def _seen(app: App, run_id: str, handles: list[str], see: Callable[..., Outcome]) -> Any:
    state = (await app.get(run_id)).state
    limits = state.spec.limits
    sources: list[Source] = []
    for one in handles:
        artifact = known(state, one)
        about = Known(artifact.artifact_id, artifact.kind, artifact.name)
        source = await app.looker.source(run_id, about, limits)
        if source is None:
            text = f"The content of artifact {one!r} is not kept any more."
            raise RequestError("no_artifact", text, status=404)
        sources.append(source)
    outcome = await app.looker.bounded(partial(see, *sources), limits.max_artifact_seconds)
    if outcome.error is not None:
        code = outcome.error.code
        raise RequestError(code, outcome.error.message, status=STATUS.get(code, 422))
    return outcome.value
