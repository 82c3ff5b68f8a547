"""What all databases keep in the same way, by topics; `SharedTables` is all of it."""

from __future__ import annotations

from loopagent.stores.sql.artifacts import ArtifactTables
from loopagent.stores.sql.desk import DeskTables
from loopagent.stores.sql.keys import KeyTables
from loopagent.stores.sql.library import LibraryTables
from loopagent.stores.sql.notices import NoticeTables
from loopagent.stores.sql.requests import RequestTables
from loopagent.stores.sql.runs import RunTables
from loopagent.stores.sql.triggers import TriggerTables


class SharedTables(
    ArtifactTables,
    DeskTables,
    KeyTables,
    LibraryTables,
    NoticeTables,
    RequestTables,
    RunTables,
    TriggerTables,
):
    """The part of a store that is the same in all databases."""
