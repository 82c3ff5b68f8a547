"""The house limits, measured on the source: any part must be readable on one screen."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import fmean

import pytest

from loopagent.core.described import parsed


ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "loopagent"
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 50
MAX_MEAN_FUNCTION_LINES = 12.0
MAX_COMPLEXITY = 10
MAX_TABLE_COMPLEXITY = 20
TABLE_LIKE = frozenset({"expression.py", "pipeline.py", "text.py", "lexical.py"})
"""Files that scan text or match over a grammar: one long, flat table may live there."""
CORE_MAY_IMPORT = frozenset(
    {
        "__future__",
        "abc",
        "ast",
        "base64",
        "bisect",
        "collections",
        "copy",
        "dataclasses",
        "decimal",
        "difflib",
        "enum",
        "fractions",
        "functools",
        "hashlib",
        "html",
        "importlib",
        "inspect",
        "itertools",
        "jinja2",
        "json",
        "jmespath",
        "jsonschema_rs",
        "keyword",
        "loopagent",
        "math",
        "operator",
        "pkgutil",
        "pydantic",
        "pydantic_core",
        "re",
        "statistics",
        "string",
        "sys",
        "textwrap",
        "types",
        "typing",
        "unicodedata",
        "zstandard",
    }
)
"""The whole world of the core: computing, no clock, no chance, no input and output."""
CORE_MAY_USE_OF_US = ("loopagent.core", "loopagent.errors")
UNFINISHED = re.compile(
    r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b"
)
"""Words of things put off; spelled so that this file does not hold them."""
TEXT_SUFFIXES = frozenset(
    {
        ".py",
        ".md",
        ".toml",
        ".yaml",
        ".yml",
        ".json",
        ".j2",
        ".txt",
        ".lock",
        ".cfg",
        ".sql",
        ".sh",
        "",
    }
)
LEFT_OUT = frozenset({"node_modules", "build", "dist", "__pycache__"})

Function = ast.FunctionDef | ast.AsyncFunctionDef
SOURCES = sorted(PACKAGE.rglob("*.py"))
CORE = [path for path in SOURCES if PACKAGE / "core" in path.parents]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return parsed(path.read_text(encoding="utf-8"))


def functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, Function):
            yield node


def length(function: Function) -> int:
    """Lines from `def` to the end, without the docstring."""
    assert function.end_lineno is not None
    lines = function.end_lineno - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is not None and first.end_lineno is not None:
        lines -= first.end_lineno - first.lineno + 1
    return lines


def complexity(function: Function) -> int:
    """Independent paths: one, and one for each branch, loop, handler, case and nested function."""
    total = 1
    for node in ast.walk(function):
        if isinstance(node, ast.If | ast.For | ast.AsyncFor | ast.While | ast.ExceptHandler):
            total += 1
        elif isinstance(node, ast.Match):
            total += len(node.cases) - 1
        elif isinstance(node, Function) and node is not function:
            total += 1
    return total


def public_definitions(
    body: list[ast.stmt], prefix: str
) -> Iterator[tuple[str, Function | ast.ClassDef]]:
    """Classes, functions and methods that others may name; overloads count as one."""
    for node in body:
        if not isinstance(node, Function | ast.ClassDef) or node.name.startswith("_"):
            continue
        decorators = {ast.unparse(one) for one in node.decorator_list}
        if "overload" in decorators or any(
            one.endswith((".setter", ".deleter")) for one in decorators
        ):
            continue
        yield f"{prefix}.{node.name}", node
        if isinstance(node, ast.ClassDef):
            yield from public_definitions(node.body, f"{prefix}.{node.name}")


def imported(path: Path) -> Iterator[str]:
    """Full names of the modules a file imports, wherever in the file."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}:{node.lineno}: relative import"
            assert node.module is not None
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def text_files() -> list[Path]:
    """Every text file of the project, hidden folders and what tools leave behind left out."""
    found: list[Path] = []
    for path in ROOT.rglob("*"):
        parts = path.relative_to(ROOT).parts
        hidden = any(part.startswith(".") and part != ".ci" for part in parts[:-1])
        if hidden or LEFT_OUT & set(parts) or any(part.endswith(".egg-info") for part in parts):
            continue
        measured = path.name.startswith(".coverage")
        if path.is_file() and path.suffix in TEXT_SUFFIXES and not measured:
            found.append(path)
    return found


def test_there_is_something_to_measure() -> None:
    assert len(SOURCES) > 50
    assert len(CORE) > 20


def test_files_fit() -> None:
    sizes = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {name: size for name, size in sizes.items() if size > MAX_FILE_LINES} == {}


def test_functions_fit() -> None:
    too_long = {
        f"{name_of(path)}:{one.lineno} {one.name}": length(one)
        for path in SOURCES
        for one in functions(path)
        if length(one) > MAX_FUNCTION_LINES
    }
    assert too_long == {}


def test_functions_are_short_on_average() -> None:
    mean = fmean(length(one) for path in SOURCES for one in functions(path))
    assert mean <= MAX_MEAN_FUNCTION_LINES


def test_functions_are_simple() -> None:
    tangled = {
        f"{name_of(path)}:{one.lineno} {one.name}": complexity(one)
        for path in SOURCES
        for one in functions(path)
        if complexity(one) > (MAX_TABLE_COMPLEXITY if path.name in TABLE_LIKE else MAX_COMPLEXITY)
    }
    assert tangled == {}


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        name_of(path)
        for path in SOURCES
        if tree_of(path).body and not ast.get_docstring(tree_of(path))
    ]
    assert silent == []


def test_every_public_name_has_a_docstring() -> None:
    silent = [
        f"{name_of(path)}:{node.lineno} {name}"
        for path in SOURCES
        for name, node in public_definitions(tree_of(path).body, path.stem)
        if not ast.get_docstring(node)
    ]
    assert silent == []


def test_the_core_only_computes() -> None:
    foreign = {
        f"{name_of(path)}: {module}"
        for path in CORE
        for module in imported(path)
        if module.partition(".")[0] not in CORE_MAY_IMPORT
        or (module.startswith("loopagent.") and not module.startswith(CORE_MAY_USE_OF_US))
    }
    assert foreign == set()


def test_the_core_takes_only_numbers_from_sys() -> None:
    taken = {
        f"{name_of(path)}:{node.lineno} sys.{node.attr}"
        for path in CORE
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "sys"
        and node.attr not in {"float_info", "maxsize", "maxunicode"}
    }
    assert taken == set()


def test_the_core_has_no_way_out_by_name() -> None:
    calls = {
        f"{name_of(path)}:{node.lineno} {node.func.id}"
        for path in CORE
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id
        in {"open", "eval", "exec", "print", "input", "compile", "__import__", "breakpoint"}
    }
    assert calls == set()


@pytest.mark.parametrize("module", ["pickle", "marshal", "shelve", "dill"])
def test_nothing_is_stored_as_code(module: str) -> None:
    assert module in sys.stdlib_module_names | {"dill"}
    users = [
        name_of(path)
        for path in SOURCES
        if any(one.split(".")[0] == module for one in imported(path))
    ]
    assert users == []


def test_nothing_is_put_off() -> None:
    marked = [
        f"{name_of(path)}:{number}"
        for path in text_files()
        if path.suffix != ".lock"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if UNFINISHED.search(line)
    ]
    assert marked == []


def test_no_file_names_the_machine_it_was_written_on() -> None:
    naming = [
        name_of(path) for path in text_files() if str(ROOT) in path.read_text(encoding="utf-8")
    ]
    assert naming == []


def test_the_measures_measure() -> None:
    source = '''
def outer(x):
    """Doc
    string."""
    for i in x:
        if i:
            pass
        elif x:
            pass
    try:
        def inner(): ...
    except ValueError:
        pass
    match x:
        case 1: pass
        case 2: pass
        case _: pass
'''
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert length(function) == 14
    assert complexity(function) == 1 + 1 + 2 + 1 + 1 + 2
    names = [
        name
        for name, _ in public_definitions(
            ast.parse("class A:\n def b(self): ...\n def _c(self): ...").body, "m"
        )
    ]
    assert names == ["m.A", "m.A.b"]
