"""Values spelled otherwise than a wire type wants them: read as meant where that is certain.

Nothing is decoded that may be data: a text becomes an object, list, number or boolean only where the
protocol has one and the text holds one. What cannot be read as meant stays as it is; validation names it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from loopagent.core.keys import fold_key
from loopagent.core.problems import GOT_CHARS, Problem, path_text, shorten
from loopagent.core.protocol.base import Wire
from loopagent.core.protocol.forms import FormQuestion
from loopagent.core.spelling import (
    Choice,
    Flag,
    Free,
    Kind,
    Listed,
    Numeric,
    Record,
    Shape,
    Variant,
    fold_choice,
    member_of,
    shape_of,
)
from loopagent.core.strict import DuplicateKeyError, as_list, as_object, finite, same
from loopagent.core.text import decode_json


Json = dict[str, Any]
MAX_WARNINGS: Final = 50
"""Most warnings that are kept of one reply."""
MAX_PROBLEMS: Final = 100
"""Most problems with spelling that are kept of one reply."""
MAX_ENTRIES: Final = 2_000
"""Most entries in all lists of the protocol together; lists inside of data do not count."""
LATER: Final = frozenset(
    {"decisions", "finishif", "handoff", "artifactdirective", "presetname", "tasks"}
)
"""Folded keys of later protocol versions: reported, not acted on."""
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_BOOLEANS: Final = {"true": True, "false": False}
_NOTHING: Final = {"": "blank text", "null": "text null", "[]": "text []"}
"""Texts that say where an object should be that there is nothing, and how a warning calls them."""


class TooManyError(Exception):
    """There are too many entries to go on; the problem is noted."""


class ValueFolder:
    """Folds values by what the protocol wants them to be; collects warnings and problems.

    Args:
        max_entries: Most entries in all lists of the protocol together.
        bound: A schema that the provider enforced had the reply wrapped and free values written as text.
    """

    def __init__(self, max_entries: int = MAX_ENTRIES, *, bound: bool = False) -> None:
        self._max_entries = max_entries
        self._bound = bound
        self._entries = 0
        self.warnings: list[str] = []
        self.problems: list[Problem] = []

    def warn(self, path: str, what: str) -> None:
        """Note that something was tolerated.

        Args:
            path: Where; empty for the whole reply.
            what: What was done about it.
        """
        if len(self.warnings) < MAX_WARNINGS:
            self.warnings.append(f"{path}: {what}" if path else what)
        elif len(self.warnings) == MAX_WARNINGS:
            self.warnings.append("and more of the kind")

    def wrapped(self, path: str, what: str) -> None:
        """Note that a value had another one around it; of a reply that a schema bound, nobody needs to know."""
        if not self._bound:
            self.warn(path, what)

    def wrong(self, path: str, expected: str, *came: object) -> None:
        """Note a problem.

        Args:
            path: Where; empty for the whole reply.
            expected: What should be there.
            came: What came, if anything did.
        """
        if len(self.problems) >= MAX_PROBLEMS:
            return
        got = " and ".join(map(shorten, came))
        self.problems.append(Problem(path, f"{expected}, got {got}" if got else expected, got))

    # ------------------------------------------------------------ objects

    def record(self, model: type[Wire], given: Json, path: str) -> Json:
        """Fold an object of a wire type.

        Args:
            model: The type.
            given: The object; it is not changed.
            path: Where it stands.

        Returns:
            The object with the protocol's keys; keys that the type does not have are left out.
        """
        if model is FormQuestion:
            given = self._question(given, path)
        shape = shape_of(model)
        made, others = self.keys(shape, given, path)
        for key, value in others.items():
            if value is not None and not self._meant(shape, made, (key, value), path):
                self.left_out(key, path)
        self.values(shape, made, path)
        return made

    def _meant(self, shape: Shape, made: Json, member: tuple[str, Any], path: str) -> bool:
        """Take a member under the name that another protocol has for it, or where it belongs.

        Returns:
            Whether it was taken: what is there under its own name stays.
        """
        key, value = member
        folded = fold_key(key)
        name, into = shape.others.get(folded, ""), shape.inner.get(folded, "")
        if name and name not in made and _fits(shape.kinds[name], value):
            self.warn(place(path, key), f"read as {name}")
            made[name] = value
            return True
        inner = as_object(made.get(into)) if into else None
        if inner is None or folded in map(fold_key, inner):
            return False
        self.warn(place(path, key), f"moved to {into}")
        made[into] = {**inner, key: value}
        return True

    def keys(self, shape: Shape, given: Json, path: str) -> tuple[Json, Json]:
        """Sort the members of an object by whether the protocol knows their keys.

        Returns:
            Members with known keys, in the protocol's spelling and without nulls; and all others.
        """
        made: Json = {}
        others: Json = {}
        kinds = shape.kinds
        for key, value in given.items():
            name = key if key in kinds else shape.folded.get(fold_key(key), "")
            if not name:
                (made if shape.is_open else others)[key] = value
                continue
            if value is None and name not in shape.nulls:
                continue
            if name != key:
                self.warn(place(path, key), f"read as {name}")
            if name in made and not same(made[name], value):
                self.wrong(
                    place(path, name), "stands twice with different values", made[name], value
                )
            made[name] = value
        return made, others

    def values(self, shape: Shape, made: Json, path: str) -> None:
        """Fold the values of an object in place."""
        for key, value in made.items():
            kind = shape.kinds.get(key)
            if kind is not None:
                made[key] = self.value(kind, value, f"{path}.{key}" if path else key)

    def left_out(self, key: str, path: str) -> None:
        """Report a key that nothing is done with."""
        known = fold_key(key) in LATER
        why = "not supported, left out" if known else "not part of the protocol, left out"
        self.warn(place(path, key), why)

    def _question(self, given: Json, path: str) -> Json:
        """Read the type of a form question that is a text instead of an object."""
        name = given.get("type")
        if not isinstance(name, str) or name.lstrip().startswith("{"):
            return given
        own = shape_of(FormQuestion)
        kind = own.kinds["type"]
        model = member_of(kind.models, given) if isinstance(kind, Variant) else None
        if model is None:
            return given
        inner = {
            key for key in given if shape_of(model).folded.get(fold_key(key), "type") != "type"
        }
        inner = {key for key in inner if fold_key(key) not in own.folded}
        self.warn(f"{path}.type", "text taken as the name of the type")
        made = {key: value for key, value in given.items() if key not in inner}
        return {
            **made,
            "type": {"type": name, **{key: given[key] for key in given if key in inner}},
        }

    # ------------------------------------------------------------ by kind

    def value(self, kind: Kind, value: Any, path: str) -> Any:
        """Fold one value.

        Args:
            kind: What it should be.
            value: What it is.
            path: Where it stands.

        Returns:
            It as it should be, or as it is if that is not certain.
        """
        return BY_KIND[type(kind)](self, kind, value, path)

    def flag(self, _kind: Flag, value: Any, path: str) -> Any:
        """Read the texts true and false, in any case, as what they say."""
        known = _BOOLEANS.get(value.strip().casefold()) if isinstance(value, str) else None
        if known is None:
            return value
        self.warn(path, f"text {value.strip()} read as a boolean")
        return known

    def numeric(self, _kind: Numeric, value: Any, path: str) -> Any:
        """Read a text that is a number as that number."""
        if not isinstance(value, str) or not _NUMBER.fullmatch(value.strip()):
            return value
        try:
            number = int(value) if value.strip().lstrip("-").isdigit() else finite(value)
        except ValueError:
            self.wrong(path, "expected a number of usual size", value)
            return value
        self.warn(path, f"{shorten(value)} read as a number")
        return number

    def free(self, _kind: Free, value: Any, path: str) -> Any:
        """Read a text that holds an object; every way to write that there is nothing is the empty object."""
        text = value.strip() if isinstance(value, str) else None
        if value == [] or text in _NOTHING:
            self.warn(
                path, f"{'empty list' if text is None else _NOTHING[text]} read as an empty object"
            )
            return {}
        return self.decoded(value, dict, path)

    def choice(self, kind: Choice, value: Any, path: str) -> Any:
        """Read one of a few texts blind to case and separators."""
        if not isinstance(value, str) or value in kind.values:
            return value
        folded = fold_choice(value)
        found = [one for one in kind.values if fold_choice(one) == folded]
        if len(found) != 1:
            return value
        self.warn(path, f"{shorten(value)} read as {found[0]}")
        return found[0]

    def one(self, kind: Record, value: Any, path: str) -> Any:
        """Read an object of the protocol, also as JSON text or as a list of one."""
        value = self.single(self.decoded(value, dict, path), path)
        fields = as_object(value)
        return value if fields is None else self.record(kind.model, fields, path)

    def variant(self, kind: Variant, value: Any, path: str) -> Any:
        """Read an object of one of several types; what is none of them stays as it is."""
        value = self.decoded(value, dict, path)
        fields = as_object(value)
        model = None if fields is None else member_of(kind.models, fields)
        return value if fields is None or model is None else self.record(model, fields, path)

    def listed(self, kind: Listed, value: Any, path: str) -> Any:
        """Read a list, also as JSON text or as the only value of it."""
        value = self.decoded(value, (list, dict), path)
        single = dict if kind.item is not None else (dict, str)
        if isinstance(value, single):
            self.warn(path, "a single value taken as a list of one")
            value = [value]
        items = as_list(value)
        if items is None:
            return value
        self._entries += len(items)
        if self._entries > self._max_entries:
            self.wrong(path, f"expected at most {self._max_entries} entries in a reply", items)
            raise TooManyError
        if kind.item is None:
            return items
        return [self.value(kind.item, one, f"{path}[{at}]") for at, one in enumerate(items)]

    # ------------------------------------------------------------ helpers

    def decoded(self, value: Any, wanted: type | tuple[type, ...], path: str) -> Any:
        """Read a text that holds a JSON value of a wanted type; anything else stays as it is."""
        if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
            return value
        try:
            found = decode_json(value)
        except ValueError:
            return value
        except DuplicateKeyError as error:
            self.wrong(path, f"expected each key once, got {shorten(str(error))} with two values")
            return value
        if not isinstance(found, wanted):
            return value
        self.wrapped(path, "JSON text decoded")
        return found

    def single(self, value: Any, path: str) -> Any:
        """Take a list of one object as that object."""
        items = as_list(value)
        if items is None or len(items) != 1:
            return value
        self.warn(path, "a list of one unwrapped")
        return items[0]


def _fits(kind: Kind | None, value: Any) -> bool:
    """Whether a value under another name can be what is meant: data is an object, anything else a text."""
    if isinstance(kind, Free):
        return isinstance(value, dict) or (
            isinstance(value, str) and value.lstrip().startswith("{")
        )
    return isinstance(value, str)


def place(path: str, key: str) -> str:
    """Give the path of a member; the key may be anything."""
    last = path_text([key[:GOT_CHARS]])
    return f"{path}{last}" if last.startswith("[") or not path else f"{path}.{last}"


BY_KIND: Final[dict[type[Any], Callable[[ValueFolder, Any, Any, str], Any]]] = {
    Flag: ValueFolder.flag,
    Numeric: ValueFolder.numeric,
    Free: ValueFolder.free,
    Choice: ValueFolder.choice,
    Record: ValueFolder.one,
    Variant: ValueFolder.variant,
    Listed: ValueFolder.listed,
}
"""How each kind of value is folded."""
