"""Under which names a server is called that lets everybody in.

A page of another site can have its own name lead to this machine once it is loaded (DNS rebinding); to the browser, the
server is then that site. Such a name has a dot and belongs to somebody; those of this machine do not.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit


if TYPE_CHECKING:
    from collections.abc import Iterable

OWN_SUFFIXES: Final = (".localhost", ".internal")
"""Ends of names that nobody can register."""


def is_own_name(host: str, named: Iterable[str] = ()) -> bool:
    """Whether the `Host` of a request is an address, a name without a dot, or one that is known to be this server's.

    Args:
        host: What the header says, with or without a port; empty from clients that send none, which browsers are not.
        named: The names that the operator gave.
    """
    if not host:
        return True
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return False
    return (
        bool(name) and ("." not in name or name.endswith(OWN_SUFFIXES) or name in named)
    ) or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
