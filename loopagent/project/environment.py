"""Settings that the environment gives: `LOOPAGENT_` and the name, with that of its table before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from inspect import isclass
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Union, get_args, get_origin

from loopagent.core.spec import Spec
from loopagent.settings import Settings


if TYPE_CHECKING:
    from pydantic.fields import FieldInfo


PREFIX: Final = "LOOPAGENT_"
PLAIN: Final = (str, int, float, bool, NoneType)


@dataclass(frozen=True, slots=True)
class Variable:
    """A setting that the environment can give."""

    name: str
    """Of the environment variable."""
    python: str
    """Its name in Python, which a file may use as well."""
    path: tuple[str, ...]
    """Where the setting stands in the file, as its keys are written there."""
    field: FieldInfo

    @property
    def several(self) -> bool:
        """Whether its text has several values, with commas between them."""
        return _several(self.field.annotation)


def variables(model: type[Spec] = Settings, above: Variable | None = None) -> Iterator[Variable]:
    """All of them, in the order of the settings."""
    prefix, path = (PREFIX, ()) if above is None else (f"{above.name}_", above.path)
    for name, one in model.model_fields.items():
        found = Variable(prefix + name.upper(), name, (*path, one.alias or name), one)
        kind = one.annotation
        if isclass(kind) and issubclass(kind, Spec):
            yield from variables(kind, found)
        elif _plain(kind):
            yield found


def given(env: Mapping[str, str]) -> dict[str, Variable]:
    """Those that the environment gives, by their path with dots. An empty text gives nothing."""
    return {".".join(one.path): one for one in variables() if env.get(one.name)}


def put(values: dict[str, Any], one: Variable, text: str) -> None:
    """Let a setting of the environment win over what the file says."""
    value: Any = [part.strip() for part in text.split(",") if part.strip()] if one.several else text
    *tables, key = one.path
    for table in tables:
        inner: Any = values.get(table, {})
        if not isinstance(inner, dict):
            return
        values[table] = inner = {**inner}
        values = inner
    values.pop(one.python, None)
    values[key] = value


def origin(known: Mapping[str, Variable], where: str) -> Variable | None:
    """The variable that a complaint about a place is about."""
    return next(
        (one for path, one in known.items() if where == path or where.startswith(f"{path}[")), None
    )


def _plain(kind: Any) -> bool:
    """Whether one text can say it."""
    outer, parts = get_origin(kind), get_args(kind)
    if outer is Annotated or outer is tuple:
        return _plain(parts[0])
    if outer in (Union, UnionType):
        return all(_plain(one) for one in parts)
    return outer is Literal or kind in PLAIN


def _several(kind: Any) -> bool:
    return get_origin(kind) is tuple
