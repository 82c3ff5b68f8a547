"""Whether a sender is who it claims to be. Secrets are compared in the same time, right or wrong."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from typing import TYPE_CHECKING, Final

from loopagent.errors import RequestError


if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loopagent.triggers.spec import WebhookAuth

STANDARD_PREFIX: Final = "whsec_"
"""How secrets of Standard Webhooks begin; base64 follows."""
MAX_SIGNATURES: Final = 20
"""Most signatures of one header that are looked at."""
_SECONDS: Final = re.compile(r"[0-9]{1,12}")


def check_sender(
    auth: WebhookAuth,
    secrets: Sequence[bytes],
    headers: Mapping[str, str],
    body: bytes,
    now: float,
) -> None:
    """Let a call pass that was made by somebody who knows a secret.

    Args:
        auth: What the trigger wants to see.
        secrets: The secrets, any of which will do.
        headers: Headers of the call, names in lower case.
        body: The body, as it came.
        now: Seconds since the epoch.

    Raises:
        RequestError: `unauthorized` (401).
    """
    check = _CHECKS.get(auth.type)
    if check is None:
        return
    if not any(check(auth, secret, headers, body) for secret in secrets):
        raise RequestError("unauthorized", _WANTED[auth.type], status=401)
    _check_time(auth, headers, now)


def secret_of(auth: WebhookAuth, text: str) -> bytes:
    """The secret in the value of an environment variable.

    Raises:
        ValueError: It is empty, or not what Standard Webhooks has.
    """
    text = text.strip()
    if not text:
        raise ValueError("is empty")
    if auth.type != "standard":
        return text.encode()
    try:
        return base64.b64decode(text.removeprefix(STANDARD_PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError(f"is not base64 after {STANDARD_PREFIX}") from error


def sign(secret: bytes, message_id: str, at_seconds: int, body: bytes) -> str:
    """A signature of Standard Webhooks, as it stands in `webhook-signature`."""
    signed = f"{message_id}.{at_seconds}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()


def _bearer(auth: WebhookAuth, secret: bytes, headers: Mapping[str, str], body: bytes) -> bool:
    del auth, body
    return hmac.compare_digest(headers.get("authorization", "").encode(), b"Bearer " + secret)


def _hmac(auth: WebhookAuth, secret: bytes, headers: Mapping[str, str], body: bytes) -> bool:
    if auth.timestamp_header is not None:
        body = headers.get(auth.timestamp_header.lower(), "").encode() + b"." + body
    made = hmac.digest(secret, body, auth.algorithm)
    text = made.hex() if auth.encoding == "hex" else base64.b64encode(made).decode()
    given = headers.get(auth.header.lower(), "")
    given = given.lower() if auth.encoding == "hex" else given
    prefix = auth.prefix.lower() if auth.encoding == "hex" else auth.prefix
    return hmac.compare_digest(given.encode(), (prefix + text).encode())


def _standard(auth: WebhookAuth, secret: bytes, headers: Mapping[str, str], body: bytes) -> bool:
    del auth
    message_id, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not message_id or not _SECONDS.fullmatch(at):
        return False
    wanted = sign(secret, message_id, int(at), body).encode()
    given = headers.get("webhook-signature", "").split(" ")[:MAX_SIGNATURES]
    return any(hmac.compare_digest(one.encode(), wanted) for one in given)


def _check_time(auth: WebhookAuth, headers: Mapping[str, str], now: float) -> None:
    """Refuse what was signed long ago: somebody may have kept it.

    Raises:
        RequestError: `unauthorized` (401).
    """
    name = {"standard": "webhook-timestamp", "hmac": auth.timestamp_header}.get(auth.type)
    if name is None:
        return
    text = headers.get(name.lower(), "")
    if not _SECONDS.fullmatch(text) or abs(now - int(text)) > auth.tolerance_seconds:
        most = f"{auth.tolerance_seconds:g} seconds"
        what = f"The time in {name} must be within {most} of now; send again with a new signature."
        raise RequestError("unauthorized", what, status=401)


_CHECKS: Final[dict[str, Callable[[WebhookAuth, bytes, Mapping[str, str], bytes], bool]]] = {
    "bearer": _bearer,
    "hmac": _hmac,
    "standard": _standard,
}
_WANTED: Final = {
    "bearer": "Send the trigger's secret as `Authorization: Bearer …`.",
    "hmac": "The signature does not fit the body and the trigger's secret.",
    "standard": "webhook-id, webhook-timestamp and webhook-signature do not fit the body and the trigger's secret.",
}
