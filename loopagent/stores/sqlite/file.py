"""The database file: creating, opening, checking, and saying clearly what is wrong with it."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from loopagent.errors import ConfigError, CorruptError, StoreError


SCHEMA_VERSION = 1
"""`user_version` of the files this version writes."""
APPLICATION_ID = 0x6C6F6F70
"""`application_id` of our files: "loop"."""
PAGE_BYTES = 1024
"""Twenty tables and indexes take a page each however little is in them; an ordinary log entry takes a fifth of one."""
CHECKPOINT_BYTES = 1 * 1024 * 1024
"""The write-ahead log is folded in when it has grown to this."""
OLDEST_SQLITE = (3, 35, 0)
"""First version with `RETURNING`."""
SYNCHRONOUS = ("OFF", "NORMAL", "FULL", "EXTRA")


@dataclass(frozen=True, slots=True)
class Settings:
    """How a file is used; see `SqliteStore`."""

    path: Path
    synchronous: str = "FULL"
    busy_timeout_seconds: float = 30.0
    max_bytes: int | None = None

    def check(self) -> None:
        """Refuse settings that cannot work.

        Raises:
            ConfigError: One of them cannot.
        """
        if self.synchronous not in SYNCHRONOUS:
            names = ", ".join(SYNCHRONOUS)
            raise ConfigError(f"synchronous must be one of {names}, not {self.synchronous!r}.")
        if not 0 <= self.busy_timeout_seconds <= 3600:  # noqa: PLR2004 - an hour
            raise ConfigError("busy_timeout_seconds must be between 0 and 3600.")
        if self.max_bytes is not None and self.max_bytes < PAGE_BYTES:
            raise ConfigError(f"max_bytes must be at least {PAGE_BYTES}.")
        if str(self.path) in (":memory:", "", "."):
            raise ConfigError("A SQLite store needs a file; for runs in memory use memory://.")
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            oldest = ".".join(map(str, OLDEST_SQLITE))
            message = f"The SQLite store needs SQLite {oldest} or newer; this Python has"
            raise ConfigError(f"{message} {sqlite3.sqlite_version}. Use a newer Python build.")


def open_writer(settings: Settings) -> sqlite3.Connection:
    """The one connection that writes; creates the file (mode 0600) and its tables where they are missing.

    Raises:
        StoreError: The file cannot be opened or written.
        CorruptError: It is damaged, of a newer version, or not ours.
    """
    _touch(settings.path)
    connection = _connect(settings)
    try:
        _prepare(connection, settings)
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(settings: Settings) -> sqlite3.Connection:
    """A connection that only reads."""
    connection = _connect(settings)
    connection.execute("PRAGMA query_only = ON")
    return connection


def _touch(path: Path) -> None:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        remedy = "make the file and its directory exist and writable for this user, or name another"
        raise StoreError(f"The database {path} cannot be opened ({reason}): {remedy}.") from error


def _connect(settings: Settings) -> sqlite3.Connection:
    return sqlite3.connect(
        settings.path,
        timeout=settings.busy_timeout_seconds,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )


def _prepare(connection: sqlite3.Connection, settings: Settings) -> None:
    try:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {settings.synchronous}")
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_BYTES // page_bytes}")
        connection.execute(f"PRAGMA journal_size_limit = {2 * CHECKPOINT_BYTES}")
        if settings.max_bytes is not None:
            connection.execute(f"PRAGMA max_page_count = {settings.max_bytes // page_bytes}")
        _create_tables(connection, settings.path)
    except sqlite3.Error as error:
        raise translate(error, settings.path) from error


def _create_tables(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _is_new(connection, path):
            schema = files("loopagent.stores.sqlite").joinpath("schema.sql").read_text("utf-8")
            for statement in statements(schema):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        rollback(connection)
        raise


def _is_new(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file is empty; refuses files that are not ours or not of our version."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if (application, version, tables) == (0, 0, 0):
        return True
    if application != APPLICATION_ID:
        raise CorruptError(f"The database {path} belongs to another program: name another file.")
    if version != SCHEMA_VERSION:
        raise CorruptError(
            f"The database {path} was written by a newer version of loopagent (schema {version};"
            f" this one knows {SCHEMA_VERSION}): upgrade loopagent, or name another file."
        )
    return False


def statements(script: str) -> list[str]:
    """The statements of a script without its comments, which would be stored with the tables."""
    lines = [line for line in script.splitlines() if not line.startswith("--")]
    return [one.strip() for one in "\n".join(lines).split(";") if one.strip()]


def rollback(connection: sqlite3.Connection) -> None:
    """Leave the transaction, if SQLite has not left it already."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def is_busy(error: BaseException) -> bool:
    """Whether another process held the lock for too long."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def translate(error: sqlite3.Error, path: Path) -> StoreError:
    """What went wrong, with the file and what to do about it."""
    kind, text = _MEANINGS.get(_code(error), (StoreError, "failed; nothing was written"))
    return kind(f"The database {path} {text} [{error}].")


def explain(error: Exception, path: Path) -> Exception:
    """The error as whoever waits should get it; a bug comes out as it is."""
    if isinstance(error, sqlite3.Error):
        return translate(error, path)
    if isinstance(error, UnicodeEncodeError):
        return StoreError(f"The database {path} cannot keep or find such text: {error}.")
    return error


def _code(error: BaseException) -> int:
    """SQLite's primary result code, 0 when there is none."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


_MEANINGS: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_BUSY: (
        StoreError,
        "stayed locked by another process; nothing was written. Wait for it (busy_timeout_seconds)",
    ),
    sqlite3.SQLITE_READONLY: (
        StoreError,
        "is read-only; nothing was written. Make the file and directory writable for this user",
    ),
    sqlite3.SQLITE_FULL: (
        StoreError,
        "has no room left; nothing was written. Free space on its disk (or raise max_bytes)",
    ),
    sqlite3.SQLITE_IOERR: (
        StoreError,
        "could not be read or written. Check its disk and whether the file was moved",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        StoreError,
        "cannot be opened. Make sure that its directory exists and is writable for this user",
    ),
    sqlite3.SQLITE_CORRUPT: (
        CorruptError,
        "is damaged. Restore a backup, or save what can be read with `sqlite3 FILE .recover`",
    ),
    sqlite3.SQLITE_NOTADB: (CorruptError, "is not a SQLite database: name another file"),
}
_MEANINGS[sqlite3.SQLITE_LOCKED] = _MEANINGS[sqlite3.SQLITE_BUSY]
