"""How statements that all databases share are carried out here.

Tables that many files never need are made by the first INSERT into one of them, so that a file without costs nothing.
"""

from __future__ import annotations

import re
import sqlite3
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar

from loopagent.stores.sql import SharedTables
from loopagent.stores.sql.tables import Dialect, Many, Rows, Script, Step
from loopagent.stores.sqlite.file import statements


if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loopagent.stores.sqlite.readers import Readers
    from loopagent.stores.sqlite.writer import Writer

T = TypeVar("T")
_MADE_LATER = {
    "desk": ("desk",),
    "keys": ("api_key", "session"),
    "library": ("built_action", "built_version", "definition", "library_change"),
    "notes": ("note", "note_text"),
    "notices": ("notice",),
    "receivers": ("receiver",),
    "triggers": ("trigger_state", "delivery"),
}
"""Scripts, and the tables that they make."""
_SCRIPTS = {f"no such table: {one}": name for name, tables in _MADE_LATER.items() for one in tables}


class SqliteTables(SharedTables):
    """The part of the SQLite store whose statements are those of all databases."""

    _dialect = Dialect(
        within="instr",
        member="json_extract({column}, '$.{name}')",
        person="user",
        passing="",  # one writes at a time
    )
    _writer: Writer
    _readers: Readers

    async def _read(self, query: str, values: Sequence[Any]) -> Rows:
        return await self._readers.run(lambda db: fetched(db, query, values))

    async def _transact(self, script: Callable[[bool], Script[T]], *, alone: bool = False) -> T:
        del alone
        return await self._writer.submit(lambda: lambda db: _carried_out(db, script(False)))


def fetched(db: sqlite3.Connection, query: str, values: Sequence[Any]) -> Rows:
    """The rows that a statement brings."""
    return _done(db, query, lambda text: db.execute(text, values).fetchall())


def done_for_all(db: sqlite3.Connection, query: str, values: Rows) -> None:
    """Carry out a statement for each row of values."""
    _done(db, query, lambda text: db.executemany(text, values).fetchall())


def _done(db: sqlite3.Connection, query: str, do: Callable[[str], Rows]) -> Rows:
    text = _text(query)
    try:
        return do(text)
    except sqlite3.OperationalError as error:
        script = _SCRIPTS.get(str(error))
        if script is None:
            raise
    if not text.startswith("INSERT"):
        return ()
    for one in statements(
        files("loopagent.stores.sqlite").joinpath(f"{script}.sql").read_text("utf-8")
    ):
        db.execute(one)
    return do(text)


def _carried_out(db: sqlite3.Connection, script: Script[T]) -> T:
    try:
        step = next(script)
        while True:
            step = script.send(_rows(db, step))
    except StopIteration as end:
        result: T = end.value
        return result


def _rows(db: sqlite3.Connection, step: Step | Many) -> Rows:
    if isinstance(step, Many):
        done_for_all(db, step.query, step.values)
        return ()
    return fetched(db, *step)


@lru_cache(maxsize=200)
def _text(query: str) -> str:
    """The statement with its values named as SQLite names them."""
    return re.sub(r"\$([0-9]+)", r"?\1", query.strip())
