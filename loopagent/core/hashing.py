"""One canonical JSON and one hash of it, for everything that is compared or bound by content."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final


_CANONICAL: Final = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, check_circular=False
)
"""Of values that are JSON already, so that none can hold itself."""


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal texts."""
    return _CANONICAL.encode(value)


def json_hash(value: Any) -> str:
    """SHA-256 of the canonical JSON, as hex."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "replace")).hexdigest()
