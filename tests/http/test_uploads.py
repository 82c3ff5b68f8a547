"""Files in forms: taken as a stream, bounded while they are read, named cleanly, and never half kept."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx2
import pytest

from loopagent.http.uploads import clean_name
from tests.http.server import make_project, serving


FORM = {"agent": "looker", "message": "Look."}
Json = dict[str, Any]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    folder = tmp_path_factory.mktemp("uploads")
    with serving(make_project(folder / "project"), folder / "runs.db") as (client, _):
        yield client


def runs(client: httpx2.Client) -> int:
    return len(client.get("/runs", params={"limit": 200}).json()["runs"])


def artifacts(client: httpx2.Client, run: str) -> list[Json]:
    found: list[Json] = client.get(f"/runs/{run}/artifacts").json()["artifacts"]
    return found


def test_a_form_starts_a_run_with_its_files(client: httpx2.Client) -> None:
    data = {**FORM, "payload": '{"a": 1}', "user": "ann", "metadata": '{"from": "form"}'}
    big = b"line\n" * 400_000
    files = [
        ("attachments", ("C:\\Users\\ann\\table.csv", b"a,b\n1,2\n", "text/csv")),
        ("attachments", ("../../etc/passwd", b"root", "application/octet-stream")),
        ("attachments", ("big.txt", big, "text/plain")),
    ]
    made = client.post("/runs", params={"wait": 10}, data=data, files=files)
    assert made.status_code == 201, made.text
    body = made.json()
    assert (body["status"], body["user"], body["payload"]["a"]) == ("completed", "ann", 1)
    found = [(one["name"], one["kind"], one["size"]) for one in artifacts(client, body["id"])]
    assert found == [("table.csv", "csv", 8), ("passwd", "text", 4), ("big.txt", "text", len(big))]
    assert client.get(f"/runs/{body['id']}/artifacts/C").content == big


def test_a_form_without_files_is_a_run_without_files(client: httpx2.Client) -> None:
    parts = {name: (None, text) for name, text in FORM.items()}
    made = client.post("/runs", params={"wait": 10}, files=parts)
    assert made.status_code == 201, made.text
    assert artifacts(client, made.json()["id"]) == []


def test_the_stream_takes_files_too(client: httpx2.Client) -> None:
    files = {"attachments": ("a.json", b'{"a": 1}')}
    with client.stream("POST", "/runs/stream", data=FORM, files=files) as answer:
        assert answer.status_code == 200
        run = answer.headers["location"].rpartition("/")[2]
        answer.read()
    assert [one["kind"] for one in artifacts(client, run)] == ["json"]


@pytest.mark.parametrize(
    ("data", "files", "status", "pointer"),
    [
        ({"agent": "looker"}, {"attachments": ("a.txt", b"x")}, 422, "/message"),
        ({**FORM, "payload": "{a"}, {"attachments": ("a.txt", b"x")}, 422, "/payload"),
        ({**FORM, "colour": '"red"'}, {"attachments": ("a.txt", b"x")}, 422, "/colour"),
        (FORM, {"photo": ("a.png", b"x")}, 422, "/photo"),
        ({**FORM, "attachments": "a.txt"}, {"attachments": ("a.txt", b"x")}, 422, "/attachments"),
        (
            FORM,
            [("attachments", ("a.txt", b"x")), ("message", (None, "Twice."))],
            422,
            "/message",
        ),
    ],
    ids=["missing", "no json", "unknown", "other part", "text", "twice"],
)
def test_a_form_that_is_wrong_says_where_and_starts_nothing(
    client: httpx2.Client, data: Json, files: Any, status: int, pointer: str
) -> None:
    before = runs(client)
    answer = client.post("/runs", data=data, files=files)
    assert answer.status_code == status, answer.text
    assert [one["pointer"] for one in answer.json()["errors"]] == [pointer]
    assert runs(client) == before


def test_too_much_is_413_and_starts_nothing(client: httpx2.Client) -> None:
    before = runs(client)
    many = [("attachments", (f"{number}.txt", b"x")) for number in range(21)]
    answer = client.post("/runs", data=FORM, files=many)
    assert (answer.status_code, answer.json()["code"]) == (413, "attachments_too_large")
    large = [("attachments", (f"{number}.bin", bytes(11_000_000))) for number in range(2)]
    answer = client.post("/runs", data=FORM, files=large)
    assert (answer.status_code, answer.json()["code"]) == (413, "attachments_too_large")
    larger = [("attachments", ("a.bin", bytes(26_000_000)))]
    answer = client.post("/runs", data=FORM, files=larger)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    long = {**FORM, "payload": json.dumps("x" * 4_100_000)}
    answer = client.post("/runs", data=long, files={"attachments": ("a.txt", b"x")})
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert runs(client) == before


@pytest.mark.parametrize("kind", ["application/json", "multipart/form-data; boundary=B"])
@pytest.mark.parametrize("key", ["", "idempotency-key: k1\r\n"], ids=["plain", "key"])
def test_a_body_that_says_no_length_is_cut_off_at_the_limit(
    client: httpx2.Client, kind: str, key: str
) -> None:
    before = runs(client)
    url = client.base_url
    head = (
        f"POST {url.path}runs HTTP/1.1\r\nhost: {url.host}\r\ncontent-type: {kind}\r\n{key}"
        "transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
    )
    start = b'--B\r\nContent-Disposition: form-data; name="attachments"; filename="a"\r\n\r\n'
    answer = b""
    with closing(socket.create_connection((url.host, url.port), timeout=30)) as link:
        link.sendall(head.encode() + b"%x\r\n%s\r\n" % (len(start), start))
        chunk = b"%x\r\n%s\r\n" % (1_000_000, b"x" * 1_000_000)
        try:
            for _ in range(40):
                link.sendall(chunk)
        except OSError:
            pass  # the server has answered and hung up
        else:
            raise AssertionError("all of it was taken")
        while piece := _received(link):
            answer += piece
    assert answer == b"" or b" 413 " in answer.splitlines()[0]
    assert runs(client) == before


def _received(link: socket.socket) -> bytes:
    try:
        return link.recv(65536)
    except OSError:
        return b""


def test_other_kinds_of_bodies_are_415(client: httpx2.Client) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/xml"):
        answer = client.post("/runs", content=b"agent=looker", headers={"content-type": kind})
        assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
        assert "multipart/form-data" in answer.json()["detail"]


@pytest.mark.parametrize(
    "kind", ["multipart/form-data", "multipart/form-data; boundary=X"], ids=["no boundary", "cut"]
)
def test_a_form_that_cannot_be_read_is_400(client: httpx2.Client, kind: str) -> None:
    before = runs(client)
    body = b'--Y\r\nContent-Disposition: form-data; name="agent"\r\n\r\nlooker'
    answer = client.post("/runs", content=body, headers={"content-type": kind})
    assert (answer.status_code, answer.json()["code"]) in {
        (400, "invalid_form"),
        (422, "invalid_request"),
    }
    assert runs(client) == before


def test_a_form_sent_again_under_its_key_is_the_same_run(client: httpx2.Client) -> None:
    files = {"attachments": ("a.txt", b"same")}
    headers = {"Idempotency-Key": "form-1"}
    first = client.post("/runs", data=FORM, files=files, headers=headers)
    again = client.post("/runs", data=FORM, files=files, headers=headers)
    assert first.request.headers["content-type"] != again.request.headers["content-type"]
    assert first.json()["id"] == again.json()["id"]
    assert again.headers["idempotency-replayed"] == "true"
    other = client.post(
        "/runs", data=FORM, files={"attachments": ("a.txt", b"other")}, headers=headers
    )
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a.txt", "a.txt"),
        ("/etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("a\x00b\r\nc.txt", "abc.txt"),
        ("", "file"),
        (None, "file"),
        ("..", "file"),
        ("dir/", "file"),
        ("n" * 300 + ".csv", "n" * 251 + ".csv"),
        ("pagé 1.html", "pagé 1.html"),
    ],
)
def test_names_are_cleaned(given: str | None, kept: str) -> None:
    assert clean_name(given) == kept
