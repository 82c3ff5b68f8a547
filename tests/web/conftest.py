"""One browser and one server for all of these tests.

They end with the package: while Playwright is at work its event loop runs, and no other can in this thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.http.server import make_project, serving
from tests.web.browser import launched
from tests.web.samples import add_agents


if TYPE_CHECKING:
    import httpx2
    from playwright.sync_api import Browser


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium."""
    with launched() as found:
        yield found


@pytest.fixture(scope="package")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """A client of the API of a server whose pages are tested."""
    folder = make_project(tmp_path_factory.mktemp("web") / "project")
    add_agents(folder)
    with serving(folder, folder.parent / "runs.db") as (found, _):
        yield found


@pytest.fixture(scope="module")
def site(client: httpx2.Client) -> str:
    """The address of the pages; a module may have a server, and so a `client`, of its own."""
    return str(client.base_url).partition("/api")[0]
