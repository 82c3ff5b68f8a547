"""Actions of kind `openapi`: an operation of a document that lies beside the file, carried out as `http`."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopagent.actions.format import ActionFile, OpenApiRun
from loopagent.actions.importing.document import ApiDocument, read_api
from loopagent.actions.importing.fetching import read_api_file
from loopagent.actions.importing.operations import Options, draft_of
from loopagent.actions.reading import read_action
from loopagent.errors import ConfigError


if TYPE_CHECKING:
    from collections.abc import Mapping


def as_http(
    file: ActionFile,
    run: OpenApiRun,
    path: Path | None,
    documents: Mapping[str, str] | None = None,
) -> ActionFile:
    """The same action as kind `http`.

    Args:
        file: The file.
        run: Its `run`.
        path: Where the file is; the document lies in its folder or below it.
        documents: The documents there are, by name, instead of those of the folder; None for the folder.

    Raises:
        ConfigError: There is no such document or operation, or it does not fit the rest of the file.
    """
    document = _document(run, path) if documents is None else _given(run, documents)
    draft = draft_of(document, run.operation, Options(file.name, run.server))
    if draft.problems:
        text = f"the operation {run.operation} of {run.spec} cannot be used"
        raise ConfigError(f"{text}: {'; '.join(draft.problems)}")
    made: Mapping[str, Any] = file.model_dump(mode="json", by_alias=True, exclude_unset=True)
    http = {key: one for key, one in draft.action["run"].items() if key != "auth"}
    if run.auth is not None:
        http["auth"] = made["run"]["auth"]
    written = read_action({**made, "params": file.params or draft.action["params"], "run": http})
    if written.action is None:
        found = [f"{one.where}: {one.what}" for one in written.complaints.found if not one.warning]
        raise ConfigError(f"does not fit the operation {run.operation}: {'; '.join(found)}")
    return written.action


def _document(run: OpenApiRun, path: Path | None) -> ApiDocument:
    folder = (path.parent if path is not None else Path()).resolve()
    found = (folder / run.spec).resolve()
    if not found.is_relative_to(folder):
        raise ConfigError(
            f"the document {run.spec} has to lie in the folder of the file, or below it"
        )
    stamp = found.stat().st_mtime_ns if found.exists() else 0
    return _read(found, stamp)


def _given(run: OpenApiRun, documents: Mapping[str, str]) -> ApiDocument:
    text = documents.get(run.spec)
    if text is None:
        known = ", ".join(sorted(documents)) or "none"
        raise ConfigError(f"there is no document {run.spec!r} with this action (known: {known})")
    return _parsed(text, run.spec)


@lru_cache(maxsize=8)
def _parsed(text: str, name: str) -> ApiDocument:
    """A document, read once for all actions that bring it."""
    return read_api(text, name)


@lru_cache(maxsize=8)
def _read(path: Path, _stamp: int) -> ApiDocument:
    """A document, read once for all actions that name it."""
    return read_api_file(path)
