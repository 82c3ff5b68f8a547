"""Signatures of Standard Webhooks over what is sent.

Source: Standard Webhooks 1.0: `webhook-id`, `webhook-timestamp` and `webhook-signature`, HMAC-SHA256 in base64.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import TYPE_CHECKING, Final

from loopagent.errors import ConfigError


if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PREFIX: Final = "whsec_"
MIN_BYTES: Final = 16
"""Shortest secret that is signed with."""


def secrets_in(env: Mapping[str, str], name: str) -> list[bytes]:
    """The secrets in an environment variable, the one to sign with first.

    Raises:
        ConfigError: It holds none, or something else; the message does not show it.
    """
    found = [_secret(name, one) for one in env.get(name, "").split()]
    if not found:
        raise ConfigError(f"{name} is not set: webhooks are signed with it. {_HINT}")
    return found


def headers(
    secrets: Sequence[bytes], message_id: str, at_seconds: int, body: bytes
) -> list[tuple[str, str]]:
    """What goes with a request, so that its receiver knows who sent it; with one signature for each secret."""
    signed = f"{message_id}.{at_seconds}.".encode() + body
    marks = [hmac.digest(one, signed, hashlib.sha256) for one in secrets]
    signatures = " ".join(f"v1,{base64.b64encode(one).decode()}" for one in marks)
    return [
        ("webhook-id", message_id),
        ("webhook-timestamp", str(at_seconds)),
        ("webhook-signature", signatures),
    ]


def _secret(name: str, text: str) -> bytes:
    try:
        found = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        found = b""
    if not text.startswith(PREFIX) or len(found) < MIN_BYTES:
        raise ConfigError(f"{name} holds no secret of a webhook. {_HINT}")
    return found


_HINT = f"It is {PREFIX} and the base64 of at least {MIN_BYTES} random bytes."
