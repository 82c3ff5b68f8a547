"""What the agents of the stored runs call."""

from loopagent import action


@action(effects="write")
async def book(item: str) -> str:
    """Book an item."""
    return f"booked {item}"


@action(effects="read")
async def look(item: str) -> str:
    """Look at an item."""
    return f"seen {item}"
