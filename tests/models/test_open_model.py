"""From a model's name to a model: what it needs, what it takes from the environment, what it says when it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from loopagent.errors import ConfigError
from loopagent.models import SETTINGS, open_model
from loopagent.models.anthropic import AnthropicModel
from loopagent.models.http import HttpSettings
from loopagent.models.openai import OpenAIModel
from loopagent.models.prices import cost_usd
from loopagent.models.scripted import ScriptedModel
from loopagent.ports import ChatMessage, ModelRequest, Usage
from tests.fakes.provider import FakeProvider
from tests.fakes.wire import REPLY


pytestmark = pytest.mark.anyio
REQUEST = ModelRequest("JSON, please.", [ChatMessage("user", "Ahoj")])


async def test_openai(provider: FakeProvider) -> None:
    env = {"OPENAI_API_KEY": " plain-secret-42\n", "OPENAI_BASE_URL": f"{provider.url}/"}
    model = open_model("openai:ok", env=env)
    assert isinstance(model, OpenAIModel)
    assert model.name == "openai:ok"
    assert (await model.generate(REQUEST)).text == REPLY
    await model.aclose()
    assert provider.seen[0].headers["authorization"] == "Bearer plain-secret-42"


async def test_anthropic(provider: FakeProvider) -> None:
    env = {
        "ANTHROPIC_API_KEY": "plain-secret-42",
        "ANTHROPIC_BASE_URL": provider.root,
        "LOOPAGENT_MODEL_MAX_TOKENS": "1234",
    }
    model = open_model("anthropic:ok", env=env)
    assert isinstance(model, AnthropicModel)
    assert (await model.generate(REQUEST)).text == REPLY
    await model.aclose()
    assert provider.bodies("ok")[0]["max_tokens"] == 1234


@pytest.mark.parametrize("key", [None, "plain-secret-42"])
async def test_any_server_that_speaks_chat_completions(
    provider: FakeProvider, key: str | None
) -> None:
    spec = f"{provider.url}#ok"
    model = open_model(spec, env={"LOOPAGENT_API_KEY": key} if key else {})
    assert model.name == spec
    assert (await model.generate(REQUEST)).text == REPLY
    await model.aclose()
    assert provider.seen[0].headers.get("authorization") == (f"Bearer {key}" if key else None)


async def test_the_key_of_one_provider_never_goes_to_another(provider: FakeProvider) -> None:
    env = {"OPENAI_API_KEY": "plain-secret-42", "ANTHROPIC_API_KEY": "plain-secret-43"}
    model = open_model(f"{provider.url}#ok", env=env)
    await model.generate(REQUEST)
    await model.aclose()
    assert "plain-secret" not in str(provider.seen[0].headers)


async def test_a_script_is_found_from_the_project(tmp_path: Path) -> None:
    (tmp_path / "replies.yaml").write_text("- one\n- two\n", "utf-8")
    model = open_model("scripted:replies.yaml", env={}, base_dir=tmp_path)
    assert isinstance(model, ScriptedModel)
    assert model.name == "scripted:replies.yaml"
    assert (await model.generate(REQUEST)).text == "one"
    absolute = open_model(f"scripted:{tmp_path / 'replies.yaml'}", env={}, base_dir=Path("/"))
    assert (await absolute.generate(REQUEST)).text == "one"


@pytest.mark.parametrize(
    ("spec", "env", "complaint"),
    [
        ("openai:gpt-5-mini", {}, "set the environment variable OPENAI_API_KEY"),
        ("openai:gpt-5-mini", {"OPENAI_API_KEY": " "}, "OPENAI_API_KEY"),
        ("anthropic:claude", {}, "set the environment variable ANTHROPIC_API_KEY"),
        ("gpt-5-mini", {}, "written provider:name, for example openai:gpt-5-mini"),
        ("", {}, "written provider:name"),
        ("openai:", {}, "written provider:name"),
        (":x", {}, "written provider:name"),
        ("opnai:x", {}, "Did you mean 'openai'?"),
        ("nothing-like-it:x", {}, "Known are anthropic, "),
        ("http://127.0.0.1:8000/v1", {}, "write http://127.0.0.1:8000/v1#NAME"),
        ("http://#x", {}, "no usable address"),
        ("http://127.0.0.1:99999/v1#x", {}, "no usable address"),
        ("http://[::1/v1#x", {}, "no usable address"),
        ("https://me:hidden@127.0.0.1/v1#x", {}, "no user name, password or query"),
        ("https://127.0.0.1/v1?key=hidden#x", {}, "no user name, password or query"),
        ("openai:x", {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "127.0.0.1"}, "OPENAI_BASE_URL"),
        ("scripted:no-such-file.yaml", {}, "cannot read the script"),
    ],
)
def test_what_cannot_be_opened_says_what_to_do(
    spec: str, env: dict[str, str], complaint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        open_model(spec, env=env)
    assert complaint in str(caught.value)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("variable", [variable for variable, _, _ in SETTINGS.values()])
def test_a_wrong_setting_is_told_by_name(variable: str) -> None:
    spec = "anthropic:x" if variable.endswith("MAX_TOKENS") else "http://127.0.0.1:1/v1#x"
    for value in ("many", "-1"):
        with pytest.raises(ConfigError, match=f"{variable} must be .*; got '{value}'"):
            open_model(spec, env={variable: value, "ANTHROPIC_API_KEY": "k"})


def test_settings_reach_the_adapter() -> None:
    env = {
        "LOOPAGENT_MODEL_CONNECT_SECONDS": "1",
        "LOOPAGENT_MODEL_IDLE_SECONDS": "2.5",
        "LOOPAGENT_MODEL_FIRST_TOKEN_SECONDS": "3",
        "LOOPAGENT_MODEL_WAIT_SECONDS": "4",
        "LOOPAGENT_MODEL_MAX_REPLY_BYTES": "5",
        "LOOPAGENT_MODEL_FINISH_REQUIRED": "no",
        "LOOPAGENT_MODEL_JSON_MODE": "Off",
    }
    model = open_model("http://127.0.0.1:1/v1#x", env=env)
    assert isinstance(model, OpenAIModel)
    assert model._wire._settings == HttpSettings(1.0, 2.5, 3.0, 4.0, max_reply_bytes=5)
    assert (model._finish_required, model._json_mode) == (False, "off")


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A package on disk that brings two providers, one of them broken."""
    info = tmp_path / "echo_models-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: echo-models\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[loopagent.models]\necho = echo_models:open_echo\nbroken = echo_models:no_such_name\n"
    )
    (tmp_path / "echo_models.py").write_text(
        "from loopagent.models.scripted import ScriptedModel\n"
        "def open_echo(spec, env, base_dir):\n"
        "    return ScriptedModel([env['WORD']], name=spec)\n"
    )
    return tmp_path


async def test_other_packages_bring_providers(
    plugin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(plugin)
    model = open_model("echo:loud", env={"WORD": "hello"})
    assert model.name == "echo:loud"
    assert (await model.generate(REQUEST)).text == "hello"
    with pytest.raises(
        ConfigError, match=r"'broken' \(echo_models:no_such_name\) cannot be loaded"
    ):
        open_model("broken:x", env={})
    with pytest.raises(ConfigError, match="Known are anthropic, broken, echo, openai, scripted"):
        open_model("unheard-of:x", env={})


def test_importing_is_cheap() -> None:
    code = (
        "import sys, loopagent.models, loopagent.models.scripted;"
        "print([name for name in ('httpx2', 'genai_prices') if name in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ),
    )
    assert found.stdout.strip() == "[]"


def test_without_the_price_table_nothing_has_a_price() -> None:
    code = (
        "import sys; sys.modules['genai_prices'] = None\n"
        "from loopagent.models.prices import cost_usd\n"
        "from loopagent.ports import Usage\n"
        "print(cost_usd('openai:gpt-5-mini', Usage(10, 0, 10)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "None"


def test_prices() -> None:
    usage = Usage(input_tokens=1_000_000, output_tokens=100_000)
    plain = cost_usd("openai:gpt-5-mini", usage)
    assert plain is not None
    assert plain > 0
    assert cost_usd("https://api.openai.com/v1#gpt-5-mini", usage) == plain
    cached = cost_usd("openai:gpt-5-mini", Usage(1_000_000, 900_000, 100_000))
    assert cached is not None
    assert cached < plain
    claude = cost_usd("https://api.anthropic.com#claude-sonnet-4-5", usage)
    written = cost_usd("anthropic:claude-sonnet-4-5", usage, cache_write_tokens=500_000)
    assert claude is not None
    assert written is not None
    assert written > claude


@pytest.mark.parametrize(
    "name",
    ["openai:no-such-model", "nobody:gpt-5-mini", "http://127.0.0.1:1/v1#gpt-5-mini", "scripted:x"],
)
def test_what_has_no_price_costs_nothing_known(name: str) -> None:
    assert cost_usd(name, Usage(10, 0, 10)) is None


def test_nonsense_usage_has_a_price_all_the_same() -> None:
    assert cost_usd("openai:gpt-5-mini", Usage(10, 2_000, 10)) is not None
