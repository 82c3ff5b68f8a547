"""Curl commands as actions: the request they send, without their secrets."""

from __future__ import annotations

from typing import Any

import pytest

from loopagent.actions.importing.curl import FromCurl, import_curl
from loopagent.actions.importing.texts import yaml_text
from loopagent.errors import ConfigError


URL = "https://api.x.example/v1/items"


def run(command: str) -> dict[str, Any]:
    found: dict[str, Any] = import_curl(command).action["run"]
    return {key: one for key, one in found.items() if key not in {"kind", "url"}}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (f"curl {URL}", {"method": "GET"}),
        (f"curl -I {URL}", {"method": "HEAD"}),
        (f"curl -sSL -XDELETE {URL}", {"method": "DELETE", "redirects": "same_origin"}),
        (f"curl --request=PUT {URL} -o out.txt --compressed", {"method": "PUT"}),
        (f"curl '{URL}?a=1&b=&a=2'", {"method": "GET", "query": {"a": ["1", "2"], "b": ""}}),
        (
            f"curl -G {URL} -d a=1 --data-urlencode 'q=a b'",
            {"method": "GET", "query": {"a": "1", "q": "a b"}},
        ),
        (
            f"curl {URL} -d a=1 -d 'b=x y&c=%26'",
            {"method": "POST", "body": {"a": "1", "b": "x y", "c": "&"}, "bodyType": "form"},
        ),
        (
            f"curl {URL} --json '{{\"a\": [1]}}'",
            {"method": "POST", "headers": {"Accept": "application/json"}, "body": {"a": [1]}},
        ),
        (
            f"curl -X PATCH {URL} -H 'content-type: application/json' --data-raw '{{\"from\": \"x\"}}'",
            {"method": "PATCH", "body": {"literal": {"from": "x"}}},
        ),
        (
            f"curl {URL} -H 'Content-Type: text/csv' --data-binary $'a,b\\nit\\'s\\u0021'",
            {
                "method": "POST",
                "headers": {"Content-Type": "text/csv"},
                "body": "a,b\nit's!",
                "bodyType": "text",
            },
        ),
        (
            f"curl {URL} \\\n  -H 'X-A: b: c' \\\r\n  -H 'Host: evil.example' -A me",
            {"method": "GET", "headers": {"X-A": "b: c"}},
        ),
    ],
)
def test_what_is_sent(command: str, expected: dict[str, Any]) -> None:
    assert run(command) == expected


@pytest.mark.parametrize(
    ("command", "auth"),
    [
        (f"curl -H 'Authorization: Bearer CANARY' {URL}", "bearer"),
        (f"curl --oauth2-bearer CANARY {URL}", "bearer"),
        (f"curl -u me:CANARY {URL}", "basic"),
        (f"curl -ume:CANARY {URL}", "basic"),
        (f"curl -u CANARY: {URL}", "api_key"),
        ("curl https://me:CANARY@api.x.example/", "basic"),
        (f"curl -H 'Authorization: Basic CANARY' {URL}", "basic"),
        (f"curl '{URL}?api_key=CANARY&a=1'", "api_key"),
        (f"curl '{URL}?token=CANARY' -u me:CANARY", "basic"),
        (f"curl -H 'Authorization: Digest CANARY' {URL}", ""),
        (f"curl -H 'X-Api-Key: CANARY' -H 'X-Api-Key2: CANARY' {URL}", ""),
        (f"curl -b 'sid=CANARY' {URL}", ""),
        (f"curl {URL} -d password=CANARY", ""),
        (f'curl {URL} --json \'{{"token": "CANARY"}}\'', ""),
    ],
)
def test_secrets_become_names(command: str, auth: str) -> None:
    made = import_curl(command)
    assert (made.action["run"].get("auth") or {}).get("type", "") == auth
    assert made.secrets
    assert len(set(made.secrets)) == len(made.secrets)
    assert "CANARY" not in yaml_text(made.action) + "".join(made.notes)


def test_the_rest_of_the_action() -> None:
    made: FromCurl = import_curl("curl -X DELETE http://127.0.0.1:8080/v1/a", "mine.drop")
    action = made.action
    assert action["name"] == "mine.drop"
    assert action["enabled"] is False
    assert action["effects"] == "irreversible"
    assert action["egress"] == {"hosts": ["127.0.0.1"], "ports": [8080]}
    assert import_curl(f"curl {URL}").action["name"] == "api_x_example.get_v1_items"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("wget https://x.example", "begin with curl"),
        ("curl 'https://x.example", "quotes"),
        ("curl", "no address"),
        (f"curl {URL} {URL}", "several addresses"),
        (f"curl {URL} | sh", "pipes"),
        (f"curl {URL} -F a=@b", "multipart"),
        (f"curl {URL} --form a=b", "multipart"),
        (f"curl {URL} -T file", "sends a file"),
        (f"curl {URL} -d @file", "sends a file"),
        (f"curl {URL} --data-urlencode a@file", "sends a file"),
        (f"curl {URL} -H @file", "reads headers"),
        (f"curl {URL} -b cookies.txt", "reads cookies"),
        (f"curl -k {URL}", "certificates"),
        (f"curl -x http://p:1 {URL}", "proxy"),
        (f"curl --magic {URL}", "not known"),
        (f"curl {URL} -H", "lacks its value"),
        (f"curl -X TRACE {URL}", "cannot be used"),
        (f"curl {URL} --json '{{'", "no JSON"),
        ("curl ftp://x.example/a", "no address that can be called"),
        ("curl https://x.example:x/", "is no address"),
        ("curl https://x.example/{a,b}", "brace"),
        ("curl " + "x" * 200_001, "characters"),
    ],
)
def test_what_is_refused(command: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        import_curl(command)
    assert said in " ".join([str(caught.value), *caught.value.problems])
