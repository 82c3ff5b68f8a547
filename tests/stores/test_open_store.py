"""A store by its URL."""

import subprocess
import sys
from pathlib import Path

import pytest

from loopagent.errors import ConfigError
from loopagent.stores import MemoryStore, SqliteStore, open_store


@pytest.mark.parametrize("url", ["memory://", "sqlite://"])
def test_memory(url):
    assert isinstance(open_store(url), MemoryStore)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///runs.db", "runs.db"),
        ("sqlite:///data/runs.db", "data/runs.db"),
        ("sqlite:////srv/runs.db", "/srv/runs.db"),
        ("sqlite:///a b.db", "a b.db"),
    ],
)
def test_sqlite(url, path):
    store = open_store(url)
    assert isinstance(store, SqliteStore)
    assert store.path == Path(path)


def test_options():
    store = open_store(
        "sqlite:///runs.db?synchronous=normal&durability=turn&inline_seconds=0&busy_timeout_seconds=5&max_bytes=4096"
    )
    assert isinstance(store, SqliteStore)


@pytest.mark.parametrize(
    ("url", "remedy"),
    [
        ("postgresql://user:hunter2@host/db?schema=A", "lower-case"),
        ("postgres://user:hunter2@host/db?connections=few", "few"),
        ("mongodb://user:hunter2@host/db", "sqlite:///runs.db"),
        ("runs.db", "sqlite:///runs.db"),
        ("", "sqlite:///runs.db"),
        ("sqlite://runs.db", "three slashes"),
        ("sqlite:///", "three slashes"),
        ("sqlite:///runs.db?speed=high", "speed"),
        ("sqlite:///runs.db?max_bytes=lots", "lots"),
        ("sqlite:///runs.db?synchronous=perhaps", "FULL"),
        ("sqlite:///runs.db?durability=perhaps", "turn"),
        ("sqlite:///:memory:", "memory://"),
        ("memory://runs", "no path"),
    ],
)
def test_what_names_no_store_is_refused_without_repeating_a_password(url, remedy):
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert remedy in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_postgres(scheme):
    store = open_store(f"{scheme}://user:hunter2@host/db?schema=team_a")
    assert type(store).__name__ == "PostgresStore"


def test_without_the_driver_the_extra_is_named():
    """In a fresh process that cannot import it."""
    script = """
import sys
sys.modules["asyncpg"] = None
from loopagent.errors import ConfigError
from loopagent.stores import open_store
try:
    open_store("postgresql://user:hunter2@host/db")
except ConfigError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "pip install 'loopagent[postgres]'" in done.stdout
    assert "hunter2" not in done.stdout


def test_a_plugin_gives_a_scheme(tmp_path, monkeypatch):
    """An installed distribution is a folder with its metadata on the path."""
    (tmp_path / "shelf_store.py").write_text(
        "class ShelfStore:\n    def __init__(self, url): self.url = url\n"
    )
    about = tmp_path / "shelf_store-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: shelf-store\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[loopagent.stores]\nshelf = shelf_store:ShelfStore\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    store = open_store("shelf://oak/3")
    assert (type(store).__name__, vars(store)) == ("ShelfStore", {"url": "shelf://oak/3"})
