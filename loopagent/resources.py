"""Finds the files that belong to the package: prompts, schemas and the demo, in a wheel or in a checkout."""

from __future__ import annotations

from functools import cache
from pathlib import Path


_PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """A folder of the project's data: inside the installed package, or beside it in a checkout.

    Args:
        name: `prompts`, `schemas` or `examples`.

    Raises:
        FileNotFoundError: The installation is damaged.
    """
    for place in (_PACKAGE / name, _PACKAGE.parent / name):
        if place.is_dir():
            return place
    message = f"the {name} folder of loopagent is missing; install the package again"
    raise FileNotFoundError(message)


@cache
def prompt(name: str) -> str:
    """The source of a prompt template, read once."""
    return (folder("prompts") / name).read_text(encoding="utf-8")
