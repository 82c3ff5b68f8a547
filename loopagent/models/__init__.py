"""Models by name: `open_model` turns `provider:model` into something that can be asked.

Adapters are imported when they are first opened, so that nobody pays for those not used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import urlsplit

from loopagent.errors import ConfigError


if TYPE_CHECKING:
    from loopagent.models.http import HttpSettings
    from loopagent.ports import Model
    from loopagent.runtime.similar import Embedder


ENTRY_POINT_GROUP = "loopagent.models"
"""Packages add providers here: the name is the provider, the object is an `Opener`."""
Opener: TypeAlias = "Callable[[str, Mapping[str, str], Path | None], Model]"
"""Opens a model from its whole spec, the environment, and the folder that relative files start from."""
JSON_MODES = ("auto", "schema", "object", "off")


def open_model(spec: str, *, env: Mapping[str, str], base_dir: Path | None = None) -> Model:
    """The model that a spec names.

    Args:
        spec: `openai:NAME`, `anthropic:NAME`, `http(s)://HOST:PORT/v1#NAME` (any server that speaks
            OpenAI's chat completions), `scripted:FILE`, or `PROVIDER:NAME` of an installed package.
        env: Where keys, addresses and limits come from: `OPENAI_API_KEY`, `OPENAI_BASE_URL`,
            `ANTHROPIC_API_KEY`, `ANTHROPIC_BASE_URL`, `LOOPAGENT_API_KEY` (for `http…`), and
            `LOOPAGENT_MODEL_…` for the settings in `SETTINGS`.
        base_dir: Folder that a script's relative path starts from; None for the current one.

    Raises:
        ConfigError: The spec means nothing, or something that it needs is missing.
    """
    provider, colon, rest = spec.partition(":")
    if not colon or not provider or not rest:
        raise ConfigError(
            f"A model is written provider:name, for example openai:gpt-5-mini; got {spec!r}."
        )
    opener = _OPENERS.get(provider) or _installed(provider, spec)
    return opener(spec, env, base_dir)


def embedder_of(wanted: Embedder | str | None, env: Mapping[str, str]) -> Embedder | None:
    """What turns texts into vectors: a function of the host, or a model by its name; see `open_embedder`.

    Raises:
        ConfigError: The name means nothing, or something that it needs is missing.
    """
    if not isinstance(wanted, str):
        return wanted
    from loopagent.models.embeddings import open_embedder  # noqa: PLC0415 - lazy

    return open_embedder(wanted, env=env)


def _installed(provider: str, spec: str) -> Opener:
    found = list(entry_points(group=ENTRY_POINT_GROUP, name=provider))
    if found:
        return _loaded(found[0])
    names = [*_OPENERS, *(one.name for one in entry_points(group=ENTRY_POINT_GROUP))]
    known = sorted(set(names) - {"http", "https"})
    near = get_close_matches(provider, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ConfigError(
        f"Unknown model provider {provider!r} in {spec!r}.{hint} Known are {', '.join(known)}, and"
        " http://HOST:PORT/v1#NAME for a server that speaks OpenAI's chat completions."
    )


def _loaded(found: EntryPoint) -> Opener:
    try:
        return cast("Opener", found.load())
    except Exception as error:  # a foreign package may fail in any way
        raise ConfigError(
            f"The model provider {found.name!r} ({found.value}) cannot be loaded: {type(error).__name__}: {error}"
        ) from error


def _openai(spec: str, env: Mapping[str, str], base_dir: Path | None) -> Model:
    del base_dir
    from loopagent.models.openai import OFFICIAL_URL, OpenAIModel  # noqa: PLC0415 - lazy

    key = needed(spec, env, "OPENAI_API_KEY")
    url = address(env.get("OPENAI_BASE_URL") or OFFICIAL_URL, "OPENAI_BASE_URL")
    return OpenAIModel(spec, after_colon(spec), url, key, dialect="openai", **_chat_options(env))


def _anthropic(spec: str, env: Mapping[str, str], base_dir: Path | None) -> Model:
    del base_dir
    from loopagent.models.anthropic import OFFICIAL_URL, AnthropicModel  # noqa: PLC0415 - lazy

    key = needed(spec, env, "ANTHROPIC_API_KEY")
    url = address(env.get("ANTHROPIC_BASE_URL") or OFFICIAL_URL, "ANTHROPIC_BASE_URL")
    options = _http_options(env) | _picked(env, {"max_tokens": SETTINGS["max_tokens"]})
    return AnthropicModel(spec, after_colon(spec), key, url, **options)


def _compatible(spec: str, env: Mapping[str, str], base_dir: Path | None) -> Model:
    del base_dir
    from loopagent.models.openai import OpenAIModel  # noqa: PLC0415 - lazy

    url, _, model = spec.partition("#")
    if not model:
        raise ConfigError(f"The model's name is missing: write {url}#NAME.")
    return OpenAIModel(
        spec, model, address(url, "The model"), env.get("LOOPAGENT_API_KEY"), **_chat_options(env)
    )


def _scripted(spec: str, env: Mapping[str, str], base_dir: Path | None) -> Model:
    del env
    from loopagent.models.scripted import ScriptedModel  # noqa: PLC0415 - lazy

    return ScriptedModel.from_file(
        (base_dir or Path()) / Path(after_colon(spec)).expanduser(), name=spec
    )


_OPENERS: dict[str, Opener] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "http": _compatible,
    "https": _compatible,
    "scripted": _scripted,
}


def after_colon(spec: str) -> str:
    """The part of a spec behind its provider."""
    return spec.partition(":")[2]


def needed(spec: str, env: Mapping[str, str], variable: str) -> str:
    """A key from the environment.

    Raises:
        ConfigError: It is not set.
    """
    key = env.get(variable, "").strip()
    if not key:
        raise ConfigError(f"The model {spec} needs a key: set the environment variable {variable}.")
    return key


def address(url: str, what: str) -> str:
    """The address, if it is one and holds no credentials.

    Raises:
        ConfigError: It is none, or holds some.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable, parts = False, urlsplit("")
    if not usable:
        raise ConfigError(
            f"{what} is no usable address; write http://HOST:PORT/v1 or https://HOST/v1."
        )
    if parts.username or parts.password or parts.query:
        raise ConfigError(
            f"{what} must hold no user name, password or query; set keys in the environment."
        )
    return url


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError(text)
    return value


def _whole(text: str) -> int:
    value = int(text)
    if value <= 0:
        raise ValueError(text)
    return value


def _yes_or_no(text: str) -> bool:
    return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[
        text.lower()
    ]


def _proxy(text: str) -> str:
    from loopagent.egress.policy import checked_proxy  # noqa: PLC0415 - lazy

    return checked_proxy(text)


def _json_mode(text: str) -> str:
    return {one: one for one in JSON_MODES}[text.lower()]


SETTINGS: dict[str, tuple[str, Callable[[str], Any], str]] = {
    "connect_seconds": (
        "LOOPAGENT_MODEL_CONNECT_SECONDS",
        _positive,
        "a number of seconds above 0",
    ),
    "idle_seconds": ("LOOPAGENT_MODEL_IDLE_SECONDS", _positive, "a number of seconds above 0"),
    "first_token_seconds": (
        "LOOPAGENT_MODEL_FIRST_TOKEN_SECONDS",
        _positive,
        "a number of seconds above 0",
    ),
    "wait_seconds": ("LOOPAGENT_MODEL_WAIT_SECONDS", _positive, "a number of seconds above 0"),
    "max_reply_bytes": (
        "LOOPAGENT_MODEL_MAX_REPLY_BYTES",
        _whole,
        "a whole number of bytes above 0",
    ),
    "max_tokens": ("LOOPAGENT_MODEL_MAX_TOKENS", _whole, "a whole number of tokens above 0"),
    "finish_required": ("LOOPAGENT_MODEL_FINISH_REQUIRED", _yes_or_no, "true or false"),
    "proxy": ("LOOPAGENT_MODEL_PROXY", _proxy, "http://HOST:PORT"),
    "json_mode": ("LOOPAGENT_MODEL_JSON_MODE", _json_mode, f"one of {', '.join(JSON_MODES)}"),
}
"""Settings of the adapters by their Python names: environment variable, how it is read, what it must be."""
_HTTP = (
    "connect_seconds",
    "idle_seconds",
    "first_token_seconds",
    "wait_seconds",
    "max_reply_bytes",
    "proxy",
)


def _picked(
    env: Mapping[str, str], settings: Mapping[str, tuple[str, Callable[[str], Any], str]]
) -> dict[str, Any]:
    """The settings that the environment sets."""
    picked: dict[str, Any] = {}
    for name, (variable, read, wanted) in settings.items():
        text = env.get(variable, "").strip()
        if not text:
            continue
        try:
            picked[name] = read(text)
        except (ValueError, KeyError):
            raise ConfigError(f"{variable} must be {wanted}; got {text!r}.") from None
    return picked


def picked_http(env: Mapping[str, str]) -> HttpSettings:
    """Timeouts and limits that the environment sets."""
    from loopagent.models.http import HttpSettings  # noqa: PLC0415 - lazy

    return HttpSettings(**_picked(env, {name: SETTINGS[name] for name in _HTTP}))


def _http_options(env: Mapping[str, str]) -> dict[str, Any]:
    options = _picked(env, {"finish_required": SETTINGS["finish_required"]})
    return {"settings": picked_http(env), **options}


def _chat_options(env: Mapping[str, str]) -> dict[str, Any]:
    return _http_options(env) | _picked(env, {"json_mode": SETTINGS["json_mode"]})
