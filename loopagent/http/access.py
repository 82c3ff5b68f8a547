"""The caller, as a parameter of a route."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from loopagent.access import Caller
from loopagent.web.shared import caller_of


Who = Annotated[Caller, Depends(caller_of)]
"""The caller, as a parameter of a route."""
