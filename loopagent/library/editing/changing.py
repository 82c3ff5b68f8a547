"""What was typed into the form, put into the text: every comment and every line that does not change stays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from loopagent.actions.complaints import inside, known_keys
from loopagent.actions.format import ActionFile
from loopagent.core.json_values import copied, is_array, is_object
from loopagent.documents import DocumentError, Loc
from loopagent.library.editing import designer
from loopagent.library.editing.designer import Designer, designer_of
from loopagent.library.editing.fields import ABSENT, Field, NotMeantError, meant
from loopagent.library.editing.form import (
    ROWS,
    Section,
    each_field,
    parts_of,
    path_of,
    place,
    sections_of,
)
from loopagent.library.editing.splicing import SpliceError, read_text, rewritten


Sent = Mapping[str, Sequence[str]]
_EMPTY: Final[dict[str, dict[str, Any]]] = {
    "errors": {"when": "status == `404`", "code": "NOT_FOUND", "message": ""},
    "steps": {"id": "step", "action": ""},
}
"""What a new row begins with."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A text after the form was applied, and what was wrong with what was typed.

    `errors` are by the name of the field; `problem` is about the whole.
    """

    text: str
    errors: dict[str, str] = field(default_factory=dict[str, str])
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """A document as a form; `problem` says why there is none."""

    sections: list[Section]
    designer: Designer
    data: dict[str, Any]
    problem: str = ""


def form_of(text: str) -> Form:
    """The form of a text."""
    try:
        data = read_text(text)
    except DocumentError as error:
        return Form([], Designer([]), {}, error.problems[0].partition(": ")[2])
    return Form(sections_of(data), designer_of(data), data)


def changed(text: str, base: str, sent: Sent, do: str = "") -> Changed:
    """Apply what was typed into the form, then what a button of it asks for.

    Args:
        text: The text as it is now; perhaps somebody typed into it as well.
        base: The text that the form was made of.
        sent: The fields that a browser sent.
        do: A button: `add errors`, `drop errors 0`, `up run.steps 1`, `down params 0`.
    """
    try:
        shown = read_text(base)
    except DocumentError:
        return Changed(text)  # there was no form
    typed = _typed(shown, sent)
    if not typed and not do:
        return Changed(text)
    try:
        wanted, errors = read_text(text), dict[str, str]()
        for one, value in typed:
            _apply(wanted, one, value, errors)
        names = list(shown["params"]["properties"]) if designer_of(shown).parameters else []
        _press(wanted, do, names, sent)
        return Changed(rewritten(text, wanted), errors)
    except DocumentError as error:
        return Changed(text, problem=_lost(error.problems[0].partition(": ")[2], typed))
    except (SpliceError, NotMeantError) as error:
        return Changed(text, problem=str(error))


def _typed(shown: dict[str, Any], sent: Sent) -> list[tuple[Field, str]]:
    """The fields that say something else than they were drawn with."""
    pairs = ((one, list(sent.get(one.name, (one.shown,)))[-1]) for one in _fields(shown))
    return [(one, typed) for one, typed in pairs if typed != one.shown]


def _lost(why: str, typed: list[tuple[Field, str]]) -> str:
    said = f"The text cannot be read: {why}."
    values = "; ".join(f"{one.label}: {value}" for one, value in typed)
    return f"{said} What was typed into the form has to wait: {values}" if values else said


def _fields(data: dict[str, Any]) -> list[Field]:
    """All fields; names of parameters last, because the others are found by them."""
    parameters = designer_of(data).fields
    last = [one for one in parameters if one.name.endswith(".name")]
    first = [one for one in parameters if one not in last]
    return [*each_field(parts_of(data)), *first, *last]


def _apply(wanted: dict[str, Any], one: Field, typed: str, errors: dict[str, str]) -> None:
    try:
        value = meant(one, typed)
        if one.name.startswith("p.") and one.name.endswith((".name", ".required")):
            _of_parameter(wanted, one, typed.strip())
        elif path_of(one.loc) == "run.auth.type":
            _authenticate(wanted, one.loc, value)
        else:
            place(wanted, one.loc, value)
    except NotMeantError as error:
        errors[one.name] = str(error)


def _of_parameter(wanted: dict[str, Any], one: Field, typed: str) -> None:
    known = inside(inside(wanted, "params"), "properties")
    name = str(one.loc[-1])
    if designer_of(wanted).whole is not None or not is_object(known) or name not in known:
        raise NotMeantError("this parameter is not in the text any more")
    if one.name.endswith(".required"):
        designer.require(wanted, name, typed)
    elif not typed or typed in known:
        raise NotMeantError("a parameter needs a name of its own")
    else:
        designer.rename(wanted, name, typed)


def _authenticate(wanted: dict[str, Any], loc: Loc, value: Any) -> None:
    """Another kind of authentication keeps what both have."""
    if value is ABSENT:
        place(wanted, loc[:-1], ABSENT)
        return
    place(wanted, loc, value)
    auth = inside(inside(wanted, "run"), "auth")
    known = known_keys(ActionFile, wanted, ("run", "auth"))
    for key in [one for one in auth if one not in known]:
        del auth[key]


def _press(wanted: dict[str, Any], do: str, names: list[str], sent: Sent) -> None:
    """Do what a button asks for; one that is about something that is gone does nothing."""
    act, _, rest = do.partition(" ")
    where, _, number = rest.partition(" ")
    at = int(number) if number.isdecimal() else -1
    known = where in ROWS or (where == "params" and designer_of(wanted).whole is None)
    if not known or act not in _ROW or (act == "add") != (at < 0):
        return
    if where != "params":
        _ROW[act](wanted, tuple(where.split(".")), at)
    elif act == "add":
        designer.add(wanted, (list(sent.get("new.param", ())) or [""])[-1])
    elif at < len(names):
        _press_parameter(wanted, act, at, names)


def _press_parameter(wanted: dict[str, Any], act: str, at: int, names: list[str]) -> None:
    known = inside(inside(wanted, "params"), "properties")
    if not is_object(known) or at >= len(known):
        return
    name = names[at] if names[at] in known else list(known)[at]  # it was renamed just now
    if act == "drop":
        designer.drop(wanted, name)
    else:
        designer.move(wanted, name, -1 if act == "up" else 1)


def _list(wanted: dict[str, Any], loc: Loc) -> list[Any]:
    found: Any = wanted
    for part in loc:
        found = inside(found, part)
    return found if is_array(found) else []


def _add_row(wanted: dict[str, Any], loc: Loc, at: int) -> None:
    del at
    fresh = copied(_EMPTY.get(str(loc[-1]), {}))
    if "id" in fresh:
        fresh["id"] = f"step_{len(_list(wanted, loc)) + 1}"
    place(wanted, loc, [*_list(wanted, loc), fresh])


def _drop_row(wanted: dict[str, Any], loc: Loc, at: int) -> None:
    rows = _list(wanted, loc)
    kept = [one for number, one in enumerate(rows) if number != at]
    place(wanted, loc, kept or ABSENT)


def _move_row(by: int) -> Callable[[dict[str, Any], Loc, int], None]:
    def move(wanted: dict[str, Any], loc: Loc, at: int) -> None:
        rows = _list(wanted, loc)
        if at < len(rows):
            rows.insert(min(max(at + by, 0), len(rows) - 1), rows.pop(at))

    return move


_ROW: Final[dict[str, Callable[[dict[str, Any], Loc, int], None]]] = {
    "add": _add_row,
    "drop": _drop_row,
    "up": _move_row(-1),
    "down": _move_row(1),
}
"""What buttons of rows do."""
