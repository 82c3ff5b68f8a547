"""What the inbox lists: requests as cards, filtered and sorted as the address says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from loopagent.inbox import FILTERS, reads_only
from loopagent.web.cards import RISKS, Card, card_of
from loopagent.web.shared import whole


if TYPE_CHECKING:
    from loopagent.access import Caller
    from loopagent.app import App
    from loopagent.ports import RequestRow


STATUSES: Final = ("open", "resolved", "expired", "cancelled", "all")
HOLDERS: Final = {"mine": "me", "free": "nobody", "others": "others"}
SORTS: Final = {
    "deadline": "deadline",
    "age": "oldest first",
    "newest": "newest first",
    "risk": "highest risk",
}
PAGE_ROWS: Final = 100
MOST_ROWS: Final = 1_000
"""Requests that are looked at for one list."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A list as a template draws it."""

    cards: list[Card]
    total: int
    """How many fit the filters."""
    snoozed: Mapping[str, float]
    """Requests that this person has put off, and until when."""
    put_off: int
    """How many would be listed, were they not put off."""
    agents: list[str]
    alike: Mapping[str, int]
    """Actions of which several calls that only read wait, and how many."""
    more: str
    """Address of the rest; empty for none."""


async def listing(app: App, caller: Caller, asked: Mapping[str, str]) -> Listing:
    """The list that an address asks for.

    Args:
        app: Whose requests.
        caller: Who looks: requests of other tenants are not there, and what this person put off stays away.
        asked: The filters, and where the list goes on.
    """
    status = asked["status"]
    rows, cursor = await app.requests(
        status=None if status == "all" else status,
        tenant=caller.tenant,
        newest=asked["sort"] == "newest",
        cursor=asked.get("cursor") or None,
        limit=MOST_ROWS,
    )
    snoozed = await app.inbox.snoozed(caller.person)
    cards = [card_of(row) for row in rows]
    fitting = [one for one in cards if fits(one, asked, caller.by)]
    awake = [one for one in fitting if one.row.id not in snoozed]
    chosen = {"also": fitting, "only": [one for one in fitting if one.row.id in snoozed]}
    shown = chosen.get(asked.get("snoozed", ""), awake)
    shown.sort(key=ORDERS[asked["sort"]])
    first = whole(asked.get("from")) or 0
    return Listing(
        cards=shown[first : first + PAGE_ROWS],
        total=len(shown),
        snoozed=snoozed,
        put_off=len(fitting) - len(awake),
        agents=sorted({one.row.agent for one in cards}),
        alike=alike(rows),
        more=_more(asked, first + PAGE_ROWS if len(shown) > first + PAGE_ROWS else 0, cursor),
    )


def asked_of(query: Mapping[str, str]) -> dict[str, str]:
    """What an address asks for, with what it leaves out."""
    asked = {**query}
    if asked.get("status") not in STATUSES:
        asked["status"] = "open"
    if asked.get("sort") not in SORTS:
        asked["sort"] = "deadline" if asked["status"] == "open" else "newest"
    return asked


def fits(card: Card, asked: Mapping[str, str], me: str) -> bool:
    """Whether a card passes the filters."""
    words, holder = asked.get("q", "").lower(), asked.get("holder", "")
    whose = {"mine": me, "free": ""}.get(holder, card.row.holder)
    return (
        asked.get("kind", card.kind) in {card.kind, ""}
        and asked.get("risk", card.risk) in {card.risk, ""}
        and asked.get("agent", card.row.agent) in {card.row.agent, ""}
        and card.row.holder == whose
        and (holder != "others" or card.row.holder not in {"", me})
        and any(words in text.lower() for text in (card.title, card.who, card.gist))
    )


def _by_deadline(card: Card) -> tuple[float, float]:
    return card.expires_at or float("inf"), card.row.created_at


def _by_risk(card: Card) -> tuple[int, float, float]:
    return -RISKS.index(card.risk) if card.risk else 1, *_by_deadline(card)


ORDERS: Final[dict[str, Callable[[Card], Any]]] = {
    "deadline": _by_deadline,
    "age": lambda card: card.row.created_at,
    "newest": lambda card: -card.row.created_at,
    "risk": _by_risk,
}


def alike(rows: list[RequestRow]) -> dict[str, int]:
    """Actions of which several open calls that only read wait, and how many."""
    counts: dict[str, int] = {}
    for row in rows:
        name = reads_only(row.body) if row.status == "open" else None
        if name is not None:
            counts[name] = counts.get(name, 0) + 1
    return {name: count for name, count in counts.items() if count > 1}


def filters_of(asked: Mapping[str, str]) -> str:
    """The filters as an address, for a link that shows the same list again."""
    return urlencode({name: asked[name] for name in FILTERS if asked.get(name)})


def _more(asked: Mapping[str, str], first: int, cursor: str | None) -> str:
    kept = filters_of(asked)
    if first:
        here = {"cursor": asked["cursor"]} if asked.get("cursor") else {}
        return f"?{kept}&{urlencode({**here, 'from': first})}"
    return f"?{kept}&{urlencode({'cursor': cursor})}" if cursor else ""
