"""What all databases keep in the same way, by topics; `SharedTables` is all of it."""

from __future__ import annotations

from loopagent.stores.sql.desk import DeskTables
from loopagent.stores.sql.keys import KeyTables
from loopagent.stores.sql.library import LibraryTables
from loopagent.stores.sql.notices import NoticeTables


class SharedTables(DeskTables, KeyTables, LibraryTables, NoticeTables):
    """The part of a store that is the same in all databases."""
