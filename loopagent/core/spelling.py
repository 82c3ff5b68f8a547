"""What the keys of a wire type are called and what their values should be, read from its fields.

`fold` forgives spellings with it, so a new field or step type is forgiven from the day it exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, cast, get_args, get_origin

from loopagent.core.keys import fold_key
from loopagent.core.protocol.base import Wire


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""


@dataclass(frozen=True, slots=True)
class Numeric:
    """A number."""


@dataclass(frozen=True, slots=True)
class Free:
    """An object that is data: nothing in it is touched."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few texts."""

    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """An object of the protocol."""

    model: type[Wire]


@dataclass(frozen=True, slots=True)
class Variant:
    """An object of one of several types, or something else altogether."""

    models: tuple[type[Wire], ...]


@dataclass(frozen=True, slots=True)
class Listed:
    """A list."""

    item: Kind | None


Kind: TypeAlias = Flag | Numeric | Free | Choice | Record | Variant | Listed
"""What a value should be; texts and data of any kind have none."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The keys of an object.

    Args:
        kinds: Wire key → what its value should be.
        folded: Folded key → wire key.
        is_open: Whether other keys are data and stay.
        nulls: Wire keys in which null means something.
        others: Folded key of another protocol → wire key that means the same.
        inner: Folded key that belongs into a member → wire key of that member.
    """

    kinds: dict[str, Kind | None]
    folded: dict[str, str]
    is_open: bool = False
    nulls: frozenset[str] = frozenset()
    others: Mapping[str, str] = field(default_factory=dict[str, str])
    inner: Mapping[str, str] = field(default_factory=dict[str, str])


@cache
def shape_of(model: type[Wire]) -> Shape:
    """Read the shape of a wire type."""
    kinds = {
        one.alias or name: kind_of(cast("Any", one.annotation))
        for name, one in model.model_fields.items()
    }
    is_open = model.model_config.get("extra") == "allow"
    nulls, others, inner = model.null_means_null, model.other_names, model.belongs_in
    return Shape(kinds, _folded(kinds), is_open, nulls, others, inner)


@cache
def shape_of_any(models: tuple[type[Wire], ...]) -> Shape:
    """Read the shape of an object that may have the keys of several types."""
    kinds: dict[str, Kind | None] = {}
    for model in models:
        kinds.update(shape_of(model).kinds)
    return Shape(kinds, _folded(kinds))


def _folded(keys: Iterable[str]) -> dict[str, str]:
    return {fold_key(key): key for key in keys}


def kind_of(annotation: Any) -> Kind | None:
    """Say what a value of an annotated type should be."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return kind_of(annotation.__origin__)
    if origin in {Union, UnionType}:
        return _kind_of_union(get_args(annotation))
    if origin is Literal:
        return Choice(get_args(annotation))
    if origin is list:
        return Listed(kind_of(get_args(annotation)[0]))
    if origin is dict:
        return Free()
    return _kind_of_class(annotation) if isinstance(annotation, type) else None


def _kind_of_class(annotation: type[Any]) -> Kind | None:
    if issubclass(annotation, Wire):
        return Record(annotation)
    if issubclass(annotation, bool):
        return Flag()
    return Numeric() if issubclass(annotation, int | float) else None


def _kind_of_union(members: tuple[Any, ...]) -> Kind | None:
    present = [one for one in members if one is not NoneType]
    kinds = [kind_of(one) for one in present]
    if len(set(kinds)) == 1:
        return kinds[0]
    models = tuple(one.model for one in kinds if isinstance(one, Record))
    return Variant(models) if models else None


@cache
def _marks(models: tuple[type[Wire], ...]) -> tuple[dict[str, type[Wire]], dict[str, type[Wire]]]:
    """By which `type`, or by which key, each of several types is known."""
    by_type: dict[str, type[Wire]] = {}
    by_key: dict[str, type[Wire]] = {}
    for model in models:
        kinds = shape_of(model).kinds
        kind = kinds.get("type")
        if isinstance(kind, Choice):
            by_type.update({fold_choice(value): model for value in kind.values})
        elif "type" not in kinds:
            by_key[fold_key(next(iter(kinds)))] = model
    return by_type, by_key


def member_of(models: tuple[type[Wire], ...], value: dict[str, Any]) -> type[Wire] | None:
    """Tell which of several types an object has.

    Args:
        models: The types, told apart by `type`, or by the key that is their first field.
        value: The object.

    Returns:
        The type, or None when it is none of them, or has the keys of several.
    """
    if len(models) == 1:
        return models[0]
    by_type, by_key = _marks(models)
    kind = value.get("type")
    if isinstance(kind, str) and by_type:
        return by_type.get(fold_choice(kind))
    filled = [fold_key(key) for key, one in value.items() if one is not None]
    found = {by_key[key] for key in filled or map(fold_key, value) if key in by_key}
    return found.pop() if len(found) == 1 else None


def fold_choice(value: str) -> str:
    """Give one of a few texts without case, blanks, hyphens and underscores."""
    return "".join(one for one in value if one not in " _-").casefold()
