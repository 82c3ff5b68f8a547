"""Actions that are built in the page: drafts, published versions, and who is given them.

`texts` reads what was typed and says what is wrong with it, `definitions` pins what a run is given and finds it
again, `trying` shows and sends test calls, and `service` is what HTTP, the pages and the command line use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final


if TYPE_CHECKING:
    from loopagent.library.faults import StaleError
    from loopagent.library.service import Library
    from loopagent.library.settings import LibrarySettings
    from loopagent.library.trying import Tried

__all__ = ["Library", "LibrarySettings", "StaleError", "Tried"]
_PLACES: Final = {
    "Library": "service",
    "LibrarySettings": "settings",
    "StaleError": "faults",
    "Tried": "trying",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for: the settings of a project need no more than their own."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
