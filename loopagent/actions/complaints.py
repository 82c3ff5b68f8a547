"""What is wrong with a document, each complaint at its place and with a suggestion."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_snake

from loopagent.core.json_values import is_array, is_object
from loopagent.core.names import closest
from loopagent.core.problems import path_text, problems_of


if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_core import ErrorDetails

    from loopagent.documents import Document, Loc

MAX_INVALID: Final = 100
"""Most complaints of pydantic that are told about one document."""
TAGS: Final = ("kind", "type")
"""Keys that say which of several forms an object has."""
_CHOICES: Final = re.compile(r"expected (?:one of )?('[^']*'(?:(?:, | or )+'[^']*')*)")
_QUOTED: Final = re.compile(r"'([^']*)'")


@dataclass(frozen=True, slots=True, order=True)
class Complaint:
    """One thing that is wrong, or odd.

    `line` and `column` count from 1; `where` is the place in the document; `warning` says that it works all the same.
    """

    line: int
    column: int
    where: str
    what: str
    warning: bool = False

    def at(self, path: object) -> str:
        """As one line, for a terminal or an editor."""
        return f"{path}:{self.line}:{self.column}: {self.where}: {self.what}"


class Complaints:
    """Gathers what is wrong with one document."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.found: list[Complaint] = []

    @property
    def wrong(self) -> bool:
        """Whether anything is, warnings aside."""
        return any(not one.warning for one in self.found)

    def add(self, loc: Loc, what: str, *, warning: bool = False) -> None:
        """Keep a complaint about a place; keys may be given in camelCase however they are written."""
        real = self._written(loc)
        line, column = self.document.position(real)
        self.found.append(Complaint(line, column, path_text(real) or "(file)", what, warning))

    def add_invalid(self, error: ValidationError, model: type[BaseModel]) -> list[Loc]:
        """Keep what pydantic found; returns the places."""
        data = self.document.value
        details = error.errors(include_url=False)[:MAX_INVALID]
        places = [_without_tags(one["loc"], data) for one in details]
        unknown = {
            path_text(place)
            for place, one in zip(places, details, strict=True)
            if one["type"] == "extra_forbidden"
        }
        shown = [(*place, *_tag_of(one)) for place, one in zip(places, details, strict=True)]
        locs = {path_text(one): one for one in shown}
        for problem in problems_of(error, data)[:MAX_INVALID]:
            loc = locs.get(problem.path)
            if loc is None:
                self.add((), f"{problem.path}: {problem.message}")  # better far off than not at all
                continue
            if any(len(one) > len(loc) and one[: len(loc)] == loc for one in places):
                continue  # a list that counts its wrong items as missing
            if problem.path in unknown:
                self.add(loc, _unknown(loc, data, model))
            else:
                self.add(loc, problem.message + _near(problem.message, problem.got))
        return places

    def _written(self, loc: Loc) -> Loc:
        """A place with its keys as they stand in the document."""
        value: Any = self.document.value
        made: list[int | str] = []
        for part in loc:
            names = [part, to_snake(part)] if isinstance(part, str) else [part]
            name = next((one for one in names if is_object(value) and one in value), part)
            made.append(name)
            value = inside(value, name)
        return tuple(made)


def _without_tags(loc: Loc, data: Any) -> Loc:
    """A place without the names of the alternatives that pydantic puts into it."""
    kept: list[int | str] = []
    value = data
    for part in loc:
        if is_object(value) and any(value.get(tag) == part for tag in TAGS):
            continue
        kept.append(part)
        value = inside(value, part)
    return tuple(kept)


def _tag_of(detail: ErrorDetails) -> Loc:
    """The key that says which alternative an object is, when that is what is wrong with the object."""
    if detail["type"] not in {"union_tag_invalid", "union_tag_not_found"}:
        return ()
    return (str(detail.get("ctx", {})["discriminator"]).strip("'"),)


def inside(value: Any, part: int | str) -> Any:
    """What stands at a key, in whichever spelling, or position of a value; None when nothing does."""
    if is_object(value) and isinstance(part, str):
        return value.get(part, value.get(to_snake(part)))
    return value[part] if is_array(value) and isinstance(part, int) and part < len(value) else None


def _near(message: str, got: str) -> str:
    """A suggestion for a word that is none of a list."""
    choices = _CHOICES.search(message)
    word = re.fullmatch(r'text "(.*)"', got)
    if choices is None or word is None:
        return ""
    near = closest(word[1], _QUOTED.findall(choices[1]))
    return f"; did you mean {' or '.join(near)}?" if near else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """What was perhaps meant, or what there is; the end of a complaint."""
    names = sorted(known)
    near = closest(word, names)
    if near:
        return f"; did you mean {' or '.join(near)}?"
    return f" (known: {', '.join(names) or 'none'})"


def _unknown(loc: Loc, data: Any, model: type[BaseModel]) -> str:
    known = known_keys(model, data, loc[:-1])
    return f"unknown key{did_you_mean(str(loc[-1]), known)}" if known else "unknown key"


def known_keys(model: Any, data: Any, loc: Loc) -> list[str]:
    """The keys that the object at a place may have, given what else stands in the document."""
    current, value = _chosen(model, data), data
    for part in loc:
        value = inside(value, part)
        current = _chosen(_part(current, part), value)
    fields: dict[str, Any] = getattr(current, "model_fields", {})
    return [one.alias or name for name, one in fields.items()]


def _part(model: Any, part: int | str) -> Any:
    """The type of a field or item."""
    if get_origin(model) in {list, tuple, dict}:
        return next((one for one in reversed(get_args(model)) if one is not ...), None)
    fields: dict[str, Any] = getattr(model, "model_fields", {})
    names = (part, to_snake(str(part)))
    return next(
        (one.annotation for name, one in fields.items() if one.alias == part or name in names),
        None,
    )


def _chosen(annotation: Any, value: Any) -> Any:
    """Of a union the alternative that a value names or that is an object; anything else as it is."""
    if get_origin(annotation) is Annotated:
        return _chosen(get_args(annotation)[0], value)
    if get_origin(annotation) not in {Union, UnionType}:
        return annotation
    options = [_chosen(one, value) for one in get_args(annotation) if one is not type(None)]
    tagged = [one for one in options if _says(one, value)]
    return next(iter(tagged or options), None)


def _says(model: Any, value: Any) -> bool:
    fields: dict[str, Any] = getattr(model, "model_fields", {})
    return is_object(value) and any(
        tag in fields and value.get(tag) in get_args(fields[tag].annotation) for tag in TAGS
    )
