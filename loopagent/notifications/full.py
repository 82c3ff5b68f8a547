"""What a full notification holds beside ids: the request, or the run that ended, as the API shows them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from loopagent.errors import RequestError


if TYPE_CHECKING:
    from loopagent.notification_port import Notice
    from loopagent.ports import RequestRow, Store


class Shown:
    """Looks things up for notifications.

    Args:
        store: Where requests are.
        show_run: Gives a run as JSON.
        mask: Takes secrets out of texts.
    """

    def __init__(
        self,
        store: Store,
        show_run: Callable[[str], Awaitable[dict[str, Any]]],
        mask: Callable[[str], str],
    ) -> None:
        self._store = store
        self._show_run = show_run
        self._mask = mask

    async def __call__(self, notice: Notice) -> Mapping[str, Any]:
        """The request or run that a notification is of, as it is now; nothing where it is gone."""
        request = notice.data.get("requestId")
        try:
            if request is None:
                found = {"run": await self._show_run(notice.run_id)}
            else:
                row = await self._store.request(str(request))
                found = {} if row is None else {"request": card(row)}
            masked: dict[str, Any] = json.loads(self._mask(json.dumps(found, ensure_ascii=False)))
        except (RequestError, ValueError):
            return {}
        return masked


def card(row: RequestRow) -> dict[str, Any]:
    """A request as `GET /requests/{id}` shows it, but for what depends on who looks at it."""
    return {
        "id": row.id,
        "runId": row.run_id,
        "agent": row.agent,
        "status": row.status,
        "createdAt": row.created_at,
        "resolvedAt": row.resolved_at,
        "body": row.body,
        "resolution": row.resolution,
        "holder": row.holder,
        "heldAt": row.held_at,
    }
