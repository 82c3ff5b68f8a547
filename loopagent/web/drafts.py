"""What the pages that make drafts share: where they are saved, and the secrets that they name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from loopagent.actions.build import FileAction
from loopagent.actions.reading import read_actions
from loopagent.actions.secret_list import SecretState, secret_states
from loopagent.core.json_values import copied
from loopagent.documents import DocumentError
from loopagent.errors import ConfigError, RequestError
from loopagent.library.editing.splicing import SpliceError, rewritten
from loopagent.web.posts import Fields, one
from loopagent.web.shared import app_of, caller_of, tenant_of


if TYPE_CHECKING:
    from loopagent.actions.format import ActionFile
    from loopagent.actions.means import Means
    from loopagent.library.service import Library

WHERE = Path("action.yaml")


def library_of(request: Request) -> Library:
    """The actions that are built in the page."""
    return app_of(request).library


def means_of(request: Request) -> Means:
    """What actions may use."""
    return library_of(request).around.means


async def known_actions(request: Request) -> list[ActionFile]:
    """Every action of files and drafts that can be read."""
    made = [one.file for one in app_of(request).actions.values() if isinstance(one, FileAction)]
    for built in await library_of(request).list(tenant_of(request)):
        made += (await asyncio.to_thread(read_actions, built.draft, WHERE)).actions
    return made


async def secrets_named(request: Request, names: Iterable[str]) -> list[SecretState]:
    """How the secrets of these names stand."""
    wanted = set(names)
    found = secret_states(means_of(request).secrets, [("", wanted)])
    return [each for each in found if each.name in wanted]


async def save_new(
    request: Request, sent: Fields, refused: Callable[[RequestError], Response]
) -> Response:
    """Save what was typed as a new draft and go to its editor.

    Args:
        request: The request.
        sent: Its fields: `text`, and `name` for another name than that in the text.
        refused: The page again, when it cannot be saved.
    """
    try:
        name, text = _named(one(sent, "text"), one(sent, "name").strip())
        await library_of(request).save(
            tenant_of(request), name, text, expected_hash=None, by=caller_of(request).by
        )
    except RequestError as error:
        return refused(error)
    return RedirectResponse(f"/actions/{quote(name)}", 303)


def _named(text: str, name: str) -> tuple[str, str]:
    """The name of an action, and its text, which says the same name."""
    value = said(text)
    if name and name != value.get("name"):
        return name, rewritten_text(text, {**value, "name": name})
    name = str(value.get("name") or "")
    if not name:
        raise RequestError("no_name", "Give the action a name.", status=422)
    return name, text


def rewritten_text(text: str, wanted: dict[str, Any]) -> str:
    """A text that says what is wanted, with all that does not change as it was typed.

    Raises:
        RequestError: `bad_yaml` (422): only its author can change it.
    """
    try:
        return rewritten(text, wanted)
    except (SpliceError, DocumentError) as error:
        raise RequestError("bad_yaml", str(error), status=422) from error


def said(text: str) -> dict[str, Any]:
    """What a text says.

    Raises:
        RequestError: `bad_yaml` (422).
    """
    reading = read_actions(text, WHERE)
    if reading.unreadable or len(reading.written) != 1:
        why = "; ".join(reading.unreadable) or "it has to be one action"
        raise RequestError("bad_yaml", f"The text cannot be read: {why}.", status=422)
    value: dict[str, Any] = copied(reading.written[0].complaints.document.value)
    return value


def shown_error(error: ConfigError) -> str:
    """An error of the settings or of a document, with what is wrong in particular."""
    return "; ".join([str(error), *error.problems[:10]])[:2_000]
