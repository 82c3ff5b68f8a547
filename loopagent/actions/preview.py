"""What an action would send, without sending it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopagent.actions.format_http import HttpRun
from loopagent.actions.request import make_request
from loopagent.actions.secrets import Revealed, SecretValue
from loopagent.errors import ActionError


if TYPE_CHECKING:
    from loopagent.actions.format import ActionFile


class _Hidden:
    """Gives the name of a secret in its place."""

    def __init__(self, hosts: tuple[str, ...]) -> None:
        self._hosts = hosts

    def get(self, name: str) -> SecretValue | None:
        return SecretValue(name, f"[secret {name}]", self._hosts)


def preview(
    file: ActionFile, params: dict[str, Any], *, place: tuple[str, str] = ("run", "step")
) -> dict[str, Any]:
    """The request of a call: `{method, url, headers, body?}`, with names in place of secrets.

    Args:
        file: The action, of kind `http`.
        params: Parameters that satisfy its schema.
        place: Id of the run and of the call in it, as far as the request says where it comes from.

    Raises:
        ActionError: It is of another kind, or the request cannot be made.
    """
    if not isinstance(file.run, HttpRun):
        text = f"{file.name} is of kind {file.run.kind}; only requests of kind http can be shown."
        raise ActionError(text, code="not_http")
    scope = {
        "params": params,
        "run": {"id": place[0]},
        "step": {"id": place[1]},
        "call": {"key": "/".join(place)},
    }
    request = make_request(file, file.run, scope, Revealed(_Hidden(file.egress.hosts)))
    shown = request.public()
    if file.run.auth is not None and file.run.auth.type == "oauth2":
        shown["headers"]["authorization"] = f"Bearer [token of {file.run.auth.token_url}]"
    return shown
