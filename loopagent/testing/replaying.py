"""Recorded runs gone through again, with the rules and the prompt of this version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopagent import resources
from loopagent.core.prompt import system_prompt
from loopagent.runtime import replay as replays


if TYPE_CHECKING:
    from loopagent.runtime.replay import Recording, Replayed


def replay(recording: Recording) -> Replayed:
    """Fold the log of a run again and compare what comes of it: messages, facts, prompts, and the state at the end.

    Nothing is performed: no model is asked, no action called.

    Args:
        recording: Of `read_recording`, or of `record` for a run in a store.

    Returns:
        How much was compared, and every difference.
    """
    template = resources.prompt("system.md.j2")
    return replays.replay(recording, lambda spec: system_prompt(template, spec))
