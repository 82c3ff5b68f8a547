"""One browser and one server a module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.http.server import make_project, serving
from tests.web.browser import launched


if TYPE_CHECKING:
    import httpx2
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium."""
    with launched() as found:
        yield found


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """A client of the API of a server whose pages are tested."""
    folder = tmp_path_factory.mktemp("web")
    with serving(make_project(folder / "project"), folder / "runs.db") as (found, _):
        yield found


@pytest.fixture(scope="module")
def site(client: httpx2.Client) -> str:
    """The address of the pages."""
    return str(client.base_url).partition("/api")[0]
