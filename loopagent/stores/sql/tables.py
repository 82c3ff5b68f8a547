"""What is the same in all databases: one text of each statement, which a store carries out in its own way.

Values are `$1`, `$2` and so on. A store says how it reads and how it carries out a script, and what it calls the few
things that databases have no common word for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

from loopagent.errors import StoreError
from loopagent.stores import records


T = TypeVar("T")
Step: TypeAlias = tuple[str, Sequence[Any]]
"""A statement and its values."""
Rows: TypeAlias = Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Many:
    """A statement that is carried out once for each row of values; it brings no rows."""

    query: str
    values: Rows


Script: TypeAlias = Generator[Step | Many, Rows, T]
"""Work in one transaction: asks for statements, is sent the rows they bring, and ends with a result."""


class NoSuchTextError(StoreError):
    """A text that the database cannot keep; whoever looks for one finds nothing."""


class Done(NamedTuple):
    """What became of a change.

    Attributes:
        rows: What its first statement brought.
        again: It may have been made before, over a connection that was lost before it could say so.
    """

    rows: Rows
    again: bool = False


@dataclass(frozen=True, slots=True)
class Dialect:
    """What databases have no common word for.

    Attributes:
        within: Function of two texts: where the second stands in the first, 0 when it does not.
        member: Text of a member of a JSON object; `{column}` and `{name}` stand for the two.
        person: Name of the columns that name a person.
        passing: End of a query that takes rows to change them and passes by those that somebody else changes.
    """

    within: str
    member: str
    person: str
    passing: str


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """A list that is read by pages.

    Attributes:
        name: What its cursors are called.
        query: Its rows, of which the first column is `key`.
        key: That column.
        made: What becomes of a row.
    """

    name: str
    query: str
    key: str
    made: Callable[[Sequence[Any]], T]


class Tables(ABC):
    """Carries out statements in the database of a store."""

    _dialect: ClassVar[Dialect]

    @abstractmethod
    async def _read(self, query: str, values: Sequence[Any]) -> Rows:
        """The rows that a query brings; none where its table is yet to be made.

        Raises:
            NoSuchTextError: The database holds no such text.
        """

    @abstractmethod
    async def _transact(self, script: Callable[[bool], Script[T]], *, alone: bool = False) -> T:
        """Carry out a script. A table that is yet to be made has no rows until the first INSERT into it.

        Args:
            script: Begins it; is told whether it may have been carried out before, and nobody knows.
            alone: It asks for one statement only, which needs no transaction around it.

        Raises:
            NoSuchTextError: The database cannot keep such a text.
        """

    async def _fetched(self, query: str, *values: Any) -> Rows:
        """The rows that a query brings; none for texts that the database cannot keep."""
        try:
            return await self._read(query, values)
        except NoSuchTextError:
            return ()

    async def _page(
        self,
        listing: Listing[T],
        wanted: Mapping[str, Any],
        *fixed: str,
        cursor: str | None,
        limit: int,
        newest: bool = True,
    ) -> tuple[list[T], str | None]:
        """A page of a list by its keys, and the cursor behind it; the conditions are those of `where`."""
        behind, size = records.decode_cursor(listing.name, cursor), records.page_size(limit)
        after, order = ("<", "DESC") if newest else (">", "ASC")
        text, values = where({**wanted, f"{listing.key} {after} @": behind}, *fixed)
        query = f"{listing.query} {text} ORDER BY {listing.key} {order} LIMIT {size + 1}"
        found = await self._fetched(query, *values)
        rows = [listing.made(one) for one in found[:size]]
        return rows, records.next_cursor(listing.name, found, size)

    async def _put(self, first: Step, *more: Step | Many) -> Done:
        """Add something: statements in one transaction; only the first when that brings no row."""

        def script(again: bool) -> Script[Done]:
            rows = yield first
            if rows:
                for one in more:  # noqa: UP028 - what is sent could not get to a tuple
                    yield one
            return Done(rows, again)

        return await self._transact(script, alone=not more)

    async def _change(self, first: Step, *more: Step | Many) -> Done:
        """Change what is there, as `_put` does; nothing for texts that the database cannot keep."""
        try:
            return await self._put(first, *more)
        except NoSuchTextError:
            return Done(())


def where(conditions: Mapping[str, Any], *fixed: str) -> tuple[str, list[Any]]:
    """A WHERE clause and its values.

    Args:
        conditions: Texts and their values, for which `@` stands; those whose value is None are left out.
        fixed: Conditions that need no value.
    """
    given = {name: one for name, one in conditions.items() if one is not None}
    named = [name.replace("@", f"${place}") for place, name in enumerate(given, 1)]
    text = " AND ".join([*fixed, *named])
    return f"WHERE {text}" if text else "", list(given.values())


def among(texts: frozenset[str]) -> str:
    """A list of words that this package chose, as statements name them."""
    quoted = [f"'{one}'" for one in sorted(texts)]
    return f"({', '.join(quoted)})"
