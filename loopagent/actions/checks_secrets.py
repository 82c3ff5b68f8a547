"""Whether the secrets that an action names are there, and for its host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopagent.core.names import closest
from loopagent.egress.client import checked_url
from loopagent.egress.policy import matches, plain_host


if TYPE_CHECKING:
    from collections.abc import Mapping

    from loopagent.actions.format import ActionFile
    from loopagent.actions.reading import Written
    from loopagent.actions.secrets import Credential


def check_known(written: Written, known_secrets: Mapping[str, Credential]) -> None:
    """Complain about secrets that nobody set up, or that are for other hosts.

    Args:
        written: The action; gets the complaints.
        known_secrets: Those that the operator set up, by name.
    """
    action = written.action
    if action is None:
        return
    for index, name in enumerate(action.secrets):
        known = known_secrets.get(name)
        if known is None:
            near = closest(name, sorted(known_secrets))
            hint = (
                f"; did you mean {near[0]}?"
                if near
                else f"; add [credentials.{name}] to loopagent.toml"
            )
            what = f"there is no secret {name!r}{hint}"
            written.complaints.add(("secrets", index), what, warning=not action.enabled)
        elif missing := _unbound(action, known.hosts):
            what = f"the secret {name} is not for {missing}; its `hosts` in loopagent.toml do not list it"
            written.complaints.add(("secrets", index), what)


def _unbound(action: ActionFile, hosts: tuple[str, ...]) -> str:
    """The host of the action's address when it is none of the hosts."""
    url = getattr(action.run, "url", "")
    host = plain_host(checked_url(url).host) if url else ""
    return host if host and not matches(host, hosts) else ""
