"""The form of an action, made of the types of the action file: what people set first, and the rest folded away."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, cast, get_args, get_origin

from pydantic import BaseModel
from pydantic.alias_generators import to_camel, to_snake
from pydantic.fields import FieldInfo

from loopagent.actions.complaints import inside, known_keys
from loopagent.actions.durations import RateLimit
from loopagent.actions.format import HTTP_KINDS, ActionFile, Run
from loopagent.actions.format_http import Auth
from loopagent.core.described import field_docs
from loopagent.core.json_values import is_array, is_object
from loopagent.documents import Loc
from loopagent.library.editing.fields import ABSENT, Field, NotMeantError, Widget, holding


NOT_HERE: Final = frozenset(
    {"apiVersion", "kind", "name", "params", "run.kind", "egress.privateNetworks"}
)
"""What the form leaves to the page around it, or to the text."""
AREAS: Final = frozenset({"description", "run.template", "run.system"})
"""Texts over several lines."""
COMMON: Final = frozenset(
    {
        "title",
        "description",
        "effects",
        "approval.policy",
        "run.method",
        "run.url",
        "run.query",
        "run.headers",
        "run.body",
        "run.auth",
        "run.auth.type",
        "run.server",
        "run.tool",
        "run.spec",
        "run.operation",
        "run.template",
        "run.model",
        "run.outputSchema",
        "run.steps",
        "run.output",
        "egress.hosts",
        "secrets",
        "result.select",
        "result.maxChars",
        "errors",
    }
)
"""What is not folded away, beside what a document sets."""
SECTIONS: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    (
        "about",
        "What it is",
        ("title", "description", "effects", "approval", "version", "tags", "deprecated"),
    ),
    ("run", "What it does", ("run",)),
    ("reach", "Where it may call, and with which secrets", ("egress", "secrets")),
    ("result", "What becomes of the answer", ("result", "errors")),
    (
        "again",
        "Time, repetition and limits",
        ("timeout", "retry", "idempotent", "idempotency", "limits"),
    ),
    ("proof", "Forms, examples and tests", ("ui", "examples", "tests")),
)
"""Parts of the form: name, heading and keys; what is nowhere goes into the first."""
HTTP_ONLY: Final = frozenset({"egress.hosts", "secrets", "errors"})
"""What other kinds than those that send HTTP requests seldom need."""
LABELS: Final = {
    "approval.policy": "Who decides",
    "run.url": "Address",
    "run.auth.type": "Shows who it is by",
    "egress.hosts": "Hosts",
    "egress.ports": "Ports",
    "result.select": "Select",
    "result.schema": "Schema of the result",
    "run.paginate.by": "Pages by",
    "run.paginate.items": "Items of a page",
    "run.paginate.next": "Next page",
    "run.paginate.query": "Query parameter of the page",
    "run.paginate.start": "First page",
    "run.timeout": "Time for one attempt",
    "run.attempts": "Attempts at an answer",
    "run.steps": "Steps",
    "run.steps.with": "Parameters",
    "retry.attempts": "Attempts",
    "idempotency.header": "Idempotency header",
    "idempotency.key": "Idempotency key",
}
"""Labels that the key itself does not give."""
WORDS: Final = {
    "effects": {
        "read": "read: only looks",
        "write": "write: changes what is its own",
        "external": "external: reaches others, like a mail",
        "irreversible": "irreversible: cannot be taken back",
        "destructive": "destructive: the same as irreversible",
    },
    "approval.policy": {
        "auto": "auto: nobody is asked",
        "ask": "ask: a person decides each call",
        "never": "never: hidden from models, for pipelines and people",
    },
}
"""What choices mean, by path."""
ROWS: Final = ("errors", "run.steps")
"""Lists whose items have a row of fields each."""
_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


AUTH_HELP: Final = (
    "How a request shows who sends it. What is secret is a secret by name: {secret: NAME}."
)
WIDGETS: Final[dict[Any, Widget]] = {
    str: "line",
    bool: "flag",
    int: "whole",
    float: "span",
    RateLimit: "span",
}
"""How values of a type are typed; others as YAML."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A list whose items are edited field by field; `loc` is its place."""

    loc: Loc
    label: str
    help: str
    items: list[list[Field]]
    common: bool = True

    @property
    def name(self) -> str:
        """How buttons name it."""
        return path_of(self.loc)

    @property
    def present(self) -> bool:
        """Whether it has any."""
        return bool(self.items)


Part = Field | Rows


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the form; `more` is folded away."""

    name: str
    label: str
    parts: list[Part] = field(default_factory=list[Part])
    more: list[Part] = field(default_factory=list[Part])

    @property
    def hidden(self) -> int:
        """How many of those that are folded away the document sets."""
        return sum(one.present for one in self.more)


def sections_of(data: dict[str, Any]) -> list[Section]:
    """The form of a document, without its parameters.

    Args:
        data: What the document says; it may be wrong in any way.
    """
    made = [Section(name, label) for name, label, _ in SECTIONS]
    sends = inside(data.get("run"), "kind") in HTTP_KINDS
    homes = {key: at for at, (_, _, keys) in enumerate(SECTIONS) for key in keys}
    for one in parts_of(data):
        section = made[homes.get(to_camel(str(one.loc[0])), 0)]
        common = one.common and (sends or one.present or path_of(one.loc) not in HTTP_ONLY)
        (section.parts if common else section.more).append(one)
    return made


def parts_of(data: dict[str, Any]) -> list[Part]:
    """All fields and lists of a document, in the order of the format."""
    return list(_walk(ActionFile, data, ()))


def each_field(parts: Iterable[Part]) -> Iterator[Field]:
    """The fields, those in rows too."""
    for one in parts:
        if isinstance(one, Rows):
            yield from (inner for row in one.items for inner in row)
        else:
            yield one


def path_of(loc: Loc) -> str:
    """A place as a text with dots."""
    return ".".join(map(str, loc))


def _walk(
    model: type[BaseModel], data: dict[str, Any], loc: Loc, *, needed: bool = True
) -> Iterator[Part]:
    """The parts of an object; `needed` says whether it must be there at all."""
    for name, info in _described(model).items():
        key = info.alias or name
        real = next((one for one in (key, to_snake(key)) if one in data), key)
        path = path_of(tuple(one for one in (*loc, key) if isinstance(one, str)))
        if path not in NOT_HERE:
            yield from _parts(info, data.get(real, ABSENT), (*loc, real), path, needed=needed)


@cache
def _described(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a model, each with what its docstring says."""
    docs = field_docs(model)
    made: dict[str, FieldInfo] = {}
    for name, info in model.model_fields.items():
        made[name] = copy(info)
        made[name].description = info.description or docs.get(name)
    return made


def _parts(info: FieldInfo, value: Any, loc: Loc, path: str, *, needed: bool) -> Iterator[Part]:
    kind = _core(info.annotation)
    if path == "run":
        kind = _run_type(value)
    if path == "run.auth" and (value is ABSENT or is_object(value)):
        yield from _auth({} if value is ABSENT else value, loc)
    elif _is_model(kind) and (value is ABSENT or is_object(value)):
        inside_needed = value is not ABSENT or (needed and info.is_required())
        yield from _walk(kind, {} if value is ABSENT else value, loc, needed=inside_needed)
    elif path in ROWS and (value is ABSENT or _are_objects(value)):
        inner = get_args(kind)[0]
        items = [list(_row(inner, one, (*loc, at))) for at, one in enumerate(_given(value))]
        yield Rows(loc, _label(path), info.description or "", items)
    else:
        one = _field(info, kind, loc, path)
        yield holding(replace(one, needed=one.needed and needed), value)


def _given(value: Any) -> list[dict[str, Any]]:
    return [] if value is ABSENT else value


def _row(model: type[BaseModel], item: dict[str, Any], loc: Loc) -> Iterator[Field]:
    return each_field(_walk(model, item, loc))


def _auth(value: dict[str, Any], loc: Loc) -> Iterator[Part]:
    types = {_tag(one): one for one in get_args(get_args(Auth)[0])}
    path = "run.auth.type"
    first = _made((*loc, "type"), path, "choice", choices=tuple(types), help=AUTH_HELP)
    yield holding(first, value.get("type", ABSENT))
    model = types.get(str(value.get("type")))
    if model is not None:
        yield from (one for one in _walk(model, value, loc) if one.loc[-1] != "type")


def _tag(model: type[BaseModel]) -> str:
    """The one `type` or `kind` that a form of it has."""
    fields = model.model_fields
    return str(get_args(fields["type" if "type" in fields else "kind"].annotation)[0])


def _run_type(value: Any) -> Any:
    wanted = value.get("kind") if is_object(value) else None
    return next((one for one in get_args(get_args(Run)[0]) if _tag(one) == wanted), Any)


def _core(annotation: Any) -> Any:
    """A type without what else it may be, None, and without remarks."""
    if get_origin(annotation) is Annotated:
        return _core(get_args(annotation)[0])
    if get_origin(annotation) in {Union, UnionType}:
        rest = [one for one in get_args(annotation) if one is not type(None)]
        return _core(rest[0]) if len(rest) == 1 else annotation
    return annotation


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _are_objects(value: Any) -> bool:
    return is_array(value) and all(map(is_object, value))


def _field(info: FieldInfo, kind: Any, loc: Loc, path: str) -> Field:
    widget: Widget = "area" if path in AREAS else WIDGETS.get(kind, "yaml")
    choices: tuple[str, ...] = ()
    numbers = False
    if get_origin(kind) is Literal:
        widget, choices = "choice", get_args(kind)
    elif get_origin(kind) is tuple and not _is_model(_core(get_args(kind)[0])):
        widget, numbers = "words", _core(get_args(kind)[0]) is not str
    needed = info.is_required()
    default = None if needed or info.default_factory is not None else info.default
    text = info.description or ""
    return _made(
        loc,
        path,
        widget,
        choices=choices,
        help=text,
        needed=needed,
        default=default,
        numbers=numbers,
    )


def _made(loc: Loc, path: str, widget: Widget, **more: Any) -> Field:
    common = path in COMMON or path.startswith(("run.auth.", *(f"{one}." for one in ROWS)))
    return Field(
        loc,
        f"f.{path_of(loc)}",
        _label(path),
        widget,
        words=WORDS.get(path, {}),
        common=common,
        **more,
    )


def _label(path: str) -> str:
    words = _CAPITAL.sub(" ", path.rpartition(".")[2]).lower()
    return LABELS.get(path) or words[:1].upper() + words[1:]


def place(data: dict[str, Any], loc: Loc, value: Any) -> None:
    """Put a value into a document, objects around it too; where the format has an order, there.

    Args:
        data: The document; it is changed.
        loc: Where.
        value: What; `ABSENT` takes away what is there, and objects around it that are empty then.

    Raises:
        NotMeantError: Something else stands around it.
    """
    *above, last = loc
    holders: list[Any] = [data]
    for at, part in enumerate(above):
        held: Any = inside(holders[-1], part)
        if not is_object(held) and not is_array(held):
            if value is ABSENT:
                return
            if held is not None or isinstance(part, int) or not is_object(holders[-1]):
                raise NotMeantError("the text says something else here; look at it first")
            held = {}
            _put(holders[-1], part, held, known_keys(ActionFile, data, loc[:at]))
        holders.append(held)
    if value is not ABSENT:
        _put(holders[-1], last, value, known_keys(ActionFile, data, tuple(above)))
        return
    _take(holders[-1], last)
    for holder, part in zip(reversed(holders[:-1]), reversed(above), strict=True):
        if inside(holder, part) != {}:
            return
        _take(holder, part)


def _put(holder: Any, key: int | str, value: Any, order: list[str]) -> None:
    if not is_object(holder) or key in holder or key not in order:
        _assign(holder, key, value)
        return
    earlier = set(order[: order.index(str(key))])
    known = [to_camel(one) for one in holder]
    at = max((place + 1 for place, one in enumerate(known) if one in earlier), default=0)
    items = list(holder.items())
    holder.clear()
    holder.update([*items[:at], (key, value), *items[at:]])


def _assign(holder: Any, key: int | str, value: Any) -> None:
    if is_object(holder) or (isinstance(key, int) and key < len(holder)):
        cast("Any", holder)[key] = value


def _take(holder: Any, key: int | str) -> None:
    if is_object(holder):
        holder.pop(str(key), None)
