"""What can go wrong with a database server, and what to say about it."""

from __future__ import annotations

import asyncpg
from asyncpg import exceptions as pg

from loopagent.errors import LoopAgentError, StoreError
from loopagent.stores.sql.tables import NoSuchTextError


LOST: tuple[type[BaseException], ...] = (
    OSError,  # also asyncio's TimeoutError
    asyncpg.PostgresConnectionError,
    pg.CannotConnectNowError,
    pg.AdminShutdownError,
    pg.CrashShutdownError,
    pg.TooManyConnectionsError,
    pg.IdleSessionTimeoutError,
    pg.ConnectionDoesNotExistError,
    asyncpg.InternalClientError,
)
"""The connection is gone, or there is none to be had at this moment."""
TRANSIENT: tuple[type[BaseException], ...] = (
    pg.SerializationError,
    pg.DeadlockDetectedError,
    pg.ForeignKeyViolationError,  # somebody removed at the same moment what this refers to
    pg.LockNotAvailableError,
)
"""Somebody else was in the way; the same may work at once."""
_MEANINGS: tuple[tuple[type[BaseException], str], ...] = (
    (pg.InvalidPasswordError, "refuses the password. Check user and password of the URL"),
    (
        pg.InvalidAuthorizationSpecificationError,
        "does not let this user in. Check the user of the URL",
    ),
    (pg.InvalidCatalogNameError, "has no such database. Create it, or name another in the URL"),
    (
        pg.InsufficientPrivilegeError,
        "does not allow this. Let the user create and use the schema (`?schema=NAME`)",
    ),
    (pg.ReadOnlySQLTransactionError, "is read-only. Name the primary server"),
    (pg.DiskFullError, "has no room left; nothing was written. Free space on its disk"),
    (pg.QueryCanceledError, "took too long; nothing was written. See timeout_seconds"),
    (pg.DataError, "cannot keep or find such a text or value"),
    (asyncpg.PostgresError, "failed; nothing was written"),
    (TimeoutError, "did not answer in time. Check that it is running and can be reached"),
    (OSError, "cannot be reached. Check host and port of the URL and that it is running"),
    (UnicodeEncodeError, "cannot keep or find such text"),
    (asyncpg.InterfaceError, "cannot be used like this"),
)


def translate(error: BaseException) -> BaseException:
    """The error as whoever waits should get it; a bug comes out as it is. The URL is never repeated."""
    if isinstance(error, LoopAgentError):
        return error
    if isinstance(error, pg.CharacterNotInRepertoireError):
        return NoSuchTextError(f"PostgreSQL cannot keep such text [{error}].")
    for kind, text in _MEANINGS:
        if isinstance(error, kind):
            said = str(error).splitlines()[:1] or [""]
            return StoreError(
                f"The PostgreSQL database {text} [{said[0] or type(error).__name__}]."
            )
    return error
