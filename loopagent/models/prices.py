"""What an attempt cost, by the price table of the optional package `genai-prices` (extra `cost`)."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from loopagent.ports import Usage


def cost_usd(provider_model: str, usage: Usage, *, cache_write_tokens: int = 0) -> float | None:
    """The price of one attempt.

    Args:
        provider_model: `provider:model` or `http(s)://…#model`.
        usage: Tokens of the attempt.
        cache_write_tokens: The part of the input tokens that was written to a prompt cache.

    Returns:
        US dollars; None when the package is not installed or does not know the model.
    """
    prices = _prices()
    if prices is None or not _known(provider_model):
        return None
    cached = min(usage.cached_tokens, usage.input_tokens)
    tokens = {
        "input_tokens": usage.input_tokens,
        "cache_read_tokens": cached,
        "cache_write_tokens": min(cache_write_tokens, usage.input_tokens - cached),
        "output_tokens": usage.output_tokens,
    }
    return _price(prices, provider_model, {key: amount for key, amount in tokens.items() if amount})


@lru_cache(maxsize=1)
def _prices() -> Any:
    try:
        return import_module("genai_prices")
    except ImportError:
        return None


@lru_cache(maxsize=256)
def _known(provider_model: str) -> bool:
    return _price(_prices(), provider_model, {}) is not None


def _price(prices: Any, provider_model: str, tokens: dict[str, int]) -> float | None:
    where, model = _split(provider_model)
    try:
        return float(prices.calc_price(prices.Usage(**tokens), model, **where).total_price)
    except (LookupError, ValueError):
        return None


def _split(provider_model: str) -> tuple[dict[str, str], str]:
    if provider_model.startswith(("http://", "https://")):
        url, _, model = provider_model.rpartition("#")
        return {"provider_api_url": url}, model
    provider, _, model = provider_model.partition(":")
    return {"provider_id": provider}, model
