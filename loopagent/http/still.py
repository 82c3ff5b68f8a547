"""Whether somebody who follows a run may still do so: looked at again and again while the stream is open."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends
from starlette.requests import Request  # a dependency of routes: needed when they are made

from loopagent.errors import StoreError
from loopagent.web.shared import access_of, caller_of


if TYPE_CHECKING:
    from loopagent.access import Caller
    from loopagent.callers import Access


class Still:
    """Looks at most every so many seconds whether the same caller is known by the same key or session.

    Args:
        request: What was let in.
    """

    def __init__(self, request: Request) -> None:
        self._access: Access = access_of(request)
        self._who: Caller = caller_of(request)
        self._headers = request.headers
        self._next = 0.0
        self._note()

    def _note(self) -> None:
        self._next = asyncio.get_running_loop().time() + self._access.settings.stream_check_seconds

    def seconds_left(self) -> float:
        """How long it need not be looked at."""
        return max(0.0, self._next - asyncio.get_running_loop().time())

    async def over(self) -> bool:
        """Whether the caller is not known any more, or reaches something else now; False until it is time to look.

        While the store cannot be asked, what was known last counts.
        """
        if self.seconds_left() > 0:
            return False
        self._note()
        try:
            found, _ = await self._access.caller(self._headers)
        except StoreError:
            return False
        return found != self._who


async def still_of(request: Request) -> Still:
    """Whether the caller of a request may still follow."""
    return Still(request)


Follows = Annotated[Still, Depends(still_of)]
"""Whether the caller may still follow, as a parameter of a route."""
