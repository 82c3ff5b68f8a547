"""`loopagent init`: a new project."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from loopagent import resources
from loopagent.cli.output import out
from loopagent.errors import ConfigError
from loopagent.project import load_project


def init(folder: Annotated[Path, typer.Argument(help="Folder to make.")]) -> None:
    """Make a project that runs, from the example, in a folder that does not exist or is empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        message = f"{folder} exists and is not empty; name another folder"
        raise ConfigError(message)
    source = resources.folder("examples") / "demo"
    left_out = shutil.ignore_patterns("__pycache__", "README.md")
    shutil.copytree(source, folder, dirs_exist_ok=True, ignore=left_out)
    load_project(folder)
    out.print(f"made {folder}; try:", markup=False)
    out.print(
        f'  loopagent run order-analyst "Which orders are late?" --project {folder}', markup=False
    )
    out.print(f"  loopagent test {folder}", markup=False)
