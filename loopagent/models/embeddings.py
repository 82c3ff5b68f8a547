"""Vectors of texts from every server that speaks OpenAI's embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from loopagent.core.json_values import compact_json
from loopagent.errors import ConfigError
from loopagent.models import address, after_colon, needed, picked_http
from loopagent.models.http import HttpSettings, Wire, clean_key
from loopagent.models.openai import OFFICIAL_URL
from loopagent.models.values import count, mapping
from loopagent.ports import Usage
from loopagent.runtime.similar import Embedded


if TYPE_CHECKING:
    from collections.abc import Callable

    from loopagent.errors import ModelError

FLOAT_CHARS = 32
"""Room for one number of a vector in an answer."""


class OpenAIEmbedder:
    """Asks an OpenAI-compatible `embeddings` address.

    Args:
        name: `provider:model` as configured.
        model: The provider's name of the model.
        base_url: Address up to and including the version.
        api_key: Sent as bearer token; None for servers that want none.
        settings: Timeouts and limits.

    Raises:
        ConfigError: The key cannot be sent.
    """

    def __init__(
        self,
        name: str,
        model: str,
        base_url: str = OFFICIAL_URL,
        api_key: str | None = None,
        *,
        settings: HttpSettings | None = None,
    ) -> None:
        self.name = name
        self._model = model
        key = clean_key(api_key, name) if api_key else ""
        headers = {"authorization": f"Bearer {key}"} if key else {}
        url = f"{base_url.rstrip('/')}/embeddings"
        self._wire = Wire(name, url, headers=headers, secrets=(key,), settings=settings)

    async def __call__(self, texts: Sequence[str]) -> Embedded:
        """One vector for each text.

        Raises:
            ModelError: The server did not give them.
        """
        collector = _Vectors(self._wire.error)
        body = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        await self._wire.call(body, collector, None)
        used = {"input_tokens": collector.usage.input_tokens}
        return Embedded(collector.vectors, used)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._wire.aclose()


class _Vectors:
    """Understands an answer with embeddings."""

    text = ""
    complete = True

    def __init__(self, error: Callable[..., ModelError]) -> None:
        self._error = error
        self.usage = Usage()
        self.vectors: list[list[float]] = []

    def feed(self, data: str) -> str | None:
        """Such answers never come as a stream."""
        del data
        raise self._error("invalid", "a stream came instead of embeddings")

    def whole(self, body: Any) -> None:
        """Take the answer; its entries may come in any order."""
        answer = mapping(body)
        self.usage = Usage(input_tokens=count(mapping(answer.get("usage")).get("prompt_tokens")))
        try:
            entries = sorted(cast("list[Any]", answer["data"]), key=lambda one: int(one["index"]))
            self.vectors = [[float(number) for number in one["embedding"]] for one in entries]
        except (KeyError, TypeError, ValueError) as error:
            text = f"no embeddings in the answer: {compact_json(body)[:200]}"
            raise self._error("invalid", text) from error

    def end(self) -> None:
        """Nothing can be missing."""


def open_embedder(spec: str, *, env: Mapping[str, str]) -> OpenAIEmbedder:
    """The embedder that a spec names.

    Args:
        spec: `openai:NAME`, or `http(s)://HOST:PORT/v1#NAME` for any server that speaks OpenAI's embeddings.
        env: Where keys and addresses come from, as for models.

    Raises:
        ConfigError: The spec means nothing, or something that it needs is missing.
    """
    provider = spec.partition(":")[0]
    settings = picked_http(env)
    if provider == "openai" and after_colon(spec):
        url = address(env.get("OPENAI_BASE_URL") or OFFICIAL_URL, "OPENAI_BASE_URL")
        own = needed(spec, env, "OPENAI_API_KEY")
        return OpenAIEmbedder(spec, after_colon(spec), url, own, settings=settings)
    url, _, model = spec.partition("#")
    if provider not in {"http", "https"} or not model:
        message = (
            f"An embedding model is written openai:NAME or http://HOST:PORT/v1#NAME; got {spec!r}."
        )
        raise ConfigError(message)
    key = env.get("LOOPAGENT_API_KEY")
    return OpenAIEmbedder(spec, model, address(url, "The embedding model"), key, settings=settings)
