"""Sessions as rows of a database: who signed in at a provider is kept as JSON in one column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from loopagent.key_port import Person, SessionRow


if TYPE_CHECKING:
    from collections.abc import Sequence

_PERSON: TypeAdapter[Person] = TypeAdapter(Person)


def session_values(row: SessionRow) -> tuple[Any, ...]:
    """The columns of a session: hash, key, times, tenant, person."""
    person = None if row.person is None else _PERSON.dump_json(row.person).decode()
    return row.hash, row.key_id, row.created_at, row.expires_at, row.tenant, person


def session_row(found: Sequence[Any]) -> SessionRow:
    """A session from its columns, in the order of `session_values`."""
    session_hash, key_id, created_at, expires_at, tenant, text = found
    person = None if text is None else _PERSON.validate_json(text)
    return SessionRow(session_hash, key_id, created_at, expires_at, tenant, person)
