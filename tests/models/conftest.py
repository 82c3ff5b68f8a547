"""The fake provider, one server for each file of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.provider import FakeProvider


@pytest.fixture(scope="module")
def server() -> Iterator[FakeProvider]:
    with FakeProvider() as running:
        yield running


@pytest.fixture
def provider(server: FakeProvider) -> FakeProvider:
    server.reset()
    return server
