"""The one way out: every HTTP request of the package goes through here, and only where it may.

`EgressPolicy` says which schemes, hosts, ports and networks may be reached; `GuardedClient` holds every connection
to it, at the address that is really dialled. Nothing else in the package opens a connection.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from loopagent.egress.policy import EgressDeniedError, EgressPolicy, EgressSettings


if TYPE_CHECKING:
    from loopagent.egress.client import Answer, Bounds, GuardedClient, opened, operator_policy
    from loopagent.egress.decoding import TooLongError, decoded


__all__ = [
    "Answer",
    "Bounds",
    "EgressDeniedError",
    "EgressPolicy",
    "EgressSettings",
    "GuardedClient",
    "TooLongError",
    "decoded",
    "opened",
    "operator_policy",
]
_DECODING = frozenset({"TooLongError", "decoded"})


def __getattr__(name: str) -> Any:
    """Load the client when it is first asked for: a program that calls nobody need not wait for it."""
    if name not in __all__:
        raise AttributeError(name)
    module = "decoding" if name in _DECODING else "client"
    return getattr(import_module(f"{__name__}.{module}"), name)
