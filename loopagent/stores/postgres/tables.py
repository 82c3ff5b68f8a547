"""Making the tables, and bringing older ones up to date: one process does it while the others wait."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeAlias

from loopagent.errors import CorruptError, StoreError


if TYPE_CHECKING:
    from loopagent.stores.postgres.address import Address

Db: TypeAlias = Any
OLDEST_SERVER = 13
"""Oldest major version of the server that is worked with."""
MIGRATIONS = ("0001.sql",)
"""Scripts in the order they are applied; the version of a schema is how many it has had."""


async def prepare(db: Db, address: Address) -> None:
    """Make what is missing.

    Raises:
        StoreError: The server is too old.
        CorruptError: A newer version of loopagent has used the schema.
    """
    major = db.get_server_version().major
    if major < OLDEST_SERVER:
        raise StoreError(f"PostgreSQL {OLDEST_SERVER} or newer is needed; the server is {major}.")
    if await _version(db, address) == len(MIGRATIONS):
        return
    async with db.transaction():
        key = f"loopagent tables {address.schema}"
        await db.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", key)
        version = await _version(db, address)
        if not await db.fetchval("SELECT 1 FROM pg_namespace WHERE nspname = $1", address.schema):
            await db.execute(f"CREATE SCHEMA {address.schema}")
        if version == 0:
            await db.execute("CREATE TABLE IF NOT EXISTS migration (version integer PRIMARY KEY)")
        for number, name in enumerate(MIGRATIONS[version:], version + 1):
            await db.execute(_script(name))
            await db.execute("INSERT INTO migration (version) VALUES ($1)", number)


async def _version(db: Db, address: Address) -> int:
    """How many migrations the schema has had; 0 when it does not exist.

    Looked up in the catalogue itself, because a look-up by name may remember that there was nothing.
    """
    exists = """
        SELECT 1 FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
        WHERE nspname = $1 AND relname = 'migration'
        """
    if not await db.fetchval(exists, address.schema):
        return 0
    version = int(await db.fetchval("SELECT coalesce(max(version), 0) FROM migration"))
    if version > len(MIGRATIONS):
        raise CorruptError(
            f"The schema {address.schema} was written by a newer version of loopagent (version {version}; this one"
            f" knows {len(MIGRATIONS)}): upgrade loopagent, or name another schema."
        )
    return version


def _script(name: str) -> str:
    folder = files("loopagent.stores.postgres").joinpath("migrations")
    return folder.joinpath(name).read_text("utf-8")
