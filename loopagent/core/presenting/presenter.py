"""The presenter: text of one reply goes in as it arrives, pieces of its fields come out.

What comes out is a preview. While everything is plain JSON it is exact; what is not certain is not shown until
`finish` compares with the reply as it is read in the end.

Source:
    events and states, section 4; faults S13.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final

from loopagent.core.envelope import LoopAgentResponse
from loopagent.core.fold import step_shape, step_type
from loopagent.core.fold_values import TooManyError, ValueFolder
from loopagent.core.json_values import compact_json
from loopagent.core.keys import ENVELOPE_KEYS, WRAPPERS
from loopagent.core.presenting.growing import Growing
from loopagent.core.presenting.opening import Opening
from loopagent.core.presenting.parts import Delta, Place, Retracted, Role, Shown, parts_of
from loopagent.core.presenting.scanner import Scanner
from loopagent.core.protocol.base import Wire
from loopagent.core.protocol.forms import AgentResponseForm
from loopagent.core.reply import DEFAULT_RULES, ReplyRules, read_reply
from loopagent.core.spelling import Kind, Listed, shape_of
from loopagent.core.strict import DuplicateKeyError, same
from loopagent.core.text import MAX_CHARS, clean_text, decode_json


_TAKEN: Final = frozenset({"complete", "step", "continue"})
"""Outcomes of replies that take effect."""
_COMPLETE: Final = "taskComplete"
_TYPE: Final = "nextStep.type"
_MESSAGE: Final = "message"


class Presenter:
    """Follows one reply. Nothing that it hands out changes later.

    Args:
        max_chars: Longest reply that is read; of a longer one nothing more is shown.
    """

    def __init__(self, *, max_chars: int = MAX_CHARS) -> None:
        self._left = max_chars
        self._opening = Opening()
        self._scanner: Scanner | None = None
        self._quiet = False
        """Nothing more is shown before the end."""
        self._over = False
        self._is_reply = False
        self._begun: set[str] = set()
        self._texts: dict[str, Growing] = {}
        self._values: dict[Place, str] = {}
        """Values that were shown, as JSON: texts do not change, whatever is done to what was handed out."""
        self._unsure: list[Callable[[], None]] = []
        """What is to be shown once it is certain."""
        self._out: list[Shown] = []

    # ------------------------------------------------------------ in and out

    def feed(self, delta: str) -> tuple[Shown, ...]:
        """Take the next piece of the reply, of any size.

        Returns:
            What can be shown now.
        """
        self._left -= len(delta)
        self._quiet = self._quiet or self._left < 0
        text = clean_text(delta)
        while text and not (self._quiet or self._over):
            text = self._find(text) if self._scanner is None else self._scan(self._scanner, text)
        return self._taken()

    def finish(
        self,
        text: str | None = None,
        finish: str = "stop",
        *,
        rules: ReplyRules = DEFAULT_RULES,
    ) -> tuple[Shown, ...]:
        """The stream has ended.

        Args:
            text: The whole reply; what of it was not shown, or not as it is read in the end, is shown now. Without
                it, or when nothing of it counts, whatever is not complete is closed.
            finish: Why the provider stopped.
            rules: What the agent may do.
        """
        if self._over:
            return ()
        self._over = True
        reading = None if text is None else read_reply(clean_text(text), finish, rules=rules)
        if reading is not None and reading.outcome in _TAKEN:
            self._agree(reading.reply)
        else:
            self._cut_off()
        return self._taken()

    def stop(self) -> None:
        """Show nothing more, whatever comes: the run was cancelled, or the reply is not wanted."""
        self._over = True

    def snapshot(self) -> tuple[Delta, ...]:
        """All that was shown and holds, for who comes late."""
        texts = [
            Delta(path, one.shown(), done=one.done, truncated=one.cut, role=self._role_of(path))
            for path, one in self._texts.items()
        ]
        values = [
            Delta(path, value=json.loads(raw), index=index, done=True)
            for (path, index), raw in self._values.items()
        ]
        return (*texts, *values)

    @property
    def message(self) -> str:
        """What was shown of the message."""
        growing = self._texts.get(_MESSAGE)
        return "" if growing is None else growing.shown()

    def _taken(self) -> tuple[Shown, ...]:
        out, self._out = tuple(_joined(self._out)), []
        return out

    # ------------------------------------------------------------ following the text

    def _find(self, text: str) -> str:
        found, rest = self._opening.feed(text)
        if found == "forget":
            self._forget()
        elif found is not None and (found == "doubtful" or self._is_reply):
            self._quiet = True
        elif found == "object":
            self._scanner = Scanner(self)
        return rest

    def _scan(self, scanner: Scanner, text: str) -> str:
        rest = text[scanner.feed(text) :]
        if scanner.lost:
            self._quiet = True
        elif scanner.ended:
            self._scanner = None
            if not self._is_reply:
                self._begun.clear()  # an example of something, before the reply
        return rest

    def _forget(self) -> None:
        """What was shown belonged to a thought."""
        if self._texts or self._values:
            self._out.append(Retracted())
        self._texts.clear()
        self._values.clear()
        self._begun.clear()
        self._is_reply = False

    # ------------------------------------------------------------ what the scanner tells

    def key(self, folded: str) -> None:
        """A key of the reply came, folded."""
        self._is_reply = self._is_reply or folded in ENVELOPE_KEYS or folded in WRAPPERS

    def begins(self, path: str) -> bool:
        """A value that is wanted begins; a second one under the same key is not wanted."""
        fresh = path not in self._begun
        self._begun.add(path)
        return fresh

    def grows(self, path: str, piece: str) -> None:
        """A piece of a text came."""
        shown = self._growing(path).take(piece)
        if shown:
            self._show(path, shown)

    def text_ends(self, path: str) -> None:
        """A text seems to end."""
        rest = self._growing(path).rest()
        if rest:
            self._show(path, rest)
        self._unsure.append(lambda: self._end(path))

    def captured(self, place: Place, raw: str) -> None:
        """A value seems to be complete; as JSON."""
        self._unsure.append(lambda: self._value(place, raw))

    def confirmed(self) -> None:
        """Whatever seemed to end or to be complete is so."""
        if self._unsure:
            certain, self._unsure = self._unsure, []
            for one in certain:
                one()

    # ------------------------------------------------------------ showing

    def _growing(self, path: str) -> Growing:
        if path not in self._texts:
            self._texts[path] = Growing()
        return self._texts[path]

    def _show(self, path: str, text: str, *, done: bool = False, cut: bool = False) -> None:
        self._out.append(Delta(path, text, done=done, truncated=cut, role=self._role_of(path)))

    def _end(self, path: str) -> None:
        self._growing(path).done = True
        self._show(path, "", done=True)

    def _value(self, place: Place, raw: str) -> None:
        try:
            value = _as_read(place, decode_json(raw))
        except (ValueError, DuplicateKeyError, TooManyError):
            self._quiet = True
            return
        if value is not None:
            self._put(place, value)

    def _put(self, place: Place, value: Any) -> None:
        path, index = place
        raw = self._values[place] = compact_json(value)
        self._out.append(Delta(path, value=json.loads(raw), index=index, done=True))

    def _role_of(self, path: str) -> Role | None:
        """What the message is, as far as is known."""
        if path != _MESSAGE:
            return None
        kind = self._values.get((_TYPE, None))
        if kind is not None:
            return "question" if kind == '"Chat"' else "narration"
        return "answer" if self._values.get((_COMPLETE, None)) == "true" else "narration"

    # ------------------------------------------------------------ the end

    def _agree(self, reply: dict[str, Any]) -> None:
        """Show what is missing of an accepted reply, and take back what is not as it was shown."""
        final = dict(parts_of(reply))
        wrong = {
            path for path, one in self._texts.items() if not _begins(final.get((path, None)), one)
        }
        wrong |= {
            place[0]
            for place, raw in self._values.items()
            if place not in final or not same(json.loads(raw), final[place])
        }
        if wrong:
            self._out.append(Retracted(tuple(sorted(wrong))))
            self._texts = {path: one for path, one in self._texts.items() if path not in wrong}
            self._values = {at: raw for at, raw in self._values.items() if at[0] not in wrong}
        values = [(place, value) for place, value in final.items() if not _is_text(place)]
        for place, value in values:
            if place not in self._values:
                self._put(place, value)
        for (path, index), text in final.items():
            if _is_text((path, index)) and not self._growing(path).done:
                self._rest(path, text)

    def _rest(self, path: str, text: str) -> None:
        """Show what is missing of a text."""
        growing = self._growing(path)
        missing = text[len(growing.shown()) :]
        growing.add(missing)
        growing.done = True
        self._show(path, missing, done=True)

    def _cut_off(self) -> None:
        """Close whatever is not complete."""
        for path, growing in self._texts.items():
            if not growing.done:
                growing.cut = True
                self._show(path, growing.rest(), cut=True)
        if self._scanner is not None and self._scanner.capturing is not None:
            path, index = self._scanner.capturing
            self._out.append(Delta(path, index=index, truncated=True))


def _begins(text: Any, growing: Growing) -> bool:
    """Whether what was shown of a text is its beginning, and all of it when it was said to be complete."""
    shown = growing.shown()
    return isinstance(text, str) and (text == shown if growing.done else text.startswith(shown))


def _joined(shown: Iterable[Shown]) -> Iterable[Shown]:
    """The same with fewer pieces: what comes of one text without anything between is one piece."""
    last: Shown | None = None
    for one in shown:
        if _follows(last, one):
            assert isinstance(last, Delta)
            assert isinstance(one, Delta)
            text = f"{last.text}{one.text}"
            last = Delta(one.field, text, done=one.done, truncated=one.truncated, role=one.role)
            continue
        if last is not None:
            yield last
        last = one
    if last is not None:
        yield last


def _follows(last: Shown | None, one: Shown) -> bool:
    if not (isinstance(last, Delta) and isinstance(one, Delta)):
        return False
    return last.field == one.field and last.text is not None and one.text is not None


# ------------------------------------------------------------ values as the reader reads them

_TEXTS: Final = frozenset({_MESSAGE, "reasoning", "nextStep.plan"})


def _is_text(place: Place) -> bool:
    return place[0] in _TEXTS


_PARENTS: Final[dict[str, type[Wire]]] = {"": LoopAgentResponse, "responseForm": AgentResponseForm}


@cache
def _kind(path: str) -> Kind | None:
    """What an entry of a list, or a value, should be."""
    parent, _, name = path.rpartition(".")
    shape = step_shape() if parent == "nextStep" else shape_of(_PARENTS[parent])
    kind = shape.kinds.get(name)
    return kind.item if isinstance(kind, Listed) else kind


def _as_read(place: Place, value: Any) -> Any:
    """A value as the reader of replies takes it, tolerated spellings included; None for one that is not shown."""
    path, _ = place
    if path == _TYPE:
        return step_type(value) if isinstance(value, str) else None
    if path == _COMPLETE:
        return value if isinstance(value, bool) else None
    kind = _kind(path)
    return value if kind is None else ValueFolder().value(kind, value, path)
