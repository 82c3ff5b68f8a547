"""Two flavours of one JSON Schema: what we accept, and what a model is asked to write.

Models carry marks for the few places where the two differ; `flavour` resolves them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, cast


if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic_core import CoreSchema

Marks = Literal["x-accepted", "x-generated"]
ACCEPTED: Final = "x-accepted"
"""Mark: keys that only the validation flavour has."""
GENERATED: Final = "x-generated"
"""Mark: keys that only the generation flavour has; `False` leaves the whole property out of it."""
NULL_MATTERS: Final = "x-null-matters"
"""Names a field whose null is not the same as its absence; dialects that cannot omit a field split the object."""
SHAPE: Final = "x-shape"
"""Text that stands for a type in prompts, where writing it out would repeat what is already there."""
JSON_TEXT: Final = "application/json"
"""Media type of a text that holds JSON."""


_NEVER: Final = frozenset({ACCEPTED, GENERATED, "title"})  # names say it better than titles
_NAMED: Final = frozenset({"properties", "$defs"})
_DATA: Final = frozenset({"examples", "enum", "const", "default", "required", "type"})


class Mark:
    """Adds keys to the JSON Schema of the type it annotates.

    Args:
        keys: What both flavours get; None takes a key away.
        accepted: What the validation flavour gets on top; a value of None removes the key.
        generated: The same for the generation flavour; `False` leaves the property out.
    """

    __slots__ = ("extra",)

    def __init__(
        self,
        keys: dict[str, Any] | None = None,
        *,
        accepted: dict[str, Any] | None = None,
        generated: dict[str, Any] | Literal[False] | None = None,
    ) -> None:
        self.extra: dict[str, Any] = dict(keys or {})
        if accepted is not None:
            self.extra[ACCEPTED] = accepted
        if generated is not None:
            self.extra[GENERATED] = generated

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Put the marks beside what pydantic makes of the type."""
        made = {**handler(core_schema), **self.extra}
        return {key: one for key, one in made.items() if one is not None}


def _json_text(kind: str) -> dict[str, Any]:
    return {
        "type": [kind, "string"],
        "contentMediaType": JSON_TEXT,
        "contentSchema": {"type": kind},
    }


FREE_OBJECT: Final = Mark(
    {"type": "object", "additionalProperties": True}, accepted=_json_text("object")
)
"""For an object of any shape that may also come as a text that holds it."""
FREE_LIST: Final = Mark(accepted=_json_text("array"))
"""For a list that may also come as a text that holds it."""


def flavour(schema: dict[str, Any], marks: Marks) -> dict[str, Any]:
    """Resolve the marks of a schema.

    Args:
        schema: What pydantic made, marks included; not changed.
        marks: The flavour that is wanted.

    Returns:
        A new schema without marks and titles.
    """
    return _node(schema, marks) or {}


def _node(schema: dict[str, Any], marks: Marks) -> dict[str, Any] | None:
    mark = schema.get(marks)
    if mark is False:
        return None
    merged = {**schema, **(mark or {})}
    if mark and isinstance(mark.get("properties"), dict):
        merged["properties"] = {**schema.get("properties", {}), **mark["properties"]}
    never = _NEVER if marks == GENERATED else _NEVER | {SHAPE}
    node: dict[str, Any] = {
        key: _value(key, value, marks)
        for key, value in merged.items()
        if value is not None and key not in never
    }
    if "required" in node and "properties" in node and "properties" in schema:
        node["required"] = [one for one in node["required"] if one in node["properties"]]
    return node


def _value(key: str, value: Any, marks: Marks) -> Any:
    if key in _NAMED:
        named = cast("dict[str, dict[str, Any]]", value)
        nodes = {name: _node(one, marks) for name, one in named.items()}
        return {name: one for name, one in nodes.items() if one is not None}
    if key in _DATA:
        return value
    if isinstance(value, dict):
        return _node(cast("dict[str, Any]", value), marks) or {}
    if isinstance(value, list):
        nodes_or_none = [_node(one, marks) for one in cast("list[dict[str, Any]]", value)]
        return [one for one in nodes_or_none if one is not None]
    return value
