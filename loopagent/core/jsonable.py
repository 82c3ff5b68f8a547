"""One JSON form for every value an action may return, the same before and after it was stored.

| Python | JSON |
| --- | --- |
| text | text; what no store can hold (lone surrogates, NUL) becomes U+FFFD |
| `datetime`, `date`, `time` | ISO 8601 text; an offset is kept, none is made up; UTC is `Z` |
| `timedelta` | ISO 8601 duration, `P1DT3S` |
| `Decimal` | text with all its digits |
| `UUID`, path, URL, IP address, complex number | text |
| `bytes`, `bytearray`, `memoryview` | `{"$bytes": "<base64>"}` |
| list, tuple, deque, range | list |
| set | list, sorted; by JSON text where the items cannot be compared |
| mapping, named tuple, dataclass, pydantic model (by alias) | object |
| key that is no text | its JSON form if that is text, else its JSON text: `1`, `true`, `[1,"a"]` |
| `Enum` | form of its value |
| exception | `Type: message` |
| pydantic secret | `**********` |

These have none: NaN and infinity, two keys with the same form, what refers to itself or is nested
too deeply, iterators and generators (they can be read only once), and everything else.

Times, ids and the like take pydantic's form, so that a result can be another action's parameter.
"""

from __future__ import annotations

import base64
import json
import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, TypeAlias

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from loopagent.core.hashing import canonical_json
from loopagent.core.text import clean_text


MAX_DEPTH = 100
"""Levels of nesting."""
_MAX_INT_BITS = 13_000
"""Python reads and writes numbers of up to 4,300 digits; this is a little less."""
_MAX_GROWTH = 12
"""JSON text is at most this many times as long as what is counted while converting."""
_SHORT = 4_000
_SHORT_BYTES = _SHORT * _MAX_GROWTH
"""A text of fewer characters cannot be too large where so many bytes are allowed."""
_REMEDY = "return text, numbers, lists, dicts, dataclasses or pydantic models"


def storable(text: str) -> str:
    """`clean_text`, quicker for the most usual text."""
    return text if text.isascii() and "\0" not in text else clean_text(text)


_SMALL = 10**18


class NotJsonError(ValueError):
    """A value has no JSON form.

    Args:
        reason: Why, and what to do about it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = ""
        """Where in the value: `.orders[3].total`; empty for the value itself."""

    def __str__(self) -> str:
        """Place and reason."""
        return f"result{self.path}: {self.reason}"


class TooLargeError(NotJsonError):
    """A value is larger, as JSON, than is allowed."""


def is_short_number(value: Any) -> bool:
    """Whether a value is a whole number, or true or false, that is written in a few characters."""
    kind = type(value)
    return kind is bool or (kind is int and -_SMALL < value < _SMALL)


def to_jsonable(
    value: Any,
    *,
    max_depth: int = MAX_DEPTH,
    max_bytes: int | None = None,
    text: Callable[[str], str] = storable,
) -> Any:
    """The JSON form of a value, sharing nothing with it.

    Args:
        value: Anything.
        max_depth: Levels of nesting.
        max_bytes: Size as compact JSON in UTF-8; None for any.
        text: What is done to every text, keys included.

    Raises:
        NotJsonError: It has none, see above; the error says where.
        TooLargeError: It is larger than `max_bytes`.
    """
    most = math.inf if max_bytes is None else max_bytes
    if most >= _SHORT_BYTES:
        if type(value) is str and len(value) < _SHORT:
            return text(value)
        if is_short_number(value):
            return value
    walk = _Walk(max_depth, most, text)
    form = walk.convert(value)
    if max_bytes is not None and walk.size * _MAX_GROWTH > max_bytes:
        size = len(json.dumps(form, ensure_ascii=False, separators=(",", ":")).encode())
        if size > max_bytes:
            raise TooLargeError(f"it has {size} bytes as JSON")
    return form


class _Walk:
    """One conversion: what is above the current place, and a lower bound of the size so far."""

    def __init__(self, max_depth: int, max_size: float, text: Callable[[str], str]) -> None:
        self.max_depth = max_depth
        self.max_size = max_size
        self.text = text
        self.size = 0
        self.above: set[int] = set()

    def convert(self, value: Any) -> Any:
        """The JSON form of a value at the current place."""
        return _EXACT.get(value.__class__, _Walk.other)(self, value)

    def other(self, value: Any) -> Any:
        """The JSON form of a value whose class is none of the most usual ones."""
        return next(convert for known, convert in _OTHERS if isinstance(value, known))(self, value)

    def grow(self, size: int) -> None:
        """Count what was added; gives up as soon as the whole is certain to be too large."""
        self.size += size
        if self.size > self.max_size:
            raise TooLargeError(f"it has more than {self.max_size:.0f} bytes as JSON")

    def constant(self, value: Any) -> Any:
        """`null`, `true`, `false`."""
        self.size += 4
        return value

    def string(self, value: str) -> str:
        """Text, also of a subclass."""
        self.grow(len(value) + 2)
        return self.text(str.__str__(value))

    def whole(self, value: int) -> int:
        """A whole number, also of a subclass."""
        bits = value.bit_length()
        if bits > _MAX_INT_BITS:
            raise NotJsonError("the number has too many digits; return it as text")
        self.grow(bits // 4 or 1)
        return int(value)

    def number(self, value: float) -> float:
        """A floating-point number, also of a subclass."""
        if not math.isfinite(value):
            raise NotJsonError(f"{value} is not a JSON number; return None or text instead")
        self.grow(3)
        return float(value)

    def array(self, value: Iterable[Any]) -> list[Any]:
        """A list of the items' forms."""
        made: list[Any] = []
        self._enter(value)
        try:
            for one in value:
                # Its length is the error's index; `convert` would be one more call for each.
                made.append(_EXACT.get(one.__class__, _Walk.other)(self, one))  # noqa: PERF401
        except NotJsonError as error:
            error.path = f"[{len(made)}]{error.path}"
            raise
        self.above.discard(id(value))
        return made

    def mapping(self, value: Mapping[Any, Any]) -> dict[str, Any]:
        """An object of the items' forms."""
        return self._object(value, value.items())

    def record(self, value: Any) -> dict[str, Any]:
        """A dataclass as an object of its fields."""
        return self._object(value, ((one.name, getattr(value, one.name)) for one in fields(value)))

    def named(self, value: tuple[Any, ...]) -> Any:
        """A tuple of a subclass; a named one is an object."""
        names: Sequence[str] | None = getattr(value, "_fields", None)
        if names is None:
            return self.array(value)
        return self._object(value, zip(names, value, strict=True))

    def model(self, value: BaseModel) -> Any:
        """A pydantic model as what it dumps."""
        try:
            dumped = value.model_dump(by_alias=True, warnings=False)
        except Exception as error:  # a serializer is the author's code and may raise anything
            raise NotJsonError(f"{type(value).__name__} cannot be dumped: {error}") from error
        return self.convert(dumped)

    def _object(self, owner: Any, items: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        self._enter(owner)
        for key, one in items:
            name = self.string(key) if key.__class__ is str else self.key(key)
            if name in made:
                raise NotJsonError(f"two keys become {name!r}; rename one")
            try:
                made[name] = _EXACT.get(one.__class__, _Walk.other)(self, one)
            except NotJsonError as error:
                error.path = f".{name}{error.path}"
                raise
        self.above.discard(id(owner))
        return made

    def _enter(self, value: Any) -> None:
        self.grow(2)
        if id(value) in self.above:
            raise NotJsonError("it refers to itself")
        if len(self.above) >= self.max_depth:
            raise NotJsonError(f"it is nested more than {self.max_depth} levels deep")
        self.above.add(id(value))

    def key(self, key: Any) -> str:
        """The text that stands for a key."""
        if isinstance(key, str) and not isinstance(key, Enum):
            return self.string(key)
        try:
            form = self.convert(key)
        except TooLargeError:
            raise
        except NotJsonError as error:
            raise NotJsonError(f"a key of type {type(key).__name__}: {error.reason}") from error
        return form if isinstance(form, str) else canonical_json(form)

    def members(self, value: AbstractSet[Any]) -> list[Any]:
        """A set as a list whose order does not change from process to process."""
        items = self.array(value)
        try:
            return sorted(items)
        except TypeError:
            return sorted(items, key=canonical_json)

    def blob(self, value: bytes | bytearray | memoryview) -> dict[str, str]:
        """Bytes."""
        raw = bytes(value)
        self.grow(13 + len(raw) * 4 // 3)
        return {"$bytes": base64.b64encode(raw).decode("ascii")}

    def decimal(self, value: Decimal) -> str:
        """A decimal number with all its digits."""
        if not value.is_finite():
            raise NotJsonError(f"{value} is not a number; return None or text instead")
        return self.string(str(value))

    def exception(self, value: BaseException) -> str:
        """An exception object."""
        return self.string(f"{type(value).__name__}: {value}")

    def enum(self, value: Enum) -> Any:
        """The value of an enumeration's member."""
        return self.convert(value.value)

    def once(self, value: Any) -> Any:
        """An iterator, generator or coroutine."""
        name = type(value).__name__
        raise NotJsonError(f"{name} can be read only once; return its values as a list")

    def pending(self, value: Any) -> Any:
        """A coroutine or another awaitable."""
        raise NotJsonError(f"{type(value).__name__} was returned without being awaited")

    def leaf(self, value: Any) -> Any:
        """A dataclass, a path, a type that pydantic knows, or nothing we know."""
        if not isinstance(value, type):
            if is_dataclass(value):
                return self.record(value)
            if hasattr(value, "__fspath__"):
                return self.convert(value.__fspath__())
        try:
            form = to_jsonable_python(value)
        except (PydanticSerializationError, ValueError):
            form = value
        if not isinstance(form, (str, int, float)):
            hint = "return its tolist()" if hasattr(value, "tolist") else _REMEDY
            raise NotJsonError(f"{type(value).__name__} has no JSON form; {hint}")
        return self.convert(form)


_Convert: TypeAlias = Callable[[_Walk, Any], Any]
_EXACT: dict[type[Any], _Convert] = {
    str: _Walk.string,
    int: _Walk.whole,
    float: _Walk.number,
    bool: _Walk.constant,
    type(None): _Walk.constant,
    dict: _Walk.mapping,
    list: _Walk.array,
    tuple: _Walk.array,
}
_OTHERS: tuple[tuple[Any, _Convert], ...] = (
    (Enum, _Walk.enum),  # before str and int, which members may be too
    (BaseModel, _Walk.model),
    (tuple, _Walk.named),
    (str, _Walk.string),
    (int, _Walk.whole),
    (float, _Walk.number),
    (Decimal, _Walk.decimal),
    ((bytes, bytearray, memoryview), _Walk.blob),
    (Mapping, _Walk.mapping),
    ((list, deque, range, ValuesView), _Walk.array),
    (AbstractSet, _Walk.members),
    (BaseException, _Walk.exception),
    (Awaitable, _Walk.pending),
    (Iterator, _Walk.once),
    (object, _Walk.leaf),
)
