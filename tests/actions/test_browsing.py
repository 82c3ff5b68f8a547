"""What is listed for people who build actions: secrets without values, MCP servers and what became of their tools."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from loopagent.actions.importing.browsing import browse, listed_servers
from loopagent.actions.mcp_servers import McpServer
from loopagent.actions.secret_list import secret_states
from loopagent.actions.secrets import Credential, Credentials
from loopagent.errors import ConfigError
from tests.actions.making import Secrets, means, read


pytestmark = pytest.mark.anyio
FAKE = Path(__file__).parent.parent / "fakes" / "mcp_server.py"
FILE = "name: {name}\ndescription: d\neffects: read\nparams: {{type: object}}\nrun: {{kind: mcp, server: shop, tool: {tool}{more}}}\n"


def test_secrets_are_listed_without_values() -> None:
    known = {
        "carrier": Credential(env="CARRIER", hosts=("api.carrier.example",)),
        "shop": Credential(file="shop.key", hosts=("*.shop.example",)),
    }
    store = Credentials(known, {"CARRIER": "CANARY-1"}, Path("/nowhere"))
    found = secret_states(store, [("parcels", ["carrier", "other"]), ("orders", ["carrier"])])
    assert [(one.name, one.state, one.source, one.used_by) for one in found] == [
        ("carrier", "set", "variable CARRIER", ("orders", "parcels")),
        ("other", "unknown", "", ("parcels",)),
        ("shop", "missing", "file shop.key", ()),
    ]
    assert found[0].hosts == ("api.carrier.example",)
    assert "CANARY" not in repr(found)


def test_secrets_of_a_host_and_none_at_all() -> None:
    [mine] = secret_states(Secrets(token="CANARY-2"), [("a", ["token"])])
    assert (mine.state, mine.hosts) == ("set", ("127.0.0.1",))
    [none] = secret_states(None, [("a", ["token"])])
    assert none.state == "unknown"


async def test_tools_and_what_became_of_them() -> None:
    server = McpServer(command=sys.executable, args=(str(FAKE), "stdio"), env={"PYTHONPATH": ""})
    given = means(mcp={"shop": server})
    first = await browse("shop", given, [])
    assert {one.state for one in first.tools} == {"new"}
    tool, other = first.tools[:2]
    digest = tool.draft.action["run"]["sha256"]
    actions = [
        read(FILE.format(name="same", tool=tool.name, more=f", sha256: {digest}")),
        read(FILE.format(name="older", tool=other.name, more=f", sha256: {'f' * 64}")),
        read(FILE.format(name="loose", tool=other.name, more="")),
        read(FILE.format(name="lost", tool="no_more", more="")),
    ]
    found = await browse("shop", given, actions)
    assert found.tools[0].actions == {"same": "unchanged"}
    assert found.tools[1].actions == {"older": "changed", "loose": "unpinned"}
    assert found.tools[1].state == "changed"
    assert found.gone == {"lost": "no_more"}
    [listed] = listed_servers(given, actions)
    assert listed.used_by == ("loose", "lost", "older", "same")
    assert (listed.transport, listed.reached) == ("program", sys.executable)


async def test_a_server_that_is_not_configured() -> None:
    with pytest.raises(ConfigError, match="no MCP server"):
        await browse("mine", means(), [])
    remote = McpServer(url="https://user@mcp.example/mcp")
    [listed] = listed_servers(means(mcp={"far": remote}), [])
    assert (listed.transport, listed.reached, listed.used_by) == ("http", "mcp.example", ())
