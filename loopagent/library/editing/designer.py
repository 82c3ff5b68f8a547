"""The parameters of an action, designed field by field and written as JSON Schema."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from loopagent.core.json_values import is_array, is_object
from loopagent.documents import Loc
from loopagent.library.editing.fields import ABSENT, YES, Field, Widget, holding


TYPES: Final = ("string", "integer", "number", "boolean", "array", "object")
FORMATS: Final = (
    "date",
    "date-time",
    "time",
    "duration",
    "email",
    "uri",
    "uuid",
    "hostname",
    "ipv4",
    "ipv6",
)
NUMBERS: Final = frozenset({"integer", "number"})
_PLAIN: Final = frozenset(
    {"type", "required", "properties", "additionalProperties", "title", "description", "$schema"}
)
"""Keys of a schema of parameters that the designer leaves as they are, or knows."""


@dataclass(frozen=True, slots=True)
class _Key:
    """What may be said of a parameter."""

    key: str
    label: str
    widget: Widget
    help: str = ""
    choices: tuple[str, ...] = ()
    of: frozenset[str] = frozenset(TYPES)
    """Types that have it."""
    common: bool = True


_KEYS: Final = (
    _Key("type", "Type", "choice", choices=TYPES),
    _Key("description", "Description", "line"),
    _Key(
        "enum",
        "One of, one a line",
        "words",
        of=frozenset({"string", *NUMBERS}),
    ),
    _Key("format", "Format", "choice", choices=FORMATS, of=frozenset({"string"})),
    _Key(
        "items",
        "Items",
        "yaml",
        "Schema of each item, like `{type: string}`.",
        of=frozenset({"array"}),
    ),
    _Key("title", "Label", "line", "How forms name it.", common=False),
    _Key("default", "Default", "yaml", "What forms begin with.", common=False),
    _Key(
        "pattern",
        "Pattern",
        "line",
        "Regular expression that it must match.",
        of=frozenset({"string"}),
        common=False,
    ),
    _Key("minLength", "Shortest", "whole", of=frozenset({"string"}), common=False),
    _Key("maxLength", "Longest", "whole", of=frozenset({"string"}), common=False),
    _Key("minimum", "Smallest", "span", of=NUMBERS, common=False),
    _Key("maximum", "Largest", "span", of=NUMBERS, common=False),
    _Key("minItems", "Fewest items", "whole", of=frozenset({"array"}), common=False),
    _Key("maxItems", "Most items", "whole", of=frozenset({"array"}), common=False),
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; `more` is folded away, `others` are keys that only the text shows."""

    at: int
    name: Field
    required: Field
    fields: list[Field]
    more: list[Field]
    others: list[str]


@dataclass(frozen=True, slots=True)
class Designer:
    """All parameters, or, when they are written in another way, the whole schema as YAML."""

    parameters: list[Parameter]
    whole: Field | None = None

    @property
    def fields(self) -> list[Field]:
        """Every field of it."""
        rows = [[one.name, one.required, *one.fields, *one.more] for one in self.parameters]
        return [one for row in rows for one in row] + ([self.whole] if self.whole else [])


def designer_of(data: dict[str, Any]) -> Designer:
    """The parameters of a document."""
    schema = data.get("params", ABSENT)
    if not _is_plain(schema):
        whole = Field(
            ("params",), "f.params", "Parameters", "yaml", "JSON Schema of the parameters."
        )
        return Designer([], holding(whole, schema))
    given = {} if schema is ABSENT or schema is None else schema
    names = given.get("required", [])
    rows = enumerate(given.get("properties", {}).items())
    return Designer([_parameter(at, name, one, name in names) for at, (name, one) in rows])


def _is_plain(schema: Any) -> bool:
    if schema is ABSENT or schema is None:
        return True
    if (
        not is_object(schema)
        or not set(schema) <= _PLAIN
        or schema.get("type", "object") != "object"
    ):
        return False
    properties, required = schema.get("properties", {}), schema.get("required", [])
    named = is_array(required) and all(isinstance(one, str) for one in required)
    return named and is_object(properties) and all(map(is_object, properties.values()))


def _parameter(at: int, name: str, schema: dict[str, Any], required: bool) -> Parameter:
    loc: Loc = ("params", "properties", name)
    kind = schema.get("type")
    fields: list[Field] = []
    more: list[Field] = []
    for key in _KEYS:
        if key.key not in schema and isinstance(kind, str) and kind not in key.of:
            continue
        one = Field(
            (*loc, key.key),
            f"p.{at}.{key.key}",
            key.label,
            "scalars" if key.key == "enum" and kind in NUMBERS else key.widget,
            key.help,
            key.choices,
        )
        (fields if key.common else more).append(holding(one, schema.get(key.key, ABSENT)))
    called = Field(loc, f"p.{at}.name", "Name", "line", needed=True)
    must = Field(loc, f"p.{at}.required", "Required", "flag")
    known = {one.key for one in _KEYS}
    return Parameter(
        at,
        holding(called, name),
        replace(holding(must, True if required else ABSENT), present=True),
        fields,
        more,
        [one for one in schema if one not in known],
    )


def require(data: dict[str, Any], name: str, typed: str) -> None:
    """Make a parameter one that must be given, or one that need not be."""
    schema = data["params"]
    names = [one for one in schema.get("required", []) if one != name]
    if typed == YES:
        order = list(schema.get("properties", {}))
        names = sorted({*names, name}, key=lambda one: order.index(one) if one in order else -1)
    _put_required(schema, names)


def _put_required(schema: dict[str, Any], names: list[str]) -> None:
    if not names:
        schema.pop("required", None)
    elif "required" in schema:
        schema["required"] = names
    else:
        before = {key: schema.pop(key) for key in list(schema) if key != "type"}
        schema.update({"required": names, **before})


def add(data: dict[str, Any], name: str = "") -> str:
    """Add a parameter of type text; returns its name, which is one that was not there."""
    if not is_object(data.get("params")):
        data["params"] = {"type": "object", "additionalProperties": False}
    schema: dict[str, Any] = data["params"]
    properties: dict[str, Any] = schema.setdefault("properties", {})
    wanted = name.strip() or "param"
    made, number = wanted, 2
    while made in properties:
        made, number = f"{wanted}_{number}", number + 1
    properties[made] = {"type": "string"}
    return made


def drop(data: dict[str, Any], name: str) -> None:
    """Remove a parameter, and what forms say of it."""
    schema = data["params"]
    schema["properties"].pop(name, None)
    _put_required(schema, [one for one in schema.get("required", []) if one != name])
    if is_object(data.get("ui")):
        data["ui"].pop(name, None)
        if not data["ui"]:
            del data["ui"]


def move(data: dict[str, Any], name: str, by: int) -> None:
    """Move a parameter up (-1) or down (1)."""
    properties = data["params"]["properties"]
    names = list(properties)
    at = names.index(name)
    to = min(max(at + by, 0), len(names) - 1)
    names.insert(to, names.pop(at))
    data["params"]["properties"] = {one: properties[one] for one in names}


def rename(data: dict[str, Any], name: str, new: str) -> None:
    """Give a parameter another name, also where the request mentions it by itself."""
    schema = data["params"]
    schema["properties"] = _with_key(schema["properties"], name, new)
    if "required" in schema:
        schema["required"] = [new if one == name else one for one in schema["required"]]
    if is_object(data.get("ui")):
        data["ui"] = _with_key(data["ui"], name, new)
    data["run"] = _mentions(data.get("run"), name, new)


def _with_key(value: dict[str, Any], name: str, new: str) -> dict[str, Any]:
    return {new if key == name else key: one for key, one in value.items()}


def _mentions(value: Any, name: str, new: str) -> Any:
    if is_array(value):
        return [_mentions(one, name, new) for one in value]
    if not is_object(value):
        return value
    if value == {"from": f"params.{name}"}:
        return {"from": f"params.{new}"}
    url = value.get("url")
    made = {key: _mentions(one, name, new) for key, one in value.items()}
    if isinstance(url, str):
        made["url"] = url.replace(f"{{{name}}}", f"{{{new}}}")
    return made
