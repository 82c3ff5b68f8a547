"""Actions as YAML, for people to read and edit."""

from __future__ import annotations

import io
from difflib import unified_diff
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

from loopagent.actions.importing.merging import put_into
from loopagent.core.json_values import is_array, is_object


def yaml_text(action: dict[str, Any]) -> str:
    """An action as YAML, long texts over several lines."""
    return _dumped(_blocks(action))


def edited_text(text: str, action: dict[str, Any]) -> str:
    """A YAML text that says something else now; comments stay where they are.

    Args:
        text: The text.
        action: What it shall say.
    """
    node: Any = _yaml().load(text)
    put_into(node, action)
    return _dumped(node)


def difference(before: str, after: str) -> list[str]:
    """The lines that differ, with some around them."""
    lines = unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
    return [one for one in lines if not one.startswith(("---", "+++"))]


def tidy(text: str) -> str:
    """A text for people without blanks at the ends of its lines, so that it can stand in a file as it is."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _yaml() -> YAML:
    made = YAML()
    made.width = 110
    made.indent(mapping=2, sequence=4, offset=2)
    return made


def _dumped(node: Any) -> str:
    out = io.StringIO()
    _yaml().dump(node, out)
    return out.getvalue()


def _blocks(value: Any) -> Any:
    if is_object(value):
        return {key: _blocks(one) for key, one in value.items()}
    if is_array(value):
        return [_blocks(one) for one in value]
    if isinstance(value, str) and "\n" in value and value == tidy(value):
        return LiteralScalarString(value)
    return value
