"""What somebody sees who follows a presenter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from loopagent.core.presenting.parts import Delta, Place, Retracted, Shown
from loopagent.core.presenting.presenter import Presenter


def pieces(text: str, cuts: Iterable[int]) -> Iterator[str]:
    """A text cut at some places."""
    places = sorted({0, len(text), *(one % (len(text) + 1) for one in cuts)})
    for start, end in pairwise(places):
        yield text[start:end]


def feed(presenter: Presenter, parts: Iterable[str]) -> list[Shown]:
    """Everything that comes out while the pieces go in."""
    return [one for part in parts for one in presenter.feed(part)]


def seen(shown: Sequence[Shown]) -> dict[Place, tuple[Any, bool]]:
    """What holds after all of it: text or value, and whether it is complete."""
    made: dict[Place, tuple[Any, bool]] = {}
    for one in shown:
        if isinstance(one, Retracted):
            made = {at: it for at, it in made.items() if one.fields and at[0] not in one.fields}
            continue
        place = (one.field, one.index)
        before, done = made.get(place, ("", False))
        assert not done, f"{place} was complete, and more of it came"
        value = one.value if one.text is None else before + one.text
        made[place] = (value, one.done)
    return made


def joined(shown: Sequence[Shown]) -> list[Shown]:
    """The same in as few pieces as possible, whatever the split was."""
    made: list[Shown] = []
    for one in shown:
        last = made[-1] if made else None
        if (
            isinstance(one, Delta)
            and isinstance(last, Delta)
            and one.text is not None
            and last.text is not None
            and one.field == last.field
        ):
            text = last.text + one.text
            made[-1] = Delta(one.field, text, done=one.done, truncated=one.truncated, role=one.role)
        elif not (isinstance(one, Delta) and one.text == "" and not (one.done or one.truncated)):
            made.append(one)
    return made
