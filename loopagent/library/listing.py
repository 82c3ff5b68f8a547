"""What is said of the library's actions in lists, beside those of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopagent.actions.listing import action_row
from loopagent.library.drafts import said_by


if TYPE_CHECKING:
    from loopagent.actions.build import FileAction
    from loopagent.library.service import Library
    from loopagent.library_port import Built


async def library_rows(library: Library, tenant: str) -> list[dict[str, Any]]:
    """The library of a tenant as JSON, sorted by name.

    Args:
        library: The library.
        tenant: Whose.

    Returns:
        For each action what `actions.listing.action_row` says of what is published, or else of the draft.
    """
    live = await library.definitions.all(tenant)
    return [library_row(library, one, live.get(one.name)) for one in await library.list(tenant)]


def library_row(library: Library, row: Built, live: FileAction | None) -> dict[str, Any]:
    """One action of the library as JSON.

    Args:
        library: The library.
        row: The action.
        live: What is published of it, if that can be used here.
    """
    about = said_by(row).row() if live is None else action_row(live, [])
    return {
        **about,
        "name": row.name,
        "usedBy": list(row.agents) if row.published is not None else [],
        "source": "library",
        "state": row.state,
        "published": row.published,
        "shadowed": library.is_shadowed(row.name),
        "updatedAt": row.updated_at,
        "updatedBy": row.updated_by,
    }
