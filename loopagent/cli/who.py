"""At the terminal: who is sitting there, and what a card says of approvals beside its content."""

from __future__ import annotations

import json
import os
import time
from typing import Any, Final

from loopagent.access import OPERATOR, Caller
from loopagent.app import App
from loopagent.cli.output import out, visible
from loopagent.errors import ConfigError


EXPIRY: Final = {"fail": "the run fails", "cancel": "the server is told that nobody answers"}
"""What happens when nobody answers in time."""
KEY_VARIABLE: Final = "LOOPAGENT_KEY"
"""Environment variable with the API key of whoever sits at the terminal."""


async def who_here(app: App) -> Caller:
    """Who sits at the terminal: whoever has the key in the environment, else whoever runs the program.

    Raises:
        ConfigError: The key is none, or was revoked.
    """
    text = os.environ.get(KEY_VARIABLE, "")
    if not text:
        return OPERATOR
    found = await app.keys.caller(text)
    if found is None:
        raise ConfigError(f"{KEY_VARIABLE} holds no key that is known here")
    return found


def show_terms(subject: dict[str, Any], expires_at: float | None) -> None:
    """Why a person is asked, who may answer until when, and what is different from what was refused before."""
    why = subject.get("why") or {}
    if why.get("text"):
        out.print(visible(f"asked because: {why['text']}"))
    if subject.get("server"):
        out.print(visible(f"asked by the MCP server {subject['server']}; the answer goes to it"))
    for key in ("warning", "url"):
        if subject.get(key):
            out.print(visible(str(subject[key])))
    if subject.get("approvers"):
        out.print(visible(f"may be answered by: {', '.join(map(str, subject['approvers']))}"))
    if expires_at:
        left = max(0.0, expires_at - time.time())
        then = EXPIRY.get(str(subject.get("onExpiry")), "it is refused")
        out.print(visible(f"open for {left:,.0f} s more, then {then}"))
    if subject.get("remember"):
        out.print(visible(f"may be remembered for: {', '.join(subject['remember'])}"))
    before = subject.get("before") or {}
    if before:
        said = f": {before['feedback']}" if before.get("feedback") else ""
        out.print(visible(f"asked for before and not approved ({before['decision']}){said}"))
        for one in before.get("changes") or [{"same": True}]:
            out.print(visible(f"  {change_line(one)}"))


def change_line(change: dict[str, Any]) -> str:
    """One difference between what was refused and what is asked for now."""
    if change.get("same"):
        return "nothing is different"
    where = ".".join(map(str, change.get("path", ()))) or "all"
    old, new = (json.dumps(change.get(one), ensure_ascii=False) for one in ("old", "new"))
    return f"{where}: {old} -> {new}"


def show_preview(preview: dict[str, Any] | None) -> None:
    """The request that would be sent."""
    if preview is None:
        return
    if "error" in preview:
        out.print(visible(f"the request cannot be shown: {preview['error']}"))
        return
    out.print(visible(f"{preview['method']} {preview['url']}"))
    for name, value in preview["headers"].items():
        out.print(visible(f"{name}: {value}"))
    if "body" in preview:
        out.print(visible(str(preview["body"])))
