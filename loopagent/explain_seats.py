"""The seats: questions that come up in every run, each answered by somebody.

Source: decision-seats.
"""

from __future__ import annotations

from typing import Final


SEATS: Final = {
    "A1": "Which model is asked?",
    "A2": "Plan first, or act?",
    "A3": "May it leave plan mode?",
    "A4": "When is a message heard that comes in between?",
    "A5": "Is a skill meant?",
    "A6": "Does an event start a run?",
    "B3": "Which skills may be used?",
    "B4": "Which actions are there?",
    "B5": "How are attachments shown?",
    "B6": "Which results are out of date?",
    "B10": "What do hooks of the host say?",
    "B8": "What of the past is shown?",
    "C1": "What does the model want?",
    "C2": "Is a failed model call repeated?",
    "C3": "What follows from an empty or refused reply?",
    "C4": "What becomes of an invalid reply?",
    "C5": "What becomes of a reply that was cut off?",
    "B9": "Does it go back to an earlier point?",
    "C7": "Is it stopped?",
    "C8": "Is another model asked as well?",
    "D1": "What runs, and how does it end?",
    "D2": "Is it allowed?",
    "D3": "What does a person's refusal mean?",
    "D4": "What becomes of a failure?",
    "D5": "How long may it take?",
    "D6": "How much of a result is shown?",
    "D7": "Does it run again after a crash?",
    "D8": "What does the client do?",
    "D9": "May it begin before the reply is complete?",
    "F1": "Is it making mistakes?",
    "F2": "Is it repeating itself?",
    "F3": "Is a limit reached?",
    "F4": "What stays in the context?",
    "G1": "Is it done?",
    "G2": "What if the model just stops?",
    "G3": "Who has to go on?",
    "G5": "What came of a sub-agent?",
    "H1": "Who is called, and with what?",
}
"""Seat → its question."""
