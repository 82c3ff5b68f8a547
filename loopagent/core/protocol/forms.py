"""Forms that put structured questions to a person."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool

from loopagent.core.protocol.base import Wire


class TextQuestion(Wire):
    """Free text."""

    type: Literal["text", "textarea", "email"]
    placeholder: str | None = None
    """Shown while empty."""
    max_length: int | None = None
    """Characters at most."""
    markdown: StrictBool | None = None
    """Textarea: offer a rendered preview."""


class NumberQuestion(Wire):
    """A number or an amount of money."""

    type: Literal["number", "currency"]
    min: float | None = None
    max: float | None = None
    prefix: str | None = None
    """Shown before the number."""
    suffix: str | None = None
    """Shown after the number."""


class DateQuestion(Wire):
    """A day, or a day with a time."""

    type: Literal["date", "datetime"]


class Option(Wire):
    """One choice."""

    value: str | int | float | bool
    """What is answered."""
    label: str
    """What is shown."""
    icon: str | None = None


class ChoiceQuestion(Wire):
    """One or several of the options."""

    type: Literal["buttongroup", "radio", "dropdown", "checkbox"]
    options: list[Option] = Field(min_length=1)
    multiple: StrictBool = False
    """Checkbox: several may be chosen."""


class SliderQuestion(Wire):
    """A number on a scale."""

    type: Literal["slider"]
    min: float
    max: float
    step: float = 1
    suffix: str | None = None


class DateRangeQuestion(Wire):
    """Two days: start and end."""

    type: Literal["daterange"]


class TimeQuestion(Wire):
    """A time of day, HH:mm."""

    type: Literal["time"]


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


class FormQuestion(Wire):
    """One question of a form."""

    id: str = Field(min_length=1)
    """Key of the answer."""
    label: str
    """What is asked."""
    type: QuestionType
    """Kind of input, an object with its own `type`."""
    required: StrictBool = False
    default_value: Any = None
    """Filled in at first."""
    help_text: str | None = None
    width_hint: Literal["narrow", "medium", "wide", "full", "auto"] | None = None


class AgentResponseForm(Wire):
    """Questions shown together with the message."""

    title: str | None = None
    description: str | None = None
    submit_label: str = "Submit"
    questions: list[FormQuestion] = Field(min_length=1)
