"""The keys of a reply, and by which an object is known as one."""

from __future__ import annotations

import re
from typing import Any, Final

from loopagent.core.strict import as_object


ENVELOPE_KEYS: Final = frozenset(
    {
        "taskcomplete",
        "nextstep",
        "message",
        "reasoning",
        "payloadchangerequest",
        "scratchpad",
        "responseform",
        "actionablecommands",
        "automaticcommands",
        "artifacttoolcalls",
        "conversationtoolcalls",
        "memorywrites",
        "confidence",
    }
)
"""Keys of a reply, folded."""
WRAPPERS: Final = frozenset(
    {"response", "reply", "output", "result", "turn", "loopagentresponse", "json"}
)
"""Folded keys that models put around a reply."""
_COMMON: Final = frozenset({"message", "reasoning", "confidence"})
"""Keys of a reply that other objects have as well."""
_RESIDUE: Final = re.compile(r"[\s_-]+")


def fold_key(key: str) -> str:
    """Give a key without type syntax (`taskComplete?`, `actions: [1+]`), separators and case."""
    return _RESIDUE.sub("", key.partition(":")[0].strip().rstrip("?*")).casefold()


def surely_reply(value: dict[str, Any]) -> bool:
    """Whether an object is a reply, whatever else it might be."""
    keys = {fold_key(key) for key in value}
    return bool(keys & (ENVELOPE_KEYS - _COMMON)) or keys <= ENVELOPE_KEYS or is_wrapped(value)


def maybe_reply(value: dict[str, Any]) -> bool:
    """Whether an object has any key of a reply."""
    return not ENVELOPE_KEYS.isdisjoint(map(fold_key, value))


def is_wrapped(value: dict[str, Any], depth: int = 3) -> bool:
    """Whether an object is nothing but a reply with a known word around it."""
    if depth == 0 or len(value) != 1:
        return False
    key, found = next(iter(value.items()))
    inner = as_object(found)
    if fold_key(key) not in WRAPPERS or inner is None:
        return False
    return maybe_reply(inner) or is_wrapped(inner, depth - 1)
