"""Secrets are found in every form in which they turn up, and nothing else is."""

from __future__ import annotations

import base64
import json
import re
from html import escape
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.errors import ConfigError
from loopagent.redaction import MIN_CHARS, REDACTED, Redactor, StreamRedactor, secrets_of


SECRET = 'k"y/CANARY 2+ä???>>>'
secrets = st.text(st.characters(exclude_categories=["Cs"]), min_size=MIN_CHARS, max_size=40).filter(
    lambda one: one not in REDACTED and one.strip() == one
)


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        json.dumps(SECRET),
        json.dumps(SECRET, ensure_ascii=False),
        f"https://x/?key={quote(SECRET)}",
        f"https://x/?key={quote_plus(SECRET)}",
        urlencode({"a": "b", "key": SECRET}),
        re.sub("%..", lambda found: found[0].lower(), quote(SECRET, safe="")),
        f"<p>{escape(SECRET)}</p>",
        f"<p>{escape(SECRET, quote=False)}</p>",
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode(),
        "Basic " + base64.b64encode(f"user:{SECRET}".encode()).decode(),
        "Basic " + base64.b64encode(f"ab:{SECRET}:c".encode()).decode(),
        "Basic " + base64.b64encode(f"a:{SECRET}".encode()).decode(),
    ],
)
def test_a_secret_is_found_in_the_usual_forms(form: str) -> None:
    masked = Redactor([SECRET]).mask(f"before {form} after")
    assert REDACTED in masked
    assert masked.startswith("before ")
    assert masked.endswith(" after")
    for part in ("CANARY", "Q0FOQVJZ"):
        assert part not in masked


@given(secret=secrets, before=st.text(max_size=9), after=st.text(max_size=9))
def test_no_secret_survives(secret: str, before: str, after: str) -> None:
    mask = Redactor([secret]).mask
    assert secret not in mask(f"{before}|{secret}|{after}").replace(REDACTED, "")


@given(text=st.text())
def test_without_secrets_a_text_stays_as_it_is(text: str) -> None:
    assert Redactor().mask(text) == text
    assert Redactor(["", "short"]).mask(text) == text


@given(secret=secrets, before=st.text(max_size=9), after=st.text(max_size=9), cut=st.integers(1, 9))
def test_no_secret_survives_in_pieces(secret: str, before: str, after: str, cut: int) -> None:
    text = f"{before}|{secret}|{after}"
    shown = StreamRedactor(Redactor([secret]))
    told = "".join(shown.feed("m", text[at : at + cut]) for at in range(0, len(text), cut))
    assert secret not in told.replace(REDACTED, "")
    assert Redactor([secret]).mask(text).startswith(told)


def test_ordinary_text_streams_on_and_each_field_for_itself() -> None:
    shown = StreamRedactor(Redactor(["secret-value"]))
    assert shown.feed("message", "the se") == "the "
    assert shown.feed("reasoning", "cret-value") == "cret-value"
    assert shown.feed("message", "cond") == "second"
    assert shown.feed("message", " secret-") == " "
    assert (shown.end("message"), shown.end("reasoning"), shown.end("plan")) == ("secret-", "", "")
    assert shown.feed("message", "value") == "value"
    assert StreamRedactor(Redactor()).feed("message", "secret-value") == "secret-value"


def test_the_longest_secret_goes_first() -> None:
    assert Redactor(["abcdef", "abcdefgh"]).mask("abcdefgh abcdef") == f"{REDACTED} {REDACTED}"


def test_which_variables_hold_secrets() -> None:
    env = {
        "OPENAI_API_KEY": " sk-one ",
        "ERP_API_KEY": "erp-two",
        "ERP_TOKEN": "token-three",
        "HOME": "/home/ann",
        "LOOPAGENT_API_TOKEN": "",
    }
    assert secrets_of(env) == ["erp-two", "sk-one"]
    assert secrets_of(env, ["ERP_TOKEN", "NOT_SET"]) == ["erp-two", "token-three", "sk-one"]
    with pytest.raises(ConfigError, match="ERP_PIN has fewer than 6"):
        secrets_of({"ERP_PIN": "1234"}, ["ERP_PIN"])
