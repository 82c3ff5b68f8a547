"""Answers that come in pages: which is next, and when it is enough."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin

from loopagent.core.json_values import is_array
from loopagent.core.reshape import Expression, ReshapeError, shown
from loopagent.egress.client import checked_url
from loopagent.errors import ActionError


if TYPE_CHECKING:
    from loopagent.actions.format_http import Pagination
    from loopagent.actions.request import Request

_LINK: Final = re.compile(r"<([^<>]*)>\s*+;([^,<]*)")
_NEXT: Final = re.compile(r"\brel\s*+=\s*+\"?next\"?", re.IGNORECASE)


class Pages:
    """The pages of one call.

    `items` are those that came so far; `more` says that there are others that were not fetched.
    """

    def __init__(self, section: Pagination) -> None:
        self._section = section
        self._fetched = 0
        self._cursor: Any = section.start if section.by in {"page", "offset"} else None
        self._seen: set[str] = set()
        self.items: list[Any] = []
        self.more = False

    def request(self, first: Request) -> Request:
        """The request for the next page."""
        if self._cursor is None:
            return first
        if self._section.by == "link":
            return replace(first, address=str(self._cursor), query=[])
        return first.with_query(self._section.query, shown(self._cursor))

    def take(self, seen: dict[str, Any], first: Request) -> bool:
        """Take what came; says whether another page is to be fetched.

        Raises:
            ActionError: The page is not as the file says.
        """
        section = self._section
        try:
            found = Expression(section.items).of(seen)
            following = None if section.next is None else Expression(section.next).of(seen)
        except ReshapeError as error:
            raise ActionError(f"A page cannot be read: {error}.", code="bad_answer") from error
        if found is not None and not is_array(found):
            text = f"A page is not as expected: {section.items!r} gives no list."
            raise ActionError(text, code="bad_answer")
        new = found or []
        self._fetched += 1
        self.items += new
        following = self._following(new, following, seen, first)
        enough = self._fetched >= section.max_pages or len(self.items) >= section.max_items
        self.more = following is not None and enough
        if len(self.items) > section.max_items:
            self.more, self.items = True, self.items[: section.max_items]
        self._cursor = following
        return following is not None and not enough

    def _following(self, new: list[Any], found: Any, seen: dict[str, Any], first: Request) -> Any:
        """The cursor, number or address of the next page; None after the last one."""
        section = self._section
        if section.by in {"page", "offset"}:
            ended = not new or (section.next is not None and not found)
            return None if ended else self._cursor + (1 if section.by == "page" else len(new))
        if section.by == "link":
            found = found if section.next is not None else linked(seen)
            found = _address(found, self._cursor or first.url) if found else None
        if not found or shown(found) in self._seen:  # a cursor that comes again would never end
            return None
        self._seen.add(shown(found))
        return found


def linked(seen: dict[str, Any]) -> str | None:
    """The address that an answer's `Link` header calls the next one."""
    links = _LINK.finditer(str(seen["headers"].get("link", "")))
    return next((one[1] for one in links if _NEXT.search(one[2])), None)


def _address(found: Any, current: str) -> str:
    """The address of the next page, on the same server as this one.

    Raises:
        ActionError: It is elsewhere.
    """
    address = urljoin(current, shown(found))
    here, there = checked_url(current), checked_url(address)
    if (here.scheme, here.host, here.port) != (there.scheme, there.host, there.port):
        raise ActionError("The next page is on another server.", code="bad_answer")
    return address
