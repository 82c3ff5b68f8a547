"""Whether a call of a webhook may come in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopagent.errors import RequestError
from loopagent.logs import log
from loopagent.triggers.signatures import check_sender, secret_of


if TYPE_CHECKING:
    from collections.abc import Mapping

    from loopagent.triggers.incoming import Call
    from loopagent.triggers.spec import TriggerSpec, Webhook


def check_call(spec: TriggerSpec, call: Call, env: Mapping[str, str], now: float) -> None:
    """Refuse a call that is too large or whose sender does not prove who it is; nothing of it is stored then.

    Args:
        spec: The trigger.
        call: What came.
        env: Where the secrets are.
        now: Seconds since the epoch.

    Raises:
        RequestError: `not_a_webhook` (404), `too_large` (413), `unauthorized` (401), `no_secret` (503).
    """
    webhook = spec.webhook
    if webhook is None:
        text = f"Trigger {spec.name!r} is a schedule; it cannot be called."
        raise RequestError("not_a_webhook", text, status=404)
    if len(call.body) > webhook.max_body_bytes:
        text = f"The body of a call of this trigger may have {webhook.max_body_bytes} bytes."
        raise RequestError("too_large", text, status=413)
    try:
        check_sender(webhook.auth, _secrets(spec.name, webhook, env), call.headers, call.body, now)
    except RequestError as error:
        log.warning("trigger.refused", trigger=spec.name, code=error.code)
        raise


def _secrets(name: str, webhook: Webhook, env: Mapping[str, str]) -> list[bytes]:
    """The secrets of a webhook that can be used; without any nobody gets in."""
    found: list[bytes] = []
    for variable in webhook.auth.secret_env:
        try:
            found.append(secret_of(webhook.auth, env.get(variable, "")))
        except ValueError as error:
            log.warning("trigger.bad_secret", trigger=name, variable=variable, why=str(error))
    if webhook.auth.secret_env and not found:
        text = "The server has no secret for this trigger; see `loopagent triggers check`."
        raise RequestError("no_secret", text, status=503, retryable=True)
    return found
