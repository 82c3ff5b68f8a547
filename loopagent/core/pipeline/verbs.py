"""The verbs that only compute: each takes what the stage before gave and gives something new.

Nothing is ever changed in place: values are shared with the results they came from.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from loopagent.core.json_values import is_array, is_object
from loopagent.core.pipeline.groups import grouped, names_of
from loopagent.core.pipeline.moment import Moment
from loopagent.core.pipeline.paths import Path, read_path
from loopagent.core.pipeline.predicates import read_predicate
from loopagent.core.pipeline.values import (
    describe,
    identity_of,
    keys_of,
    number_of,
    rows_of,
    text_of,
)
from loopagent.core.protocol.stages import (
    CountStage,
    DistinctStage,
    FirstStage,
    FlattenStage,
    Grep,
    GrepStage,
    GroupBy,
    GroupByStage,
    HeadStage,
    JsonpathStage,
    LastStage,
    LinesStage,
    SelectStage,
    SortStage,
    StageBase,
    TailStage,
    WhereStage,
)
from loopagent.core.regex import Pattern, compile_pattern


_LINE: Final = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a stage cannot do what it should."""

    message: str


def operate(stage: StageBase, value: Any, moment: Moment) -> Any:
    """Carry out a stage that only computes.

    Args:
        stage: The stage.
        value: What the stage before gave; JSON, not changed.
        moment: What `today` and `now` are.

    Returns:
        The new value, or a `Refusal`.
    """
    verb = TABLE[type(stage)]
    given = as_wanted(verb.wants, stage.verb, value)
    return given if isinstance(given, Refusal) else verb.run(stage, given, moment)


def as_wanted(wants: Wants, verb: str, value: Any) -> Any:
    """The value in the form a verb wants, or why it cannot be had."""
    if wants == "whole":
        return value
    given = rows_of(value)
    if wants == "any" or (wants == "list" and is_array(given)):
        return given
    if wants == "text" and isinstance(value, str):
        return value
    if wants == "either" and (is_array(given) or isinstance(given, str)):
        return given
    return Refusal(_unfit(wants, verb, given))


_EXPECTED: Final = {"list": "a list", "text": "text", "either": "text or a list"}
_INSTEAD: Final = {
    "head": "use first",
    "tail": "use last",
    "lines": "it has entries already",
}


def _unfit(wants: Wants, verb: str, value: Any) -> str:
    message = f"{verb} needs {_EXPECTED[wants]}, got {_got(value)}"
    if is_object(value) and value:
        lists = [key for key, one in value.items() if is_array(one)]
        key = (lists or list(value))[0]
        path = f"$.{key}" if re.fullmatch(r"\w+", key) else f'$["{key}"]'
        return f"{message} with the keys {keys_of(value)}; put jsonpath before it, such as {path}"
    if is_array(value) and verb in _INSTEAD:
        return f"{message}; {_INSTEAD[verb]}"
    if isinstance(value, str) and wants == "list":
        return f"{message}; put lines before it"
    return message


def _got(value: Any) -> str:
    if is_array(value):
        return f"a list of {len(value)}"
    if is_object(value):
        return "an object" if value else "an empty object"
    return describe(value)


def paths_of(given: str | list[str]) -> list[Path]:
    """Read one or several field paths; what cannot be read was refused before anything ran."""
    found = [read_path(one) for one in ([given] if isinstance(given, str) else given)]
    return [one for one in found if isinstance(one, Path)]


def _where(stage: WhereStage, value: list[Any], moment: Moment) -> Any:
    predicate = read_predicate(stage.where)
    if isinstance(predicate, str):
        return Refusal(predicate)
    return [one for one in value if predicate.holds(one, moment)]


def _select(stage: SelectStage, value: list[Any], moment: Moment) -> Any:
    del moment
    paths = paths_of(stage.select)
    if len(paths) == 1:
        return [paths[0].field(one) for one in value]
    columns = list(zip(names_of(paths), paths, strict=True))
    return [{name: path.field(one) for name, path in columns} for one in value]


def _sort(stage: SortStage, value: list[Any], moment: Moment) -> Any:
    """Sort by the last key first, so that earlier keys decide and later ones break ties."""
    del moment
    keys = [stage.sort] if isinstance(stage.sort, str) else stage.sort
    found = list(value)
    for key in reversed(keys):
        path = read_path(key.strip().lstrip("+-"))
        if isinstance(path, Path):
            found = _sorted(found, path, down=key.strip().startswith("-"))
    return found


def _sorted(entries: list[Any], path: Path, *, down: bool) -> list[Any]:
    """By number where all values are numbers, else by text; entries without a value come last."""
    pairs = [(path.field(one), one) for one in entries]
    filled = [(field, one) for field, one in pairs if field is not None]
    numbers = [number_of(field) for field, _ in filled]
    by: list[Any] = numbers if None not in numbers else [text_of(field) for field, _ in filled]
    order = sorted(range(len(filled)), key=by.__getitem__, reverse=down)
    return [filled[at][1] for at in order] + [one for field, one in pairs if field is None]


def _first(stage: FirstStage, value: list[Any], moment: Moment) -> Any:
    del moment
    return value[: stage.first]


def _last(stage: LastStage, value: list[Any], moment: Moment) -> Any:
    del moment
    return value[-stage.last :] if stage.last else []


def _count(stage: CountStage, value: Any, moment: Moment) -> Any:
    del stage, moment
    if isinstance(value, (list, dict, str)):
        return len(value)
    return 0 if value is None else 1


def _distinct(stage: DistinctStage, value: list[Any], moment: Moment) -> Any:
    del moment
    path = read_path(stage.distinct) if isinstance(stage.distinct, str) else ""
    seen: set[str] = set()
    found: list[Any] = []
    for one in value:
        key = identity_of(path.field(one) if isinstance(path, Path) else one)
        if key not in seen:
            seen.add(key)
            found.append(one)
    return found


def _flatten(stage: FlattenStage, value: list[Any], moment: Moment) -> Any:
    del stage, moment
    found: list[Any] = []
    for one in value:
        found += one if is_array(one) else [one]
    return found


def _group_by(stage: GroupByStage, value: list[Any], moment: Moment) -> Any:
    del moment
    asked = stage.group_by if isinstance(stage.group_by, GroupBy) else GroupBy(by=stage.group_by)
    computed = {name: paths_of(getattr(asked, name) or []) for name in ("sum", "avg", "min", "max")}
    return grouped(value, paths_of(asked.by), computed)


def _jsonpath(stage: JsonpathStage, value: Any, moment: Moment) -> Any:
    del moment
    path = read_path(stage.jsonpath, "jsonpath")
    if isinstance(path, str):
        return Refusal(path)
    found = path.matches(value)
    if found == []:  # the path may have been written for the list inside a wrapper
        found = path.matches(rows_of(value))
    if found is None:
        return Refusal(f"{stage.jsonpath} leads to too many values")
    return found if len(found) > 1 else (found[0] if found else None)


def _lines(stage: LinesStage, value: str, moment: Moment) -> Any:
    del stage, moment
    return lines_of(value)


def lines_of(text: str) -> list[str]:
    """Split text into lines; a line end at the very end begins no further line."""
    lines = _LINE.split(text)
    return lines[:-1] if lines and not lines[-1] else lines


def _grep(stage: GrepStage, value: str | list[Any], moment: Moment) -> Any:
    del moment
    asked = stage.grep if isinstance(stage.grep, Grep) else Grep(pattern=stage.grep)
    pattern = compile_pattern(asked.pattern, ignore_case=asked.ignore_case)
    if not isinstance(pattern, Pattern):
        return Refusal(pattern)
    entries = lines_of(value) if isinstance(value, str) else value
    return [one for one in entries if pattern.found_in(text_of(one)) != asked.invert]


def _head(stage: HeadStage, value: str, moment: Moment) -> Any:
    del moment
    return "\n".join(lines_of(value)[: stage.head])


def _tail(stage: TailStage, value: str, moment: Moment) -> Any:
    del moment
    return "\n".join(lines_of(value)[-stage.tail :]) if stage.tail else ""


Wants = Literal["list", "text", "either", "any", "whole"]
"""What a verb works on; all but `whole` see a list without a wrapper round it."""


class Verb(NamedTuple):
    """One row of the table."""

    wants: Wants
    run: Callable[[Any, Any, Moment], Any]


TABLE: Final[dict[type[StageBase], Verb]] = {
    WhereStage: Verb("list", _where),
    SelectStage: Verb("list", _select),
    SortStage: Verb("list", _sort),
    FirstStage: Verb("list", _first),
    LastStage: Verb("list", _last),
    CountStage: Verb("any", _count),
    DistinctStage: Verb("list", _distinct),
    FlattenStage: Verb("list", _flatten),
    GroupByStage: Verb("list", _group_by),
    JsonpathStage: Verb("whole", _jsonpath),
    LinesStage: Verb("text", _lines),
    GrepStage: Verb("either", _grep),
    HeadStage: Verb("text", _head),
    TailStage: Verb("text", _tail),
}
"""Verbs that only compute; `tool`, `map` and `let` are the walker's."""
