"""Stores: where runs are kept. `open_store` picks one by its URL."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Literal, cast
from urllib.parse import parse_qsl

from loopagent.errors import ConfigError
from loopagent.stores.memory import MemoryStore
from loopagent.stores.sqlite import SqliteStore


if TYPE_CHECKING:
    from collections.abc import Callable

    from loopagent.ports import Store

__all__ = ["MemoryStore", "SqliteStore", "open_store"]

ENTRY_POINTS = "loopagent.stores"
"""Entry point group: scheme → callable that takes the URL and returns a `Store`."""


def open_store(url: str) -> Store:
    """The store that a URL names; call its `open()` before using it.

    Args:
        url: `sqlite:///relative.db`, `sqlite:////absolute.db` (options: `?synchronous=NORMAL`,
            `&durability=turn`, `&hold_seconds=0.02`, `&busy_timeout_seconds=30`, `&inline_seconds=0`,
            `&max_bytes=…`), `sqlite://` or `memory://` for a store that ends with the process,
            `postgresql://user:password@host/database` (options: see `PostgresStore`), or a scheme of
            an installed plugin.

    Raises:
        ConfigError: The URL names no store that is available.
    """
    scheme, separator, rest = url.partition("://")
    if separator and scheme in ("postgresql", "postgres"):
        return _postgres(url)
    if separator and scheme in _BUILT_IN:
        return _BUILT_IN[scheme](rest)
    for plugin in entry_points(group=ENTRY_POINTS, name=scheme) if separator else ():
        return cast("Callable[[str], Store]", plugin.load())(url)
    # The URL itself may hold a password, so it is not repeated.
    named = f"store scheme {scheme!r}" if separator else "store without a scheme"
    raise ConfigError(
        f"Unknown {named}: use sqlite:///runs.db, sqlite:////srv/runs.db, postgresql://… or memory://."
    )


def _memory(rest: str) -> Store:
    if rest:
        raise ConfigError("memory:// takes no path: its runs end with the process.")
    return MemoryStore()


def _postgres(url: str) -> Store:
    try:
        found = import_module("loopagent.stores.postgres")
    except ModuleNotFoundError as error:
        if error.name not in ("asyncpg", None):
            raise
        raise ConfigError(
            "A PostgreSQL store needs a driver that is not installed: pip install 'loopagent[postgres]'."
        ) from error
    return cast("Store", found.PostgresStore(url))


def _sqlite(rest: str) -> Store:
    path, _, query = rest.partition("?")
    if not path:
        return _memory(query)
    if not path.startswith("/") or path == "/":
        raise ConfigError(
            "A SQLite URL has three slashes before a relative path and four before an absolute one:"
            " sqlite:///runs.db, sqlite:////srv/runs.db."
        )
    options = dict(parse_qsl(query, keep_blank_values=True))
    unknown = ", ".join(sorted(set(options) - set(_SQLITE_OPTIONS)))
    if unknown:
        names = ", ".join(_SQLITE_OPTIONS)
        raise ConfigError(f"Unknown SQLite option {unknown}: there is {names}.")
    values = {**_SQLITE_OPTIONS, **options}
    try:
        return SqliteStore(
            path[1:],
            synchronous=values["synchronous"],
            durability=cast('Literal["effect", "turn"]', values["durability"]),
            hold_seconds=float(values["hold_seconds"]),
            busy_timeout_seconds=float(values["busy_timeout_seconds"]),
            inline_seconds=float(values["inline_seconds"]),
            max_bytes=int(values["max_bytes"]) if values["max_bytes"] else None,
        )
    except ValueError as error:
        raise ConfigError(f"A SQLite option has a wrong value: {error}.") from error


_BUILT_IN: dict[str, Callable[[str], Store]] = {"memory": _memory, "sqlite": _sqlite}
_SQLITE_OPTIONS = {
    "synchronous": "FULL",
    "durability": "effect",
    "hold_seconds": "0.02",
    "busy_timeout_seconds": "30",
    "inline_seconds": "0.001",
    "max_bytes": "",
}
"""Options of a SQLite URL with their defaults; an empty text is none."""
