"""Runs in one SQLite file."""

from loopagent.stores.sqlite.store import SqliteStore


__all__ = ["SqliteStore"]
