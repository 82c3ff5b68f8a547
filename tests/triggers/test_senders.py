"""Who may call a webhook, and what a call may be."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent import RequestError
from loopagent.triggers.incoming import Call, called
from loopagent.triggers.signatures import check_sender, secret_of, sign
from loopagent.triggers.spec import WebhookAuth
from tests.triggers.playing import BEGIN, Clock, call, log, playing, tasks, trigger


SECRET = b"a secret of some length"
BODY = b'{"a": 1}'
NOW = int(BEGIN)


def _checked(
    auth: dict[str, Any], headers: dict[str, str], body: bytes = BODY, *secrets: bytes
) -> str:
    made = WebhookAuth.model_validate({"secretEnv": ["S"], **auth})
    try:
        check_sender(made, secrets or (SECRET,), headers, body, BEGIN)
    except RequestError as error:
        return f"{error.code}" if error.status == 401 else "wrong status"
    return "in"


def _hex(body: bytes, algorithm: str = "sha256") -> str:
    return hmac.new(SECRET, body, algorithm).hexdigest()


def test_bearer() -> None:
    auth = {"type": "bearer"}
    assert _checked(auth, {"authorization": "Bearer a secret of some length"}) == "in"
    for wrong in ("", "a secret of some length", "Bearer ", "Bearer x", "Bearer é"):
        assert _checked(auth, {"authorization": wrong}) == "unauthorized"
    assert _checked(auth, {}) == "unauthorized"


def test_hmac_as_github_sends_it() -> None:
    auth = {"type": "hmac"}
    signed = {"x-hub-signature-256": f"sha256={_hex(BODY)}"}
    assert _checked(auth, signed) == "in"
    assert _checked(auth, {"x-hub-signature-256": signed["x-hub-signature-256"].upper()}) == "in"
    assert _checked(auth, signed, BODY + b" ") == "unauthorized"
    assert _checked(auth, {"x-hub-signature-256": _hex(BODY)}) == "unauthorized"
    assert _checked(auth, {}) == "unauthorized"
    assert _checked(auth, signed, BODY, b"old secret", SECRET) == "in"  # while it is being changed
    assert _checked(auth, signed, BODY, b"old secret") == "unauthorized"


def test_hmac_with_base64_and_a_time() -> None:
    auth = {
        "type": "hmac",
        "header": "X-Signature",
        "prefix": "",
        "algorithm": "sha512",
        "encoding": "base64",
        "timestampHeader": "X-Time",
    }
    for at, wanted in ((NOW, "in"), (NOW - 299, "in"), (NOW - 301, "unauthorized"), (NOW + 400, "unauthorized")):  # fmt: skip
        made = hmac.new(SECRET, f"{at}.".encode() + BODY, "sha512").digest()
        headers = {"x-signature": base64.b64encode(made).decode(), "x-time": str(at)}
        assert _checked(auth, headers) == wanted
        assert _checked(auth, {**headers, "x-time": str(at + 1)}) == "unauthorized"


def test_standard_webhooks_by_its_own_example() -> None:
    # The example of the specification's reference libraries.
    secret = secret_of(
        WebhookAuth(type="standard", secret_env=("S",)), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    )
    body, at = b'{"test": 2432232314}', 1_614_265_330
    wanted = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, body) == wanted


def test_standard_webhooks() -> None:
    auth = {"type": "standard"}
    good = {"webhook-id": "m1", "webhook-timestamp": str(NOW), "webhook-signature": sign(SECRET, "m1", NOW, BODY)}  # fmt: skip
    assert _checked(auth, good) == "in"
    rotated = {**good, "webhook-signature": f"v1,AAAA v1a,xx {good['webhook-signature']}"}
    assert _checked(auth, rotated) == "in"
    for name, value in (("webhook-id", "m2"), ("webhook-id", ""), ("webhook-timestamp", str(NOW + 1)),
                        ("webhook-timestamp", "soon"), ("webhook-timestamp", "\uff19"), ("webhook-signature", "v1,"),
                        ("webhook-signature", "é")):  # fmt: skip
        assert _checked(auth, {**good, name: value}) == "unauthorized"
    old = {**good, "webhook-timestamp": str(NOW - 600), "webhook-signature": sign(SECRET, "m1", NOW - 600, BODY)}  # fmt: skip
    assert _checked(auth, old) == "unauthorized"


@given(st.dictionaries(st.sampled_from(["authorization", "x-hub-signature-256", "webhook-id", "webhook-timestamp", "webhook-signature"]), st.text()))  # fmt: skip
def test_nothing_but_the_secret_opens(headers: dict[str, str]) -> None:
    for kind in ("bearer", "hmac", "standard"):
        assert _checked({"type": kind}, headers) == "unauthorized"


@pytest.mark.parametrize("text", ["", " ", "whsec_???"])
def test_secrets_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"empty|base64"):
        secret_of(WebhookAuth(type="standard", secret_env=("S",)), text)


@pytest.mark.anyio
async def test_without_a_secret_nobody_gets_in() -> None:
    webhook = {"auth": {"type": "bearer", "secretEnv": ["HOOK_SECRET"]}}
    async with playing(trigger(webhook=webhook)) as app:
        for value in ("Bearer ", "Bearer x", ""):
            with pytest.raises(RequestError) as caught:
                await app.triggers.deliver("t", call({}, authorization=value))
            assert (caught.value.code, caught.value.status) == ("no_secret", 503)
        assert await log(app, "id") == []


@pytest.mark.anyio
async def test_a_secret_is_never_shown() -> None:
    webhook = {"auth": {"type": "bearer", "secretEnv": ["HOOK_SECRET"]}}
    spec = trigger(webhook=webhook, message="{{ headers }} {{ body }}")
    async with playing(spec, env={"HOOK_SECRET": "very-secret-1"}) as app:
        sent = call("x", authorization="Bearer very-secret-1", cookie="session-7")
        done = await app.triggers.deliver("t", sent)
        assert done.status == "fired"
        shown = (await tasks(app))[0]
        assert "very-secret" not in shown
        assert "session-7" not in shown
        assert app.redactor.mask("it is very-secret-1") == "it is [redacted]"


# ---------------------------------------------------------------------- what a call may be


def _event(body: bytes, webhook: dict[str, Any] | None = None, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    spec = trigger(webhook={"auth": {"type": "none"}, **(webhook or {})})
    return called(spec, Call(named, {"q": "1"}, body), at=BEGIN, token="made-up")


def test_bodies() -> None:
    assert _event(b'{"a": [1, null]}').scope["body"] == {"a": [1, None]}
    assert _event(b"", content_type="application/json").scope["body"] is None
    assert (
        _event(b'"\\ud800"', content_type="application/cloudevents+json; charset=utf-8").scope[
            "body"
        ]
        == "\ufffd"
    )
    form = _event(b"a=1&b=x+y&a=2", content_type="application/x-www-form-urlencoded")
    assert form.scope["body"] == {"a": "2", "b": "x y"}
    assert _event("grüß".encode(), content_type="text/plain").scope["body"] == "grüß"
    assert _event(b"{}").scope["query"] == {"q": "1"}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"{", "application/json"),
        (b"NaN", "application/json"),
        (b'{"a":1,"a":2}', "application/json"),
        (b"[" * 50_000, "application/json"),
        (b"\xff\xfe", "text/plain"),
        (b"&".join(b"a=1" for _ in range(1_001)), "application/x-www-form-urlencoded"),
    ],
)
def test_bodies_that_cannot_be_read(body: bytes, kind: str) -> None:
    with pytest.raises(RequestError) as caught:
        _event(body, content_type=kind)
    assert (caught.value.code, caught.value.status) == ("bad_body", 400)


def test_ids_of_events() -> None:
    assert _event(b"{}").id == "made-up"
    assert _event(b"{}", webhook_id="w", idempotency_key="k").id == "w"
    assert _event(b"{}", idempotency_key="k").id == "k"
    by_header = {"eventId": {"header": "X-GitHub-Delivery"}}
    assert _event(b"{}", by_header, x_github_delivery="g", webhook_id="w").id == "g"
    by_field = {"eventId": {"field": "body.event.id"}}
    assert _event(b'{"event": {"id": 17}}', by_field).id == "17"
    long = _event(b"{}", webhook_id="x" * 500).id
    assert long == "sha256:" + hashlib.sha256(b"x" * 500).hexdigest()
    for body in (
        b"{}",
        b'{"event": {"id": ""}}',
        b'{"event": {"id": [1]}}',
        b'{"event": {"id": true}}',
    ):
        with pytest.raises(RequestError, match=r"body\.event\.id"):
            _event(body, by_field)


@pytest.mark.anyio
async def test_how_large_a_body_may_be() -> None:
    async with playing(
        trigger(webhook={"auth": {"type": "none"}, "maxBodyBytes": 10}), clock=Clock()
    ) as app:
        assert (await app.triggers.deliver("t", Call(body=b'"12345678"'))).bytes == 10
        with pytest.raises(RequestError) as caught:
            await app.triggers.deliver("t", Call(body=b'"123456789"'))
        assert caught.value.status == 413
