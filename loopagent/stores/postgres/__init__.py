"""Runs in a PostgreSQL database, shared by many processes."""

from loopagent.stores.postgres.store import PostgresStore


__all__ = ["PostgresStore"]
