"""Looking into stored texts and files: one module a type, one table of tools. Pure: bytes and parameters in, JSON out.

Nothing here reads a file, the network or the store. Whoever calls it sees to it that a stuck look does not
matter, by doing it in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from loopagent.artifacts import texts
from loopagent.artifacts.source import OutOfTimeError, Params, Source, ToolError
from loopagent.core.jsonable import storable
from loopagent.core.outcome import Outcome
from loopagent.core.problems import problems_of


Tool = tuple[type[Params], Callable[[Source, Any], Any]]
GREP: Tool = (texts.GrepParams, texts.grep)
LINES: Tool = (texts.LinesParams, texts.get_lines)
FULL: Tool = (texts.FullParams, texts.get_full)
TEXT: dict[str, Tool] = {"grep": GREP, "get_lines": LINES, "get_full": FULL}
TOOLS: Mapping[str, Mapping[str, Tool]] = {"text": TEXT}
"""Kind of artifact → tool → its parameters and its function."""


def look(source: Source, tool: str, params: Mapping[str, Any]) -> Outcome:
    """Use a tool on an artifact. Whatever is wrong with the file or the call is an outcome.

    Args:
        source: What to look into.
        tool: Name of the tool.
        params: Its parameters as the model gave them.
    """
    found = TOOLS.get(source.kind, TEXT).get(tool)
    if found is None:
        fitting = ", ".join(TOOLS.get(source.kind, TEXT))
        return Outcome.failed("no_tool", f"There is no such tool; there are {fitting}.")
    model, function = found
    given = {key: one for key, one in params.items() if one is not None}
    try:
        return Outcome.done(function(source, model.model_validate(given)))
    except ValidationError as error:
        return Outcome.failed("bad_params", _told(error, given))
    except OutOfTimeError as error:
        return Outcome.failed("timeout", str(error))
    except ToolError as error:
        return Outcome.failed("no_result", storable(str(error)))
    except (RecursionError, MemoryError):
        return Outcome.failed(
            "unreadable", "The content is nested too deeply or too large to be read."
        )


def _told(error: ValidationError, given: Mapping[str, Any]) -> str:
    return "; ".join(f"{one.path}: {one.message}" for one in problems_of(error, given))
