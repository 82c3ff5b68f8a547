"""The library of actions, in the database: how its statements are carried out here."""

from __future__ import annotations

import re
import sqlite3
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from loopagent.stores.library_sql import LibraryTables, Step
from loopagent.stores.sqlite.file import statements


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.stores.sqlite.readers import Readers
    from loopagent.stores.sqlite.writer import Writer


class SqliteLibrary(LibraryTables):
    """Keeps the library in the database of a store; see `LibraryStore`."""

    _writer: Writer
    _readers: Readers

    async def _fetched(self, query: str, *values: Any) -> Sequence[Any]:
        def read(db: sqlite3.Connection) -> list[tuple[Any, ...]]:
            return db.execute(_text(query), values).fetchall() if _is_ready(db) else []

        return await self._readers.run(read)

    async def _transact(self, first: Step, *more: Step) -> bool:
        def write(db: sqlite3.Connection) -> bool:
            _make_ready(db)
            query, values = first
            if db.execute(_text(query), values).fetchone() is None:
                return False
            for query, values in more:
                db.execute(_text(query), values)
            return True

        return await self._writer.submit(lambda: write)


@lru_cache(maxsize=100)
def _text(query: str) -> str:
    """The statement with its values named as SQLite names them."""
    return re.sub(r"\$([0-9]+)", r"?\1", query)


def _is_ready(db: sqlite3.Connection) -> bool:
    query = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'library_change'"
    return db.execute(query).fetchone() is not None


def _make_ready(db: sqlite3.Connection) -> None:
    if not _is_ready(db):
        script = files("loopagent.stores.sqlite").joinpath("library.sql").read_text("utf-8")
        for one in statements(script):
            db.execute(one)
