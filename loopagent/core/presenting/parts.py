"""What of a reply is shown while it arrives, and the pieces that are handed out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from loopagent.core.keys import fold_key
from loopagent.core.strict import as_list, as_object


Role = Literal["narration", "answer", "question"]
"""What a message is, as far as is known: said beside work, the result, or something to be answered."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a field.

    The texts of a field, joined in order, are the text of the field. A value comes once, whole.

    Args:
        field: Path of the field, like `message` or `nextStep.actions`.
        text: What came of a text.
        value: A value that is complete.
        index: Which entry, where the field is a list.
        done: Nothing more of it follows.
        truncated: Nothing more of it follows, although it is not complete.
        role: Of a message: what it is, as far as is known.
    """

    field: str
    text: str | None = None
    value: Any = None
    index: int | None = None
    done: bool = False
    truncated: bool = False
    role: Role | None = None

    def data(self) -> dict[str, Any]:
        """The same as camelCase JSON, without what does not apply."""
        made: dict[str, Any] = {"field": self.field}
        if self.index is not None:
            made["index"] = self.index
        if self.text is not None:
            made["text"] = self.text
        elif not self.truncated:
            made["value"] = self.value
        made["done"] = self.done
        if self.truncated:
            made["truncated"] = True
        if self.role is not None:
            made["role"] = self.role
        return made


@dataclass(frozen=True, slots=True)
class Retracted:
    """What was shown of these fields does not hold; of all fields, when none is named."""

    fields: tuple[str, ...] = ()


Shown: TypeAlias = Delta | Retracted


@dataclass(frozen=True, slots=True)
class Want:
    """What is to be done with a value: `text` shown as it grows, `whole` when complete, `list` entry by entry.

    In `fields` there are further values to be shown.
    """

    kind: Literal["text", "whole", "list", "fields"]
    path: str = ""
    fields: Mapping[str, Want] = field(default_factory=dict[str, "Want"])


def _wants(prefix: str, **kinds: Literal["text", "whole", "list"]) -> dict[str, Want]:
    return {fold_key(name): Want(kind, f"{prefix}{name}") for name, kind in kinds.items()}


STEP: Final = _wants(
    "nextStep.",
    type="whole",
    plan="text",
    actions="list",
    clientTools="list",
    subAgents="list",
    subAgent="whole",
    skills="list",
)
"""Folded key of `nextStep` → what is shown of it."""
REPLY: Final = {
    **_wants(
        "",
        message="text",
        reasoning="text",
        taskComplete="whole",
        actionableCommands="list",
        automaticCommands="list",
    ),
    "nextstep": Want("fields", fields=STEP),
    "responseform": Want("fields", fields=_wants("responseForm.", questions="list")),
}
"""Folded key of a reply → what is shown of it."""

Place: TypeAlias = tuple[str, int | None]
"""Path of a field, and which entry of it."""


def parts_of(reply: dict[str, Any]) -> Iterator[tuple[Place, Any]]:
    """Everything of a complete reply that is shown: texts as texts, values as they are.

    Args:
        reply: A reply in the protocol's spelling.
    """
    yield from _parts(reply, REPLY)


def _parts(fields: dict[str, Any], wants: Mapping[str, Want]) -> Iterator[tuple[Place, Any]]:
    for key, value in fields.items():
        want = wants.get(fold_key(key))
        if want is None:
            continue
        if want.kind == "fields":
            yield from _parts(as_object(value) or {}, want.fields)
        elif want.kind == "list":
            for index, entry in enumerate(as_list(value) or ()):
                yield (want.path, index), entry
        elif want.kind == "whole" or isinstance(value, str):
            yield (want.path, None), value
