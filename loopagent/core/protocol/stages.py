"""The stages of a pipeline: seventeen verbs, one class each."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, cast

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StrictBool, Tag

from loopagent.core.flavours import FREE_LIST, SHAPE, Mark
from loopagent.core.protocol.base import LIST_TEXT, PARAMETERS, Count, NonBlank, Params, Wire, named


MAX_STAGES: Final = 20
"""Most stages of a pipeline, and of the inside of a `map` or `let`."""
_ALWAYS: Final = Mark(generated={"type": "boolean", "const": True, "default": None})
_NESTED: Final = Mark({SHAPE: "stages"})
Paths = NonBlank | Annotated[list[NonBlank], Field(min_length=1)]
"""One field path, or several."""


def _verb_needed(schema: dict[str, Any], stage: type[BaseModel]) -> None:
    """Require the verb also where its argument does not matter."""
    schema["required"] = [getattr(stage, "verb", "")]


class StageBase(Wire):
    """What all stages share."""

    model_config = ConfigDict(json_schema_extra=_verb_needed)
    verb: ClassVar[str]
    """The key that names the stage."""


class ToolStage(StageBase):
    """Run an action."""

    verb: ClassVar = "tool"
    other_names: ClassVar = named("with", *PARAMETERS)
    tool: NonBlank
    """Its name."""
    with_: Params | None = None
    """Its parameters; `{{path}}` takes a value, `$` is what the stage before gave."""
    pipe_into: str | None = None
    """Parameter that receives everything the stage before gave."""


class WhereStage(StageBase):
    """Keep the entries that match."""

    verb: ClassVar = "where"
    where: NonBlank
    """Condition, such as `Balance > 0 and Status == "open"`."""


class SelectStage(StageBase):
    """Keep some fields."""

    verb: ClassVar = "select"
    select: Paths
    """One path gives values, several give objects."""


class SortStage(StageBase):
    """Sort entries."""

    verb: ClassVar = "sort"
    sort: Paths
    """Paths; a leading - sorts downwards."""


class FirstStage(StageBase):
    """Keep the first entries."""

    verb: ClassVar = "first"
    first: Count
    """How many."""


class LastStage(StageBase):
    """Keep the last entries."""

    verb: ClassVar = "last"
    last: Count
    """How many."""


class CountStage(StageBase):
    """Count entries."""

    verb: ClassVar = "count"
    count: Annotated[Any, _ALWAYS] = True
    """Always true."""


class DistinctStage(StageBase):
    """Drop repeated entries."""

    verb: ClassVar = "distinct"
    distinct: Annotated[Any, Mark(generated={"type": "string", "default": None})] = True
    """Path to compare by; "" compares whole entries."""


class FlattenStage(StageBase):
    """Flatten lists by one level."""

    verb: ClassVar = "flatten"
    flatten: Annotated[Any, _ALWAYS] = True
    """Always true."""


class GroupBy(Wire):
    """How to group, and what to compute for each group."""

    by: Paths
    """Key fields."""
    sum: Paths | None = None
    """Fields to add up."""
    avg: Paths | None = None
    """Fields to average."""
    min: Paths | None = None
    """Fields to take the smallest of."""
    max: Paths | None = None
    """Fields to take the largest of."""


class GroupByStage(StageBase):
    """Make one object for each group, with its count."""

    verb: ClassVar = "groupBy"
    group_by: NonBlank | GroupBy
    """Key field, or fields and computations."""


class JsonpathStage(StageBase):
    """Pick values by JSONPath."""

    verb: ClassVar = "jsonpath"
    jsonpath: NonBlank
    """The expression."""


class LinesStage(StageBase):
    """Split text into lines."""

    verb: ClassVar = "lines"
    lines: Annotated[Any, _ALWAYS] = True
    """Always true."""


class Grep(Wire):
    """What to look for."""

    pattern: str
    """Regular expression."""
    ignore_case: StrictBool = False
    """Whether case does not matter."""
    invert: StrictBool = False
    """Keep what does not match."""


class GrepStage(StageBase):
    """Keep matching lines or entries."""

    verb: ClassVar = "grep"
    grep: str | Grep
    """Regular expression."""


class HeadStage(StageBase):
    """Keep the first lines of a text."""

    verb: ClassVar = "head"
    head: Count
    """How many."""


class TailStage(StageBase):
    """Keep the last lines of a text."""

    verb: ClassVar = "tail"
    tail: Count
    """How many."""


class MapBody(Wire):
    """What to do with each entry."""

    as_: NonBlank = "item"
    """Name of the entry inside."""
    do: Annotated[
        list[Stage], Field(min_length=1, max_length=MAX_STAGES), LIST_TEXT, FREE_LIST, _NESTED
    ]
    """Stages to run."""
    continue_on_error: StrictBool = True
    """false stops at the first failure; otherwise a failed entry becomes null."""


class MapStage(StageBase):
    """Replace each entry by what stages make of it."""

    verb: ClassVar = "map"
    map: MapBody
    """The stages."""


class LetBody(Wire):
    """A name and how its value is found."""

    name: NonBlank
    """Name for later stages."""
    value: Annotated[
        list[Stage], Field(min_length=1, max_length=MAX_STAGES), LIST_TEXT, FREE_LIST, _NESTED
    ]
    """Stages whose last value is kept."""


class LetStage(StageBase):
    """Keep a value under a name; what flows through is not changed."""

    verb: ClassVar = "let"
    let: LetBody
    """The name and its stages."""


VERBS: Final = (
    "tool", "where", "select", "sort", "first", "last", "count", "distinct", "flatten",
    "groupBy", "jsonpath", "lines", "grep", "head", "tail", "map", "let",
)  # fmt: skip
"""What a stage can do; each stage has exactly one of these keys."""
_NO_ARGUMENT: Final = frozenset({"count", "distinct", "flatten", "lines"})
ONE_VERB: Final = f"an object with exactly one of {', '.join(VERBS)}"
"""What a stage is, in words."""


def verbs_of(stage: dict[str, Any]) -> list[str]:
    """List the verbs of a stage; null stands for absent, except where the argument does not matter."""
    filled = [verb for verb in VERBS if stage.get(verb) is not None]
    return filled or [verb for verb in VERBS if verb in stage and verb in _NO_ARGUMENT]


def _tag(stage: object) -> str | None:
    if isinstance(stage, dict):
        verbs = verbs_of(cast("dict[str, Any]", stage))
        return f"<{verbs[0]}>" if len(verbs) == 1 else None
    return f"<{stage.verb}>" if isinstance(stage, StageBase) else None


Stage = Annotated[
    Annotated[ToolStage, Tag("<tool>")]
    | Annotated[WhereStage, Tag("<where>")]
    | Annotated[SelectStage, Tag("<select>")]
    | Annotated[SortStage, Tag("<sort>")]
    | Annotated[FirstStage, Tag("<first>")]
    | Annotated[LastStage, Tag("<last>")]
    | Annotated[CountStage, Tag("<count>")]
    | Annotated[DistinctStage, Tag("<distinct>")]
    | Annotated[FlattenStage, Tag("<flatten>")]
    | Annotated[GroupByStage, Tag("<groupBy>")]
    | Annotated[JsonpathStage, Tag("<jsonpath>")]
    | Annotated[LinesStage, Tag("<lines>")]
    | Annotated[GrepStage, Tag("<grep>")]
    | Annotated[HeadStage, Tag("<head>")]
    | Annotated[TailStage, Tag("<tail>")]
    | Annotated[MapStage, Tag("<map>")]
    | Annotated[LetStage, Tag("<let>")],
    Discriminator(_tag, custom_error_type="stage", custom_error_message=ONE_VERB),
]
"""One stage of any verb."""
for _model in (MapBody, LetBody, MapStage, LetStage):
    _model.model_rebuild()
