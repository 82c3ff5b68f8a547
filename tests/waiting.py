"""Waiting for what happens in the background, however slow the machine is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


PATIENCE_SECONDS = 60
"""Only what never happens takes this long."""


async def until(condition: Callable[[], object]) -> None:
    """Wait for a condition of which nobody is told; fails when it never holds."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.005)
