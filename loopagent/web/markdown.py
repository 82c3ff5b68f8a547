"""Text of models and people as HTML that can do nothing: no raw HTML, no images, no links that run anything."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import nh3
from markdown_it import MarkdownIt
from markupsafe import Markup


if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token
    from markdown_it.utils import OptionsDict

MAX_COST = 300_000
"""Most characters that are read as Markdown for one page, those that mark something up counted as several: a model can
write texts that take long to read, while nobody else is served. What is beyond is shown as it is."""
MARKS = "[]!*_`|<>&\\#~\n"
COST_OF_A_MARK = 8
TAGS = frozenset(
    {
        "a",
        "blockquote",
        "br",
        "code",
        "del",
        "em",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "li",
        "ol",
        "p",
    }
    | {"pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"}
)
ATTRIBUTES: dict[str, set[str]] = {
    "*": set(),
    "a": {"href"},
    "ol": {"start"},
    "code": {"class"},
    "span": {"class"},
}
_TURNING = re.compile(r"[\u202a-\u202e\u2066-\u2069]")
"""Characters that turn the direction of what follows, so that a text reads otherwise than it is."""
SCHEMES = frozenset({"http", "https", "mailto"})
HEADING_SHIFT = 2
"""The page has its own first headings: those of a text begin below them."""


class Reading:
    """How much Markdown may still be read for one page."""

    def __init__(self) -> None:
        self._left = MAX_COST

    def takes(self, text: str) -> bool:
        """Whether a text is not too much; one that is costs nothing."""
        cost = len(text) + COST_OF_A_MARK * sum(map(text.count, MARKS))
        fits = cost <= self._left
        self._left -= cost if fits else 0
        return fits


def render(text: str, reading: Reading | None = None) -> Markup:
    """Markdown (CommonMark with tables) as safe HTML; an image becomes its description.

    Args:
        text: The Markdown.
        reading: What is left for the page that it stands on; None for a page of its own.
    """
    if not (reading or Reading()).takes(text):
        return Markup('<pre tabindex="0">{}</pre>').format(text)
    straight = _TURNING.sub(lambda one: f"[U+{ord(one[0]):04X}]", text)
    return Markup(_clean(_parser().render(straight)))  # noqa: S704 - cleaned by nh3


def _clean(html: str) -> str:
    return nh3.clean(
        html,
        tags=set(TAGS),
        attributes=ATTRIBUTES,
        url_schemes=set(SCHEMES),
        link_rel="noopener noreferrer nofollow",
    )


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.add_render_rule("image", _image)
    parser.add_render_rule("link_close", _link_close)
    parser.add_render_rule("heading_open", _heading)
    parser.add_render_rule("heading_close", _heading)
    return parser


def _image(
    renderer: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any
) -> str:
    """Only the description: fetching an address that a model made up would tell its server something."""
    del env
    described = renderer.renderInlineAsText(tokens[at].children or [], options, {})
    return f"<span>[image: {nh3.clean_text(described)}]</span>"


def _link_close(
    renderer: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any
) -> str:
    """A link shows the host that it leads to."""
    del renderer, options, env
    depth = 0
    for one in reversed(tokens[:at]):
        depth += {"link_close": 1, "link_open": -1}.get(one.type, 0)
        if depth < 0:
            host = urlsplit(str(one.attrs.get("href", ""))).hostname
            return f'</a><span class="host"> ({nh3.clean_text(host)})</span>' if host else "</a>"
    return "</a>"


def _heading(
    renderer: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any
) -> str:
    del renderer, options, env
    token = tokens[at]
    level = min(int(token.tag[1]) + HEADING_SHIFT, 6)
    return f"<h{level}>" if token.nesting > 0 else f"</h{level}>\n"
