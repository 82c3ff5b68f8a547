"""Secrets cannot be printed, stored or sent astray; faults that other products had are not possible here."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.actions.reading import read_actions
from loopagent.actions.request import make_request
from loopagent.actions.secrets import Credential, Credentials, Revealed, SecretValue
from loopagent.errors import ActionError, ConfigError
from tests.actions.making import read


VALUE = "tok-CANARY-1"


def secret(*hosts: str) -> SecretValue:
    return SecretValue("key", VALUE, hosts or ("api.example.com",))


def test_a_secret_does_not_show() -> None:
    one = secret()
    assert VALUE not in f"{one} {one!r} {[one]} {vars(type(one))}"
    for use in (pickle.dumps, copy.deepcopy, json.dumps):
        with pytest.raises(TypeError):
            use(one)


@pytest.mark.parametrize(
    ("scheme", "host", "hosts", "fine"),
    [
        ("https", "api.example.com", ("api.example.com",), True),
        ("https", "API.example.com.", ("api.example.com",), True),
        ("https", "x.example.com", ("*.example.com",), True),
        ("http", "127.0.0.1", ("127.0.0.1",), True),
        ("http", "carrier.localhost", ("*.localhost",), True),
        ("http", "api.example.com", ("api.example.com",), False),
        ("https", "api.example.com.evil.net", ("api.example.com",), False),
        ("https", "evil-example.com", ("*.example.com",), False),
        ("https", "example.com", ("*.example.com",), False),
    ],
)
def test_a_secret_is_revealed_to_its_hosts_only(
    scheme: str, host: str, hosts: tuple[str, ...], *, fine: bool
) -> None:
    if fine:
        assert secret(*hosts).reveal(scheme, host) == VALUE
        return
    with pytest.raises(ActionError) as error:
        secret(*hosts).reveal(scheme, host)
    assert (error.value.code, error.value.fatal) == ("secret_denied", True)
    assert VALUE not in str(error.value)


def test_secrets_come_from_the_environment_or_a_file_that_may_change(tmp_path: Path) -> None:
    known = {
        "a": Credential(env="TOKEN_A", hosts=("x.example.com",)),
        "b": Credential(file="b.txt", hosts=("x.example.com",)),
    }
    store = Credentials(known, {"TOKEN_A": " first-one \n"}, tmp_path)
    assert (store.get("b"), store.get("c")) == (None, None)
    (tmp_path / "b.txt").write_text("second-one\n")
    assert store.values() == ["first-one", "second-one"]
    (tmp_path / "b.txt").write_text("third-one\n")
    found = store.get("b")
    assert found is not None
    assert found.reveal("https", "x.example.com") == "third-one"
    (tmp_path / "b.txt").write_text("abc")
    with pytest.raises(ConfigError, match="fewer than 6"):
        store.values()


def test_all_that_was_revealed_is_masked_also_when_it_is_coded() -> None:
    class Store:
        def get(self, name: str) -> SecretValue | None:
            return secret() if name == "key" else None

    revealed = Revealed(Store())
    assert revealed.masked([VALUE]) == [VALUE]
    assert revealed.to("https", "api.example.com")("key") == VALUE
    told = {f"x {VALUE}": [VALUE, "dG9rLUNBTkFSWS0x", 1, None, {"a": f"Bearer {VALUE}!"}]}
    assert "CANARY" not in json.dumps(revealed.masked(told))
    assert json.dumps(revealed.masked(told)).count("[redacted]") == 4


HTTP = "name: it\ndescription: x\neffects: read\negress: {hosts: [api.example.com]}\n"
PATH = HTTP + (
    "params: {type: object, required: [a], properties: {a: {type: string}}}\n"
    "run: {kind: http, url: 'https://api.example.com/v1/{a}/end', query: {q: {from: params.a}}}\n"
)


@given(st.text())
def test_no_parameter_leaves_its_place(text: str) -> None:
    action = read(PATH)
    scope: dict[str, Any] = {"params": {"a": text}}
    if text in {"", ".", ".."}:
        with pytest.raises(ActionError):
            make_request(action, action.run, scope, Revealed(None))
        return
    url = make_request(action, action.run, scope, Revealed(None)).url
    parts = urlsplit(url)
    assert parts.netloc == "api.example.com"
    assert parts.path.count("/") == 3
    assert unquote(parts.path.split("/")[2]) == text
    assert "#" not in url


@pytest.mark.parametrize(
    "text",
    [
        # What a model or caller gives must never choose whom to call.
        HTTP
        + "params: {type: object, required: [h], properties: {h: {type: string}}}\nrun: {kind: http, url: 'https://{h}/x'}",
        HTTP
        + "params: {type: object, required: [u], properties: {u: {type: string}}}\nrun: {kind: http, url: '{u}'}",
        HTTP + "run: {kind: http, url: {from: params.url}}",
        # Files are no addresses.
        HTTP + "run: {kind: http, url: 'file:///etc/passwd'}",
        HTTP + "run: {kind: http, url: 'gopher://api.example.com/x'}",
        # Configuration never becomes code or commands.
        HTTP + "run: {kind: python, code: 'import os'}",
        HTTP + "run: {kind: python, callable: 'os.system(1)'}",
        HTTP + "run: {kind: mcp, command: [sh, -c, id], tool: x}",
        HTTP + "run: {kind: prompt, template: '{{ x.__class__.mro() }}'}",
        "!!python/object/apply:os.system [id]",
    ],
)
def test_files_that_other_products_took(text: str) -> None:
    reading = read_actions(text, Path("x.action.yaml"))
    assert reading.problems
    assert reading.actions == []
