"""Bodies of requests that are read more than once."""

from starlette.types import Message, Receive


def replaying(body: bytes, receive: Receive) -> Receive:
    """A request's messages, with a body that was read before, or is another."""
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
