"""Actions of kind `http` against a real server: what is sent, and what becomes of answers."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any

import pytest

from loopagent.actions.answer import said
from loopagent.actions.build import make_action
from loopagent.actions.pages import linked
from loopagent.core.outcome import Outcome
from loopagent.egress import EgressSettings
from tests.actions.making import Secrets, call, called, code, http_text, means, message, read
from tests.fakes.web import Got, Reply, Web, as_json, packed


pytestmark = pytest.mark.anyio
PARAMS = """
params:
  type: object
  additionalProperties: false
  required: [id]
  properties:
    id: {type: string}
    tags: {type: array, items: {type: string}}
    limit: {type: integer}
    deep: {type: object}
    note: {type: string}
"""


@pytest.fixture
def web() -> Iterator[Web]:
    with Web(lambda _: as_json({"ok": True})) as running:
        yield running


# --- what is sent ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("S1", "/items/S1/x"),
        ("a/b", "/items/a%2Fb/x"),
        ("a b?c#d&e", "/items/a%20b%3Fc%23d%26e/x"),
        ("%2e%2e", "/items/%252e%252e/x"),
        ("é", "/items/%C3%A9/x"),
        ("...", "/items/.../x"),
        ("a@b:c", "/items/a%40b%3Ac/x"),
    ],
)
async def test_a_parameter_is_one_segment_of_the_path(web: Web, given: str, path: str) -> None:
    assert (await called(web, PARAMS, {"id": given}, path="/items/{id}/x")).ok
    assert web.seen[-1].target == path


@pytest.mark.parametrize("given", ["..", ".", ""])
async def test_a_path_is_never_left(web: Web, given: str) -> None:
    outcome = await called(web, PARAMS, {"id": given}, path="/items/{id}")
    assert code(outcome) == "invalid_request"
    assert web.seen == []


async def test_two_parameters_do_not_make_a_step_up_together(web: Web) -> None:
    text = PARAMS.replace("required: [id]", "required: [id, note]")
    outcome = await called(web, text, {"id": ".", "note": "."}, path="/x/{id}{note}")
    assert code(outcome) == "invalid_request"


QUERY = """
  query:
    tags: {from: params.tags}
    limit: {from: params.limit}
    deep: {from: params.deep}
    fixed: 1
    yes: true
    text: {template: "id {{ params.id }} of {{ params.limit }}"}
    from: {literal: {a: 1}}
"""


async def test_query_values_keep_their_type_and_absent_ones_are_left_out(web: Web) -> None:
    await called(
        web, QUERY + PARAMS, {"id": "1", "tags": ["a", "b c"], "limit": 5, "deep": {"x": [1]}}
    )
    assert web.seen[-1].target == (
        "/x?tags=a&tags=b%20c&limit=5&deep=%7B%22x%22%3A%5B1%5D%7D&fixed=1&yes=true"
        "&text=id%201%20of%205&from=%7B%22a%22%3A1%7D"
    )
    await called(web, QUERY + PARAMS, {"id": "1"})
    assert web.seen[-1].target == "/x?fixed=1&yes=true&text=id%201%20of%20&from=%7B%22a%22%3A1%7D"


@pytest.mark.parametrize(
    ("arrays", "query"), [("comma", "tags=a%2Cb"), ("brackets", "tags%5B%5D=a&tags%5B%5D=b")]
)
async def test_lists_in_the_query(web: Web, arrays: str, query: str) -> None:
    text = f"  arrays: {arrays}\n  query: {{tags: {{from: params.tags}}}}\n" + PARAMS
    await called(web, text, {"id": "1", "tags": ["a", "b"]})
    assert web.seen[-1].target == f"/x?{query}"


async def test_a_json_body_keeps_types(web: Web) -> None:
    text = "  method: POST\n  body: {id: {from: params.id}, all: [{from: params.limit}, {from: params.deep}, 1.5, null]}\n"
    await called(web, text + PARAMS, {"id": "7", "limit": 3}, effects="write")
    assert web.seen[-1].json == {"id": "7", "all": [3, 1.5, None]}
    assert web.seen[-1].headers["content-type"] == "application/json"


async def test_a_parameter_that_is_null_on_purpose_is_sent_as_null(web: Web) -> None:
    params = "params: {type: object, properties: {a: {type: [string, 'null']}, b: {type: string}, c: {}}}\n"
    fields = "{a: {from: params.a}, b: {from: params.b}, c: {from: 'params.\"c\"'}, d: {from: params.c.d}}"
    text = f"  method: POST\n  body: {fields}\n  query: {{a: {{from: params.a}}}}\n{params}"
    await called(web, text, {"a": None, "c": None})
    assert (web.seen[-1].target, web.seen[-1].json) == ("/x", {"a": None, "c": None})
    await called(web, text, {})
    assert web.seen[-1].json == {}


async def test_form_and_text_bodies(web: Web) -> None:
    form = "  method: POST\n  bodyType: form\n  body: {a: x y, b: [1, 2], c: {from: params.note}}\n"
    await called(web, form + PARAMS, {"id": "7"}, effects="write")
    assert web.seen[-1].body == b"a=x+y&b=1&b=2"
    text = '  method: PUT\n  bodyType: text\n  body: {template: "Hi {{ params.id }}"}\n'
    await called(web, text + PARAMS, {"id": "é"}, effects="write")
    assert web.seen[-1].body == "Hi é".encode()


async def test_a_header_cannot_be_broken_out_of(web: Web) -> None:
    text = "  headers: {x-note: {from: params.note}}\n" + PARAMS
    outcome = await called(web, text, {"id": "1", "note": "a\r\nx-admin: 1"})
    assert code(outcome) == "invalid_request"
    assert web.seen == []


async def test_the_idempotency_key_is_the_same_for_all_attempts(web: Web) -> None:
    answers = iter([Reply(503), Reply(503), as_json({})])
    web.answer = lambda _: next(answers)
    text = "  method: POST\nidempotency: {}\nretry: {attempts: 3, wait: 0}\n"
    assert (await called(web, text, effects="write")).ok
    assert {one.headers["idempotency-key"] for one in web.seen} == {"run-1/1:action.0"}
    assert len(web.seen) == 3


# --- what comes back -------------------------------------------------------------------------------


def reply(body: bytes, kind: str = "", status: int = 200) -> Reply:
    return Reply(status, body, {"content-type": kind} if kind else {})


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (as_json({"a": 1}), {"a": 1}),
        (reply(b"", "application/json", 204), None),
        (reply(b"", "application/json"), None),
        (reply(b'{"a": 1}', "text/plain"), {"a": 1}),
        (reply(b"<html>hi</html>", "application/json"), "<html>hi</html>"),
        (reply(b"\xef\xbb\xbf[1]", "application/json"), [1]),
        (reply("né".encode("latin-1"), "text/plain; charset=ISO-8859-1"), "né"),
        (reply("né".encode("latin-1"), "text/plain"), "né"),
        (reply("né".encode("utf-16"), "text/plain"), "né"),
        (reply(b"x", "text/plain; charset=base64"), "x"),
        (reply(b"x", "text/plain; charset=nonsense"), "x"),
        (reply(b"x", "text/plain; charset=undefined"), "x"),
        (reply("日本".encode("shift_jis"), "text/plain; charset=Shift_JIS"), "日本"),
        (reply(b"a-" + b"z9" * 400_000, "text/plain; charset=punycode"), "a-" + "z9" * 400_000),
        (reply(b'{"a":1}\n{"a":2}\n', "application/x-ndjson"), [{"a": 1}, {"a": 2}]),
        (reply(b'{"a":1}\nno', "application/x-ndjson"), '{"a":1}\nno'),
        (reply(b'{"a": NaN}', "application/json"), '{"a": NaN}'),
        (reply(b"[" * 5000 + b"]" * 5000, "application/json"), "[" * 5000 + "]" * 5000),
        (reply(b"\x89PNG\0", "image/png"), {"contentType": "image/png", "bytes": 5}),
        (reply(b"a,b\n1,2", "text/csv"), "a,b\n1,2"),
        (reply(b"   "), None),
        (packed(b'{"packed": true}'), {"packed": True}),
    ],
)
async def test_answers_that_are_not_the_happy_case(web: Web, answer: Reply, result: Any) -> None:
    web.answer = lambda _: answer
    outcome = await called(web, "")
    assert outcome.ok, outcome
    assert outcome.value == result


@pytest.mark.parametrize(
    ("answer", "what", "told"),
    [
        (
            as_json({"detail": "no such city"}, 422),
            "http_422",
            'status 422 (application/json): {"detail": "no such city"}',
        ),
        (
            reply(b"<html><style>p{}</style><h1>Oops</h1></html>", "text/html", 500),
            "http_500",
            "status 500 (text/html): Oops",
        ),
        (reply(b"", "", 404), "http_404", "status 404, without a body"),
        (
            Reply(302, headers={"location": "http://169.254.169.254/"}),
            "redirect_refused",
            "redirects elsewhere",
        ),
        (Reply(200, b"half", claimed=100), "connection", "broke off"),
        (reply(b'{"a": "b', "application/json"), "connection", "broke off"),
        (Reply(200, b"plain", {"content-encoding": "gzip"}), "bad_answer", "cannot be read"),
        (packed(b"x" * 5_000_001), "answer_too_large", "longer than 5000000 bytes"),
    ],
)
async def test_answers_that_mean_an_error(web: Web, answer: Reply, what: str, told: str) -> None:
    web.answer = lambda _: answer
    outcome = await called(web, "")
    assert code(outcome) == what
    assert told in message(outcome)
    assert "169.254" not in message(outcome)
    assert outcome.error is not None
    assert not outcome.error.may_have_run


async def test_a_server_without_tls_is_told_from_one_that_is_not_there(web: Web) -> None:
    text = http_text(web, "").replace("url: http:", "url: https:")
    outcome = await call(make_action(read(text), means()))
    assert (code(outcome), "secure connection" in message(outcome)) == ("connection", True)


@pytest.mark.parametrize("piece", ["<", "<script ", "<style>a", "<script></s", "</"])
def test_an_error_page_that_is_made_to_take_long_does_not(piece: str) -> None:
    assert said({"status": 500, "body": piece * 500_000}, "text/html").startswith("status 500")


def test_an_error_page_without_what_nobody_reads() -> None:
    page = "<style>p > a { x: y }</style><p>No <b>such</b> thing<script>if (a < b && c > d) e()</script>"
    assert (
        said({"status": 404, "body": page}, "text/html") == "status 404 (text/html): No such thing"
    )


@pytest.mark.parametrize("piece", ["<", "<>;", "<a>; rel ", "<a>;a rel=", "<a>   "])
def test_links_that_are_made_to_take_long_do_not(piece: str) -> None:
    links = piece * 20_000
    assert linked({"headers": {"link": links}}) is None
    more = {"headers": {"link": f'{links},<b?x=1,2>; a="c"; REL="next"'}}
    assert linked(more) == "b?x=1,2"


async def test_a_long_error_is_cut(web: Web) -> None:
    web.answer = lambda _: reply(b"x" * 50_000, "text/plain", 500)
    assert len(message(await called(web, ""))) < 1_200


async def test_rules_of_the_file_name_errors(web: Web) -> None:
    web.answer = lambda _: as_json({"id": 9}, 404)
    text = "errors:\n- {when: 'status == `404`', code: NOT_FOUND, message: 'Nothing with id {{ params.id }}.'}\n"
    outcome = await called(web, text + PARAMS, {"id": "S1"})
    assert (code(outcome), message(outcome)) == ("NOT_FOUND", "Nothing with id S1.")


async def test_success_may_be_what_the_file_says(web: Web) -> None:
    web.answer = lambda _: as_json({"state": "failed"})
    assert code(await called(web, "  success: \"body.state == 'done'\"")) == "http_200"


async def test_select_and_schema_make_the_result(web: Web) -> None:
    web.answer = lambda _: as_json({"rows": [{"open": 1.5}, {"open": 2}]})
    text = "result: {select: 'sum(body.rows[].open)', schema: {type: number}}"
    assert (await called(web, text)).value == 3.5
    web.answer = lambda _: as_json({"rows": [{"open": "x"}]})
    assert "cannot be selected" in message(await called(web, text))
    text = "result: {select: body.rows, schema: {type: number}}"
    assert "not as promised" in message(await called(web, text))


async def test_redirects_within_one_origin_where_the_file_allows_them(web: Web) -> None:
    def answer(got: Got) -> Reply:
        if got.target == "/x":
            return Reply(302, headers={"location": "/y?a=1"})
        return (
            Reply(302, headers={"location": "https://evil.example/"})
            if got.target == "/out"
            else as_json(got.target)
        )

    web.answer = answer
    assert (await called(web, "  redirects: same_origin")).value == "/y?a=1"
    assert code(await called(web, "  redirects: same_origin", path="/out")) == "redirect_refused"
    text = "  redirects: same_origin\n  method: POST"
    assert code(await called(web, text, effects="write")) == "redirect_refused"


# --- pages -----------------------------------------------------------------------------------------


def numbers(got: Got) -> Reply:
    """Five items, two a page, in whichever way is asked for."""
    query = dict(one.split("=") for one in got.target.partition("?")[2].split("&") if one)
    start = int(query.get("cursor") or query.get("offset") or (int(query.get("page", 1)) - 1) * 2)
    items = list(range(5))[start : start + 2]
    more = start + 2 < 5
    link = {"link": f'</x?cursor={start + 2}>; rel="next", </x>; rel="first"'} if more else {}
    return as_json({"items": items, "next": str(start + 2) if more else None}, 200, **link)


@pytest.mark.parametrize(
    "pages",
    [
        "{by: cursor, items: body.items, next: body.next}",
        "{by: page, items: body.items, query: page}",
        "{by: offset, items: body.items, query: offset, start: 0}",
        "{by: link, items: body.items}",
    ],
)
async def test_all_items_of_all_pages(web: Web, pages: str) -> None:
    web.answer = numbers
    assert (await called(web, f"  paginate: {pages}")).value == [0, 1, 2, 3, 4]


async def test_pages_end(web: Web) -> None:
    web.answer = lambda _: as_json({"items": [1, 2, 3], "next": "again"})
    pages = "  paginate: {by: cursor, items: body.items, next: body.next}"
    assert (await called(web, pages)).value == [1, 2, 3, 1, 2, 3]
    text = "  paginate: {by: page, items: body.items, query: page, maxPages: 4, maxItems: 7}\n"
    outcome = await called(web, text + "result: {select: '{n: length(items), more: more}'}")
    assert outcome.value == {"n": 7, "more": True}


async def test_the_next_page_is_on_the_same_server(web: Web) -> None:
    web.answer = lambda _: as_json({"items": [1], "next": "http://169.254.169.254/"})
    text = "  paginate: {by: link, items: body.items, next: body.next}"
    assert "another server" in message(await called(web, text))


# --- again -----------------------------------------------------------------------------------------


async def tried(
    web: Web, answers: list[Reply], text: str, effects: str = "read"
) -> tuple[Outcome, int]:
    left = iter(answers)
    web.answer = lambda _: next(left)
    before = len(web.seen)
    outcome = await called(web, text, effects=effects)
    return outcome, len(web.seen) - before


RETRY = "retry: {attempts: 3, wait: 0}\n"


@pytest.mark.parametrize("bad", [Reply(503), Reply(429), Reply(200, b"half", claimed=100)])
async def test_reading_is_tried_again(web: Web, bad: Reply) -> None:
    outcome, count = await tried(web, [bad, bad, as_json(1)], RETRY)
    assert (outcome.value, count) == (1, 3)
    outcome, count = await tried(web, [bad] * 4, RETRY)
    assert (outcome.ok, count) == (False, 3)


async def test_what_no_attempt_mends_is_not_tried_again(web: Web) -> None:
    for bad in (Reply(400), Reply(404), Reply(302, headers={"location": "/"})):
        assert (await tried(web, [bad, as_json(1)], RETRY))[1] == 1


async def test_writing_is_not_tried_again_without_a_key(web: Web) -> None:
    text = "  method: POST\n" + RETRY
    outcome, count = await tried(web, [Reply(503), as_json(1)], text, "write")
    assert (code(outcome), count) == ("http_503", 1)
    outcome, count = await tried(web, [Reply(200, b"half", claimed=9), as_json(1)], text, "write")
    assert count == 1
    assert outcome.error is not None
    assert outcome.error.may_have_run
    assert "may have taken effect" in message(outcome)
    assert (await tried(web, [Reply(503), as_json(1)], text + "idempotent: true\n", "write"))[
        1
    ] == 2


async def test_a_connection_that_fails_is_tried_again_for_writing_too(web: Web) -> None:
    text = http_text(web, "  method: POST\n" + RETRY, effects="write").replace(str(web.port), "1")
    told: list[str] = []
    outcome = await call(make_action(read(text), means()), told=told)
    assert code(outcome) == "connection"
    assert len(told) == 2


async def test_the_server_says_when(web: Web) -> None:
    soon = Reply(503, headers={"retry-after": "0"})
    assert (await tried(web, [soon, as_json(1)], RETRY))[0].value == 1
    late = Reply(503, headers={"retry-after": "3600"})
    assert (await tried(web, [late, as_json(1)], RETRY))[1] == 1
    dated = Reply(429, headers={"retry-after": formatdate(time.time() + 3_600, usegmt=True)})
    assert (await tried(web, [dated, as_json(1)], RETRY))[1] == 1
    text = "retry: {attempts: 2, wait: 0, respectRetryAfter: false}\n"
    assert (await tried(web, [late, as_json(1)], text))[1] == 2


async def test_a_slow_server_is_a_timeout(web: Web) -> None:
    web.answer = lambda _: Reply(body=b"x" * 100, drip=0.5)
    assert code(await called(web, "  timeout: 300ms")) == "timeout"


# --- limits ----------------------------------------------------------------------------------------


async def test_calls_side_by_side_are_held_back(web: Web) -> None:
    running, most = 0, 0

    def answer(_: Got) -> Reply:
        nonlocal running, most
        running += 1
        most = max(most, running)
        time.sleep(0.05)
        running -= 1
        return as_json(1)

    web.answer = answer
    action = make_action(read(http_text(web, "limits: {concurrency: 2}")), means())
    outcomes = await asyncio.gather(*(call(action) for _ in range(6)))
    assert all(one.ok for one in outcomes)
    assert most <= 2


async def test_a_rate_makes_calls_wait_and_says_so(web: Web) -> None:
    action = make_action(read(http_text(web, "limits: {rate: 5/s}")), means())
    told: list[str] = []
    await asyncio.gather(*(call(action, told=told) for _ in range(7)))
    assert sum("for its turn" in one for one in told) >= 1


# --- the guard -------------------------------------------------------------------------------------


async def test_private_addresses_are_refused_unless_the_operator_opens_them(web: Web) -> None:
    outcome = await called(web, "retry: {attempts: 3, wait: 0}", egress=EgressSettings())
    assert code(outcome) == "egress_denied"
    assert message(outcome) == "calls to 127.0.0.1 are not allowed here."
    assert outcome.error is not None
    assert outcome.error.fatal
    assert web.seen == []


async def test_the_operator_can_only_narrow(web: Web) -> None:
    narrow = EgressSettings(private_networks=("127.0.0.0/8",), hosts=("api.example.com",))
    assert code(await called(web, "", egress=narrow)) == "egress_denied"
    narrow = EgressSettings(private_networks=("127.0.0.0/8",), ports=(443,))
    assert code(await called(web, "", egress=narrow)) == "egress_denied"


# --- secrets ---------------------------------------------------------------------------------------

TOKEN = "tok-CANARY-1/x+y="
ECHO = "  auth: {type: bearer, token: {secret: key}}\nsecrets: [key]"


@pytest.mark.parametrize(
    ("auth", "header"),
    [
        ("{type: bearer, token: {secret: key}}", ("authorization", f"Bearer {TOKEN}")),
        (
            "{type: basic, username: ann, password: {secret: key}}",
            ("authorization", "Basic YW5uOnRvay1DQU5BUlktMS94K3k9"),
        ),
        ("{type: api_key, name: X-Api-Key, value: {secret: key}}", ("x-api-key", TOKEN)),
    ],
)
async def test_ways_to_show_who_it_is(web: Web, auth: str, header: tuple[str, str]) -> None:
    assert (await called(web, f"  auth: {auth}\nsecrets: [key]", secrets=Secrets(key=TOKEN))).ok
    assert web.seen[-1].headers[header[0]] == header[1]


async def test_a_key_in_the_query(web: Web) -> None:
    text = "  auth: {type: api_key, in: query, name: k, value: {secret: key}}\nsecrets: [key]"
    assert (await called(web, text, secrets=Secrets(key=TOKEN))).ok
    assert web.seen[-1].target == "/x?k=tok-CANARY-1%2Fx%2By%3D"


@pytest.mark.parametrize("status", [200, 500])
async def test_a_server_that_repeats_secrets_is_masked(web: Web, status: int) -> None:
    def echo(got: Got) -> Reply:
        said = {"all": got.headers, got.headers["authorization"]: [got.target]}
        return as_json(said, status, **{"x-echo": got.headers["authorization"]})

    web.answer = echo
    text = (
        ECHO
        + '\nresult: {select: \'{body: body, echo: headers."x-echo", parts: split(body.all.authorization, `"-"`)}\'}'
    )
    outcome = await called(web, text, secrets=Secrets(key=TOKEN))
    told = json.dumps(outcome.value) + (outcome.error.message if outcome.error else "")
    assert "CANARY" not in told
    assert "[redacted]" in told


async def test_a_secret_goes_to_its_hosts_only(web: Web) -> None:
    secrets = Secrets(hosts=("api.example.com",), key=TOKEN)
    outcome = await called(web, ECHO, secrets=secrets)
    assert code(outcome) == "secret_denied"
    assert web.seen == []


async def test_a_secret_that_is_not_set(web: Web) -> None:
    for secrets in (None, Secrets()):
        outcome = await called(web, ECHO, secrets=secrets)
        assert (code(outcome), web.seen) == ("secret_missing", [])


async def test_a_short_secret_is_not_sent(web: Web) -> None:
    assert code(await called(web, ECHO, secrets=Secrets(key="abc"))) == "secret_denied"
    assert web.seen == []


async def test_a_secret_with_a_line_break_does_not_show_in_the_complaint(web: Web) -> None:
    outcome = await called(web, ECHO, secrets=Secrets(key="tok-CANARY\r\nx: 1"))
    assert code(outcome) == "invalid_request"
    assert "CANARY" not in message(outcome)
