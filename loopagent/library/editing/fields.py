"""One field of the form: how a value stands in it as text, and what a text that was typed means."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from loopagent.core.json_values import is_array, is_object
from loopagent.documents import DocumentError, Loc, read_document
from loopagent.library.editing.splicing import same
from loopagent.library.editing.writing import after_key


Widget = Literal["line", "area", "choice", "flag", "whole", "span", "words", "scalars", "yaml"]
ABSENT: Final[Any] = object()
"""Nothing stands there, or shall stand there."""
YES: Final = "yes"
_WHOLE: Final = re.compile(r"[-+]?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"[-+]?[0-9]{1,15}(\.[0-9]{1,15})?")


class NotMeantError(ValueError):
    """What was typed is not what the field holds; the message says what is."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field, as a template draws it.

    `loc` is the place in the document, `name` the name that a browser sends, `shown` the text that it holds.
    """

    loc: Loc
    name: str
    label: str
    widget: Widget
    help: str = ""
    choices: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict[str, str])
    """What some of the choices mean."""
    default: Any = None
    needed: bool = False
    common: bool = True
    numbers: bool = False
    """Words that may be numbers."""
    shown: str = ""
    present: bool = False
    """Whether the document says anything there."""
    error: str = ""

    @property
    def id(self) -> str:
        """A name for the page."""
        return re.sub(r"[^A-Za-z0-9_-]", "-", self.name)


def holding(field: Field, value: Any) -> Field:
    """A field with what a document holds there; what its widget cannot show is shown as YAML.

    Args:
        field: The field.
        value: The value; `ABSENT` for none.
    """
    if value is ABSENT:
        return replace(field, shown=YES if field.widget == "flag" and field.default is True else "")
    for widget in dict.fromkeys((field.widget, "area" if field.widget == "line" else field.widget)):
        one = replace(field, widget=widget)
        shown = _WIDGETS[widget][0](one, value)
        if shown is not None and _says(one, shown, value):
            return replace(one, shown=shown, present=True)
    name = f"y{field.name}"
    return replace(field, name=name, widget="yaml", shown=snippet(value), present=True)


def _says(field: Field, shown: str, value: Any) -> bool:
    """Whether a browser sends back a text that means what the document says."""
    if not shown:
        return not value  # false, an empty text or an empty list: it stays until something is typed
    try:
        return "\r" not in shown and same(meant(field, shown), value)
    except NotMeantError:
        return False


def meant(field: Field, typed: str) -> Any:
    """What a typed text means; `ABSENT` when it takes the value away.

    Raises:
        NotMeantError: It is nothing that the field can hold.
    """
    return _WIDGETS[field.widget][1](field, typed)


def snippet(value: Any) -> str:
    """A value as YAML for a box of its own."""
    first, *rest = after_key(value, -2)
    return "\n".join([*([first] if first else []), *rest])


def from_snippet(typed: str) -> Any:
    """The value of YAML in a box of its own; `ABSENT` when there is none.

    Raises:
        NotMeantError: It is no YAML.
    """
    if not typed.strip():
        return ABSENT
    body = "\n".join(f"  {line}" for line in typed.split("\n"))
    try:
        return read_document(f"v:\n{body}\n", Path("box")).value["v"]
    except DocumentError as error:
        place, _, what = error.problems[0].removeprefix("box:").partition(": ")
        line = int(place.partition(":")[0]) - 1
        raise NotMeantError(f"line {max(line, 1)}: {what.removeprefix('v: ')}") from None


def _text(field: Field, value: Any) -> str | None:
    fine = isinstance(value, str) and (field.widget == "area" or "\n" not in value)
    return value if fine else None


def _typed(field: Field, typed: str) -> Any:
    del field
    return typed if typed.strip() else ABSENT


def _choice(field: Field, value: Any) -> str | None:
    return value if value in field.choices and isinstance(value, str) else None


def _flag(field: Field, value: Any) -> str | None:
    del field
    return (YES if value else "") if isinstance(value, bool) else None


def _set(field: Field, typed: str) -> Any:
    if typed == YES:
        return True
    return False if field.default is True else ABSENT  # what counts without it need not be said


def _count(field: Field, value: Any) -> str | None:
    del field
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _whole(field: Field, typed: str) -> Any:
    del field
    text = typed.strip()
    if not text:
        return ABSENT
    if not _WHOLE.fullmatch(text):
        raise NotMeantError(f"{text[:40]!r} is no whole number")
    return int(text)


def _length(field: Field, value: Any) -> str | None:
    del field
    return None if isinstance(value, bool) or is_object(value) or is_array(value) else str(value)


def _span(field: Field, typed: str) -> Any:
    del field
    text = typed.strip()
    if not text:
        return ABSENT
    return _number(text)


def _number(text: str) -> Any:
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def _lines(field: Field, value: Any) -> str | None:
    del field
    return "\n".join(map(str, value)) if is_array(value) else None


def _words(field: Field, typed: str) -> Any:
    found = [one.strip() for one in typed.split("\n") if one.strip()]
    return [_number(one) if field.numbers else one for one in found] or ABSENT


def _scalars(field: Field, value: Any) -> str | None:
    del field
    return "\n".join(map(snippet, value)) if is_array(value) else None


def _each(field: Field, typed: str) -> Any:
    del field
    return [from_snippet(one) for one in typed.split("\n") if one.strip()] or ABSENT


def _yaml(field: Field, value: Any) -> str | None:
    del field
    return snippet(value)


def _from_yaml(field: Field, typed: str) -> Any:
    del field
    return from_snippet(typed)


_WIDGETS: Final[
    dict[str, tuple[Callable[[Field, Any], str | None], Callable[[Field, str], Any]]]
] = {
    "line": (_text, _typed),
    "area": (_text, _typed),
    "choice": (_choice, _typed),
    "flag": (_flag, _set),
    "whole": (_count, _whole),
    "span": (_length, _span),
    "words": (_lines, _words),
    "scalars": (_scalars, _each),
    "yaml": (_yaml, _from_yaml),
}
"""How each widget shows a value, and what it makes of a text."""
