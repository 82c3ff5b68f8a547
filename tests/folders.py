"""Folders of projects, for tests."""

from __future__ import annotations

from pathlib import Path


def filled(folder: Path, **files: str | bytes) -> Path:
    """Files by path, with `/` and `.` in the names as they are."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder
