"""Parts of a run's state that have rows of their own, as the snapshot does not carry them."""

from __future__ import annotations

from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from loopagent.stores.postgres.statements import Statement


def keep_payload(made: Statement, payload: bytes) -> None:
    """Put a payload in the place of the one before."""
    made.add(
        "kept",
        f"""
        INSERT INTO payload (run, body) SELECT key, {made.value(payload, "bytea")} FROM place
        ON CONFLICT (run) DO UPDATE SET body = excluded.body
        """,
    )


def spill(made: Statement, first: int, body: bytes) -> None:
    """Add results of the open step; the first part of a step takes the place of an earlier step's."""
    if first == 0:
        made.add(
            "spent",
            "DELETE FROM outcome USING place WHERE outcome.run = place.key AND outcome.first > 0",
        )
    made.add(
        "spilled",
        f"""
        INSERT INTO outcome (run, first, body)
        SELECT key, {made.value(first, "integer")}, {made.value(body, "bytea")} FROM place
        ON CONFLICT (run, first) DO UPDATE SET body = excluded.body
        """,
    )
