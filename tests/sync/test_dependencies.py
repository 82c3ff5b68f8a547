"""What is installed with loopagent is what loopagent uses, and the two lock files say the same."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from loopagent.core.described import parsed


ROOT = Path(__file__).resolve().parents[2]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK: dict[str, Any] = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
LOCKED = {one["name"]: one for one in LOCK["package"]}
PUBLIC_HOSTS = {"pypi.org", "files.pythonhosted.org"}
MAX_DISTRIBUTIONS = 32
"""How many distributions a plain `pip install loopagent` brings, itself not counted."""
COMES_WITH = {
    "pydantic-core": "pydantic",
    "starlette": "fastapi",
    "anyio": "httpx2",
    "mcp-types": "mcp",
    "httpcore2": "httpx2",
    "opentelemetry-api": "fastapi",
    "cryptography": "pyjwt",
    "opentelemetry-semantic-conventions": "opentelemetry-sdk",
}
"""Distributions that a declared one is built on: their modules may be imported too."""


def requirements(extra: str | None = None) -> list[Requirement]:
    project = PYPROJECT["project"]
    lines = project["dependencies"] if extra is None else project["optional-dependencies"][extra]
    return [Requirement(line) for line in lines]


def declared(extra: str | None = None) -> set[str]:
    return {canonicalize_name(one.name) for one in requirements(extra)}


def used_distributions(folder: str) -> set[str]:
    """Distributions whose modules the files of a folder import."""
    owners = packages_distributions()
    found: set[str] = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(parsed(path.read_text(encoding="utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                names = [node.module if node.module != "ruamel" else f"ruamel.{node.names[0].name}"]
            for name in names:
                top = name.partition(".")[0]
                if top in sys.stdlib_module_names or top in {"loopagent", "tests"}:
                    continue
                found.update(canonicalize_name(one) for one in owners.get(top, [top]))
    return found


def installed_with(name: str) -> set[str]:
    """Names the lock installs for a package on this kind of machine, extras left out."""
    seen: set[str] = set()
    todo = [name]
    while todo:
        one = todo.pop()
        if one in seen:
            continue
        seen.add(one)
        todo += [dep["name"] for dep in LOCKED[one].get("dependencies", []) if _applies(dep)]
    return seen - {name}


def _applies(dependency: dict[str, str]) -> bool:
    marker = dependency.get("marker")
    return marker is None or Requirement(f"x ; {marker}").marker.evaluate()  # type: ignore[union-attr]


def test_every_import_is_declared() -> None:
    known = (
        declared()
        | declared("cost")
        | declared("postgres")
        | declared("otel")
        | declared("mcp")
        | declared("oidc")
        | {
            part
            for part, whole in COMES_WITH.items()
            if whole in declared() | declared("otel") | declared("mcp")
        }
    )
    assert used_distributions("loopagent") - known == set()


def test_every_declared_dependency_is_used() -> None:
    assert declared() - used_distributions("loopagent") == set()


def test_tests_use_only_what_dev_declares() -> None:
    known = (
        declared()
        | declared("cost")
        | declared("files")
        | declared("mcp")
        | declared("oidc")
        | declared("otel")
        | declared("postgres")
        | declared("dev")
        | set(COMES_WITH)
        | {"packaging"}
    )
    assert used_distributions("tests") - known == set()


def test_every_range_has_both_ends() -> None:
    open_ended = [
        str(one)
        for extra in (None, "cost", "files", "mcp", "oidc", "otel", "postgres", "dev")
        for one in requirements(extra)
        if one.name != "loopagent" and not re.search(r">=.*<|<.*>=", str(one.specifier))
    ]
    assert open_ended == []


def test_a_plain_install_stays_small() -> None:
    assert len(installed_with("loopagent")) <= MAX_DISTRIBUTIONS


def test_the_lock_fits_the_declaration() -> None:
    for extra in (None, "cost", "files", "mcp", "oidc", "otel", "postgres", "dev"):
        for one in requirements(extra):
            if one.name != "loopagent":
                assert LOCKED[canonicalize_name(one.name)]["version"] in one.specifier


def test_the_lock_names_public_hosts_only() -> None:
    text = (ROOT / "uv.lock").read_text(encoding="utf-8")
    assert set(re.findall(r"[a-z+]+://([^/\"]+)", text)) == PUBLIC_HOSTS


def test_constraints_are_the_lock() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.partition(" ;")[0].split("==") for line in lines)
    assert pinned == {name: one["version"] for name, one in LOCKED.items() if name != "loopagent"}
