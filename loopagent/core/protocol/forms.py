"""Forms: questions with typed answers, shown with a message."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, cast

from pydantic import Field, StrictBool, model_validator
from pydantic_core import PydanticCustomError

from loopagent.core.flavours import Mark
from loopagent.core.problems import Fault, shorten
from loopagent.core.protocol.base import Count, NonBlank, Number, Wire, one_of


Scalar = str | bool | int | float
_SCALARS = {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}


def _room(low: float | None, high: float | None) -> None:
    """Refuse bounds that no number fits."""
    if low is not None and high is not None and low > high:
        kind = "number_bounds"
        raise PydanticCustomError(kind, "a max that is at least min")


def _one_id_each(questions: list[Any]) -> list[Any]:
    """The same, or a fault at each id that stands for an earlier question already."""
    made: list[Any] = []
    seen: set[str] = set()
    for one in questions:
        name = cast("dict[str, Any]", one).get("id") if isinstance(one, dict) else None
        if isinstance(name, str) and name in seen:
            got = shorten(name)
            fault = Fault(f"expected an id that no earlier question has, got {got}", got)
            made.append({**one, "id": fault})
            continue
        made.append(one)
        seen.update([name] if isinstance(name, str) else [])
    return made


class FormOption(Wire):
    """One choice."""

    value: Annotated[Scalar, Mark(_SCALARS)]
    """What is answered when it is chosen."""
    label: str
    """What the person reads."""
    icon: str | None = None
    """Icon class."""


class TextQuestion(Wire):
    """Free text."""

    type: Literal["text", "textarea", "email"]
    """Kind of input."""
    placeholder: str | None = None
    """Shown while empty."""
    max_length: Count | None = None
    """Longest answer, in characters."""
    markdown: StrictBool | None = None
    """Show a textarea rendered, with a switch to edit."""


class NumberQuestion(Wire):
    """A number or an amount of money."""

    type: Literal["number", "currency"]
    """Kind of input."""
    min: Number | None = None
    """Smallest answer."""
    max: Number | None = None
    """Largest answer."""
    prefix: str | None = None
    """Shown before the number."""
    suffix: str | None = None
    """Shown after the number."""

    @model_validator(mode="after")
    def _some_number_fits(self) -> Self:
        _room(self.min, self.max)
        return self


class DateQuestion(Wire):
    """A date, or a date with time."""

    type: Literal["date", "datetime"]
    """Kind of input."""


class ChoiceQuestion(Wire):
    """One or more of the given options."""

    type: Literal["buttongroup", "radio", "dropdown", "checkbox"]
    """Kind of input."""
    options: list[FormOption] = Field(min_length=1)
    """What can be chosen."""
    multiple: StrictBool = False
    """Whether several may be chosen; for checkbox."""


class SliderQuestion(Wire):
    """A number on a scale."""

    type: Literal["slider"]
    """Kind of input."""
    min: Number
    """Left end."""
    max: Number
    """Right end."""
    step: Number = 1
    """Distance between two positions."""
    suffix: str | None = None
    """Shown after the number."""

    @model_validator(mode="after")
    def _some_number_fits(self) -> Self:
        _room(self.min, self.max)
        return self


class DateRangeQuestion(Wire):
    """Two dates; answered with start and end."""

    type: Literal["daterange"]
    """Kind of input."""


class TimeQuestion(Wire):
    """A time of day, answered as HH:mm."""

    type: Literal["time"]
    """Kind of input."""


QuestionType = Annotated[
    TextQuestion
    | NumberQuestion
    | DateQuestion
    | ChoiceQuestion
    | SliderQuestion
    | DateRangeQuestion
    | TimeQuestion,
    Field(discriminator="type"),
]
"""How a question is answered; fourteen values of `type` in seven classes."""


class FormQuestion(Wire):
    """One question."""

    id: NonBlank
    """Key of the answer."""
    label: str
    """What the person reads."""
    type: QuestionType
    """How it is answered."""
    required: StrictBool = False
    """Whether it must be answered."""
    default_value: Annotated[Any, Mark(generated=_SCALARS)] = None
    """Answer filled in beforehand."""
    help_text: str | None = None
    """Explanation below the question."""
    width_hint: Annotated[str, one_of("narrow", "medium", "wide", "full", "auto")] | None = None
    """How wide the input should be."""


class AgentResponseForm(Wire):
    """Ask for structured answers; comes with a message."""

    title: str | None = None
    """Heading."""
    description: str | None = None
    """Text below the heading."""
    submit_label: str = "Submit"
    """Text of the button."""
    questions: list[FormQuestion] = Field(min_length=1)
    """What is asked."""

    @classmethod
    def tidy(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Answers are told apart by the ids of their questions."""
        questions = fields.get("questions")
        if not isinstance(questions, list):
            return fields
        return {**fields, "questions": _one_id_each(questions)}
