"""How long the presenter takes over a reply of up to 1 MB that arrives in deltas of 4 bytes.

`python benchmarks/presenter.py`: CPU time by size, and how much more the last tenth of the deltas costs than the
first. Linear means that both ratios stay near 1.
"""

from __future__ import annotations

import json
import time
from itertools import pairwise

from loopagent.core.presenting.presenter import Presenter


DELTA_BYTES = 4
SIZES = (125_000, 250_000, 500_000, 1_000_000)
ENTRY = {"name": "look", "params": {"item": 1, "tags": ["a", "b"], "text": "some words here"}}


def message(size: int) -> str:
    """A reply that is one long message."""
    words = 'word "x" `y` and\n more é ' * (size // 29)
    return json.dumps({"taskComplete": True, "message": words})[:size]


def actions(size: int) -> str:
    """A reply that asks for many calls."""
    count = size // (len(json.dumps(ENTRY)) + 2)
    return json.dumps({"nextStep": {"type": "Actions", "actions": [ENTRY] * count}})


def payload(size: int) -> str:
    """A reply of which nearly nothing is shown."""
    data = [{"id": number, "name": "some name", "ok": True} for number in range(size // 46)]
    return json.dumps({"payloadChangeRequest": {"newElements": {"rows": data}}, "message": "ok"})


def measure(text: str) -> tuple[float, float]:
    """CPU seconds in all, and the last tenth over the first."""
    deltas = [text[at : at + DELTA_BYTES] for at in range(0, len(text), DELTA_BYTES)]
    presenter, tenth = Presenter(max_chars=2 * len(text)), len(deltas) // 10
    marks = [time.process_time()]
    for number, delta in enumerate(deltas, 1):
        presenter.feed(delta)
        if number % tenth == 0:
            marks.append(time.process_time())
    spent = [after - before for before, after in pairwise(marks)]
    return marks[-1] - marks[0], spent[9] / spent[0]


def main() -> None:
    """Print a table."""
    print("| reply | bytes | CPU s | µs a delta | last tenth over first |")
    print("| --- | --- | --- | --- | --- |")
    for make in (message, actions, payload):
        for size in SIZES:
            text = make(size)
            spent, ratio = min(measure(text) for _ in range(3))
            each = spent / (len(text) / DELTA_BYTES) * 1e6
            print(f"| {make.__name__} | {len(text):,} | {spent:.2f} | {each:.1f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
