"""`loopagent keys`: a key is printed once, listed without its text, and revoked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from loopagent.cli.main import cli
from loopagent.errors import ConfigError, RequestError


def invoke(tmp_path: Path, *words: str) -> Result:
    where = ["--db", str(tmp_path / "runs.db"), "--project", str(tmp_path)]
    return CliRunner().invoke(cli, ["keys", *words, *where])


def run(tmp_path: Path, *words: str) -> str:
    found = invoke(tmp_path, *words)
    assert found.exit_code == 0, found.output
    return found.stdout


def test_keys_from_first_to_last(tmp_path: Path) -> None:
    made = json.loads(
        run(tmp_path, "create", "desk", "--tenant", "acme", "--user", "ann", "--json")
    )
    assert made["key"].startswith(f"la_{made['id']}_")
    plain = run(tmp_path, "create", "ops", "--all-tenants", "--scope", "admin").strip()
    rows = json.loads(run(tmp_path, "list", "--json"))
    assert [(one["name"], one["tenant"], one["scopes"]) for one in rows] == [
        ("desk", "acme", ["runs", "requests.answer"]),
        ("ops", None, ["admin"]),
    ]
    shown = run(tmp_path, "list")
    for key in (plain, made["key"]):
        secret = key.rpartition("_")[2]
        assert secret not in shown + json.dumps(rows)
        assert secret.encode() not in (tmp_path / "runs.db").read_bytes()
    run(tmp_path, "revoke", made["id"])
    (kept,) = json.loads(run(tmp_path, "list", "--json", "--tenant", "acme"))
    assert kept["revokedAt"] is not None


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("create", "x", "--tenant", "a", "--all-tenants"), ConfigError),
        (("create", "x", "--scope", "root"), RequestError),
        (("revoke", "nothing"), RequestError),
    ],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path, words: tuple[str, ...], error: type[Exception]
) -> None:
    assert isinstance(invoke(tmp_path, *words).exception, error)
