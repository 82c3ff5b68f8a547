"""Client tools against a real server process: asked in the stream, answered by id, once, in time, by the right one."""

from __future__ import annotations

import base64
import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from loopagent import Agent, App, ClientToolSpec
from loopagent.http.sse import LOOK_BACK, unanswered
from loopagent.models.scripted import ScriptedModel
from tests.cli.commands import loopagent
from tests.http.server import serving
from tests.http.test_api import read


Json = dict[str, Any]
TOOLS = """
clientTools:
  - name: open-map
    description: Show a map.
    effects: read
    parameters: {type: object, properties: {city: {type: string}}, required: [city]}
    result: {type: object, properties: {shown: {type: boolean}}, required: [shown]}
"""
CALL = '{"nextStep": {"type": "ClientTools", "clientTools": [%s]}}'
PORTO = '{"name": "open-map", "params": {"city": "Porto"}}'
ROME = '{"name": "open-map", "params": {"city": "Rome"}, "timeoutMs": 3000}'
QUICK = '{"name": "open-map", "params": {"city": "Porto"}, "timeoutMs": 300}'
DONE = '{"taskComplete": true, "message": "Done."}'
AGENTS = {
    "mapper": (TOOLS, [CALL % PORTO, DONE]),
    "pair": (TOOLS, [CALL % f"{PORTO}, {ROME}", DONE]),
    "quick": (TOOLS, [CALL % QUICK, DONE]),
    "slow": (TOOLS, [CALL % ROME, DONE]),
    "bare": ("", [CALL % '{"name": "pick"}', DONE]),
    "robot": (f"{TOOLS}autonomy: autonomous\n", [CALL % PORTO, DONE]),
    "careful": (f"{TOOLS}approval: {{external: never}}\n", [CALL % '{"name": "buy"}', DONE]),
}
PICK = {"name": "pick", "effects": "read", "result": {"type": "string"}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tools") / "project"
    for name in ("agents", "scripts"):
        (made / name).mkdir(parents=True)
    for name, (more, lines) in AGENTS.items():
        head = f"name: {name}\nmodel: scripted:scripts/{name}.jsonl\n"
        (made / "agents" / f"{name}.agent.yaml").write_text(head + more)
        (made / "scripts" / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    return made


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[httpx2.Client]:
    with serving(folder, folder.parent / "runs.db") as (made, _):
        yield made


def start(client: httpx2.Client, agent: str, session: str = "", **more: Any) -> Json:
    headers = {"Client-Session": session} if session else {}
    body = {"agent": agent, "message": "Go.", **more}
    answer = client.post("/runs", params={"wait": 10}, json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    run: Json = answer.json()
    return run


def bring(
    client: httpx2.Client, run: Json, result: Any, call: str = "1:tool.0", **more: Any
) -> Any:
    headers = more.pop("headers", {})
    body = {"success": True, "result": result, **more}
    return client.post(f"/runs/{run['id']}/client-tools/{call}", json=body, headers=headers)


def ended(client: httpx2.Client, run: Json) -> Json:
    deadline = time.monotonic() + 15
    while True:
        found: Json = client.get(f"/runs/{run['id']}", params={"wait": 10}).json()
        if found["status"] != "running" or time.monotonic() > deadline:
            return found
        time.sleep(0.02)


def told(client: httpx2.Client, run: Json) -> str:
    """How the calls of a run ended, as its events tell."""
    events = client.get(f"/runs/{run['id']}/events", params={"limit": 1000}).json()["events"]
    return json.dumps([one["data"] for one in events if one["type"] == "client_tool.completed"])


def test_a_call_and_its_answer(client: httpx2.Client) -> None:
    run = start(client, "mapper")
    assert (run["status"], run["state"]["state"]) == ("running", "client_tool")
    call = run["clientCalls"][0]
    assert (call["callId"], call["tool"], call["params"]) == (
        "1:tool.0",
        "open-map",
        {"city": "Porto"},
    )
    assert call["resultSchema"]["required"] == ["shown"]
    assert client.get(f"/runs/{run['id']}/client-tools").json() == {"calls": run["clientCalls"]}
    answer = bring(client, run, {"shown": True})
    assert answer.status_code == 200, answer.text
    assert ended(client, run)["message"] == "Done."
    assert client.get(f"/runs/{run['id']}/client-tools").json() == {"calls": []}


def test_a_wrong_result_names_the_place_and_changes_nothing(client: httpx2.Client) -> None:
    run = start(client, "mapper")
    wrong = bring(client, run, {"shown": "yes"})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid_result")
    assert wrong.json()["errors"] == [{"pointer": "/result/shown", "detail": "must be a boolean"}]
    assert client.get(f"/runs/{run['id']}").json() == run
    assert bring(client, run, {"shown": False}).status_code == 200
    assert ended(client, run)["status"] == "completed"


def test_the_second_answer_is_refused_unless_it_is_the_same_request(client: httpx2.Client) -> None:
    run = start(client, "pair")
    first = bring(client, run, {"shown": True}, headers={"Idempotency-Key": f"{run['id']}-a"})
    again = bring(client, run, {"shown": True}, headers={"Idempotency-Key": f"{run['id']}-a"})
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json() == first.json()
    assert again.headers["idempotency-replayed"] == "true"
    other = bring(client, run, {"shown": True}, headers={"Idempotency-Key": f"{run['id']}-b"})
    assert (other.status_code, other.json()["code"]) == (409, "already_resolved")
    assert bring(client, run, {"shown": True}, "1:tool.1").status_code == 200
    assert ended(client, run)["status"] == "completed"


def test_many_answers_at_once_count_once(client: httpx2.Client) -> None:
    run = start(client, "mapper")
    codes: list[int] = []

    def give() -> None:
        codes.append(bring(client, run, {"shown": True}).status_code)

    threads = [threading.Thread(target=give) for _ in range(5)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(codes) == [200, 409, 409, 409, 409]


def test_unknown_calls_and_runs(client: httpx2.Client) -> None:
    run = start(client, "mapper")
    for path in (f"{run['id']}/client-tools/1:tool.7", "run_0/client-tools/1:tool.0"):
        assert client.post(f"/runs/{path}", json={"success": True}).status_code == 404
    client.post(f"/runs/{run['id']}/cancel")


def test_an_answer_after_its_time_is_refused(client: httpx2.Client) -> None:
    started = time.monotonic()
    run = start(client, "quick")
    assert ended(client, run)["message"] == "Done."
    assert time.monotonic() - started < 5
    late = bring(client, run, {"shown": True})
    assert (late.status_code, late.json()["code"]) == (410, "gone")
    assert "too late" in late.json()["detail"]
    assert '"code": "timed_out"' in told(client, run)
    assert client.get(f"/requests/{run['id']}:1:tool.0").json()["status"] == "expired"


def test_a_cancelled_run_takes_its_call_back(client: httpx2.Client) -> None:
    run = start(client, "mapper")
    client.post(f"/runs/{run['id']}/cancel")
    gone = bring(client, run, {"shown": True})
    assert (gone.status_code, gone.json()["code"]) == (410, "gone")
    assert '"status": "cancelled"' in told(client, run)


def test_fix_36_only_the_client_that_was_asked_may_answer(client: httpx2.Client) -> None:
    mine = "a-secret-of-client-one"
    run = start(client, "mapper", mine)
    for session in ("", "a-secret-of-client-two"):
        headers = {"Client-Session": session} if session else {}
        wrong = bring(client, run, {"shown": True}, headers=headers)
        assert (wrong.status_code, wrong.json()["code"]) == (403, "wrong_client")
    key = {"Idempotency-Key": f"{run['id']}-k"}
    good = bring(client, run, {"shown": True}, headers={"Client-Session": mine, **key})
    assert good.status_code == 200
    thief = bring(client, run, {"shown": True}, headers={"Client-Session": f"{mine}-not", **key})
    assert thief.status_code == 403
    assert mine not in client.get(f"/runs/{run['id']}/events", params={"limit": 1000}).text


def test_a_session_that_can_be_guessed_is_refused(client: httpx2.Client) -> None:
    answer = client.post(
        "/runs", json={"agent": "mapper", "message": "Go."}, headers={"Client-Session": "short"}
    )
    assert answer.status_code == 422


def test_a_client_that_comes_back_is_asked_again(client: httpx2.Client) -> None:
    run = start(client, "pair")
    url = f"/runs/{run['id']}/stream"
    whole = read(client, url, most=run["seq"])
    asked = [one for one in whole if one[1]["type"] == "client_tool.requested"]
    assert [one[1]["data"]["callId"] for one in asked] == ["1:tool.0", "1:tool.1"]
    bring(client, run, {"shown": True})
    last = str(run["seq"])
    again = read(client, url, last=last, most=2)
    assert again[0] == (None, asked[1][1])  # without a number: the client's position stays
    assert again[1][1]["type"] == "client_tool.completed"
    assert again[1][0] == str(run["seq"] + 1)
    before = str(asked[0][1]["seq"])
    middle = read(client, url, last=before, most=2)
    assert middle[0] == asked[1]  # not told of twice: it comes with its number
    client.post(f"/runs/{run['id']}/cancel")
    types = [one[1]["type"] for one in read(client, url, last=last)]
    assert "client_tool.requested" not in types


@pytest.mark.anyio
async def test_open_calls_are_found_however_much_happened_since() -> None:
    model = ScriptedModel([json.loads(CALL % PORTO), json.loads(DONE)])
    tool = ClientToolSpec(name="open-map", effects="read", timeout_ms=600_000)
    agent = Agent("mapper", model=model, client_tools=(tool,), limits={"maxQueuedMessages": 1_000})
    async with App(agents=[agent]) as app:
        view = await app.wait((await app.start("mapper", "Go.")).id, timeout_seconds=10)
        for number in range(2 * LOOK_BACK + 50):
            await app.post(view.id, f"message {number}")
        seq = (await app.get(view.id)).seq
        found = await unanswered(app, view.id, seq)
        assert [one["data"]["callId"] for one in found] == ["1:tool.0"]
        assert await unanswered(app, view.id, found[0]["seq"] - 1) == []
        await app.cancel(view.id)
        assert await unanswered(app, view.id, seq) == []


# --- tools that the client brings


def test_a_client_brings_its_own_tools(client: httpx2.Client) -> None:
    run = start(client, "bare", clientTools=[PICK])
    assert run["clientCalls"][0]["tool"] == "pick"
    assert bring(client, run, 5).status_code == 422
    assert bring(client, run, "a file").status_code == 200
    assert ended(client, run)["status"] == "completed"


def test_without_them_the_step_does_not_exist(client: httpx2.Client) -> None:
    run = ended(client, start(client, "bare"))
    events = client.get(f"/runs/{run['id']}/events", params={"limit": 1000}).json()["events"]
    refused = next(one for one in events if one["type"] == "reply.rejected")
    assert "a step this agent may use" in refused["data"]["problems"][0]["message"]


def test_the_clients_definition_replaces_the_agents_but_not_its_policy(
    client: httpx2.Client,
) -> None:
    mine = {"name": "open-map", "effects": "read", "approval": "auto"}
    run = start(client, "mapper", clientTools=[mine])
    assert run["clientCalls"][0]["resultSchema"] is None
    assert bring(client, run, "anything").status_code == 200
    loose = {"name": "buy", "effects": "external", "approval": "auto"}
    run = ended(client, start(client, "careful", clientTools=[loose]))
    assert run["clientCalls"] == []
    asked = start(client, "bare", clientTools=[{**PICK, "effects": "write", "approval": "auto"}])
    assert asked["state"]["state"] == "interactive"
    client.post(f"/runs/{asked['id']}/cancel")


@pytest.mark.parametrize(
    ("tools", "pointer"),
    [
        ([{"name": "t", "result": {"type": "x"}}], "/clientTools/0/result"),
        ([{"name": "t", "extra": 1}], "/clientTools/0/extra"),
        ([{"name": "open it"}, {"name": "open-it"}], "/clientTools"),
        ([{"name": f"tool-{one}"} for one in range(51)], "/clientTools"),
        ([{"name": "t", "description": "x" * 100_001}], "/clientTools"),
    ],
)
def test_tools_that_cannot_work_are_refused(
    client: httpx2.Client, tools: list[Json], pointer: str
) -> None:
    answer = client.post("/runs", json={"agent": "bare", "message": "Go.", "clientTools": tools})
    assert answer.status_code == 422, answer.text
    assert pointer in [one["pointer"] for one in answer.json()["errors"]]


def test_an_autonomous_run_has_client_tools_only_with_a_client(client: httpx2.Client) -> None:
    alone = ended(client, start(client, "robot"))
    events = client.get(f"/runs/{alone['id']}/events", params={"limit": 1000}).json()["events"]
    assert "reply.rejected" in [one["type"] for one in events]
    assert "client_tool.requested" not in [one["type"] for one in events]
    served = start(client, "robot", "a-secret-of-client-one")
    assert served["state"]["state"] == "client_tool"
    client.post(f"/runs/{served['id']}/cancel")


# --- results that are large, and media


def test_a_long_result_is_kept_under_a_handle(client: httpx2.Client) -> None:
    run = start(client, "bare", clientTools=[PICK])
    text = "x" * 20_000
    assert bring(client, run, text).status_code == 200
    ended(client, run)
    stored = json.loads(told(client, run))[0]["result"]["$artifact"]
    assert stored["chars"] == 20_000
    assert client.get(f"/runs/{run['id']}/artifacts/{stored['artifactId']}").text == text


def test_media_become_artifacts(client: httpx2.Client) -> None:
    run = start(client, "mapper")
    picture = bytes(range(256))
    data = base64.b64encode(picture).decode()
    wrong = bring(client, run, {"shown": True}, media=[{"mediaType": "image png", "data": "?"}])
    assert wrong.json()["errors"][0]["pointer"] == "/media/0/mediaType"
    wrong = bring(client, run, {"shown": True}, media=[{"mediaType": "image/png", "data": "?"}])
    assert wrong.json()["errors"][0]["pointer"] == "/media/0/data"
    huge = base64.b64encode(b"x" * 5_000_001).decode()
    large = bring(client, run, {"shown": True}, media=[{"mediaType": "image/png", "data": huge}])
    assert (large.status_code, large.json()["code"]) == (413, "result_too_large")
    medium = {"mediaType": "image/png", "data": data, "name": "view.png"}
    assert bring(client, run, {"shown": True}, media=[medium]).status_code == 200
    ended(client, run)
    kept = json.loads(told(client, run))[0]["media"][0]
    assert (kept["mediaType"], kept["bytes"], kept["name"]) == ("image/png", 256, "view.png")
    found = client.get(f"/runs/{run['id']}/artifacts/{kept['artifactId']}")
    assert found.content == picture
    assert found.headers["content-type"] == "image/png"
    assert found.headers["x-content-type-options"] == "nosniff"
    everything = client.get(f"/runs/{run['id']}/events", params={"limit": 1000}).text
    assert data not in everything


# --- requests, processes, the command line


def test_the_inbox_shows_calls_and_says_where_to_answer(client: httpx2.Client) -> None:
    run = start(client, "mapper")
    listed = client.get("/requests", params={"runId": run["id"]}).json()["requests"]
    assert [(one["id"], one["body"]["kind"]) for one in listed] == [
        (f"{run['id']}:1:tool.0", "client_tool")
    ]
    wrong = client.post(f"/requests/{run['id']}:1:tool.0/answer", json={"decision": "answer"})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "client_tool")
    client.post(f"/runs/{run['id']}/cancel")


def test_a_call_outlives_the_server_and_so_does_its_time(folder: Path, tmp_path: Path) -> None:
    db = tmp_path / "runs.db"
    with serving(folder, db) as (client, process):
        answered, forgotten = start(client, "mapper"), start(client, "slow")
        process.send_signal(signal.SIGKILL)
        process.wait()
    with serving(folder, db) as (client, _):
        still = client.get(f"/runs/{answered['id']}").json()
        assert still["clientCalls"] == answered["clientCalls"]
        assert bring(client, answered, {"shown": True}).status_code == 200
        assert ended(client, answered)["status"] == "completed"
        assert ended(client, forgotten)["status"] == "completed"
        assert '"code": "timed_out"' in told(client, forgotten)


def test_a_terminal_prints_the_call_and_a_command_answers_it(folder: Path, tmp_path: Path) -> None:
    where = ("--project", str(folder), "--db", str(tmp_path / "runs.db"))
    asked = loopagent("run", "mapper", "Go.", *where)
    assert asked.returncode == 3, asked.stderr
    request = next(word for word in asked.stdout.split() if word.endswith(":1:tool.0"))
    assert "open-map" in asked.stdout
    wrong = loopagent("requests", "answer", request, "--result", '{"shown": 1}', *where)
    assert wrong.returncode == 2
    assert "/result/shown" in wrong.stderr
    done = loopagent("requests", "answer", request, "--result", '{"shown": true}', *where)
    assert done.returncode == 0, done.stderr
    assert "completed" in done.stdout
    late = loopagent("requests", "answer", request, "--error", "no map", *where)
    assert "first answer counts" in late.stderr
