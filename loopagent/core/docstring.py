"""What a docstring says about a function and its parameters, in Google or reST style."""

from __future__ import annotations

import re


_PARAMETERS = frozenset({"Args:", "Arguments:", "Parameters:", "Params:", "Keyword Args:"})
_GOOGLE = re.compile(r"\*{0,2}(\w+)\s*(?:\(.*?\))?:\s*(.*)")
_REST = re.compile(
    r"^:(?:param|parameter|arg|argument|key|keyword)\s([^:\n]+):(.*(?:\n[ \t]+.*)*)", re.MULTILINE
)
_SECTION = re.compile(r"[A-Z][A-Za-z ]*:")


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Read a docstring whose common indentation has been taken away, as `inspect.getdoc` does.

    Returns:
        The first paragraph on one line, and the text about each parameter on one line.
    """
    lines = text.strip().splitlines()
    texts = _google(lines)
    for declared, found in _REST.findall(text):
        texts[declared.split()[-1].lstrip("*")] = found
    return _summary(lines), {name: " ".join(found.split()) for name, found in texts.items()}


def _summary(lines: list[str]) -> str:
    paragraph: list[str] = []
    for line in lines:
        if not line.strip() or line.startswith(":") or _SECTION.fullmatch(line.strip()):
            break
        paragraph.append(line.strip())
    return " ".join(paragraph)


def _google(lines: list[str]) -> dict[str, str]:
    """Entries of the sections about parameters: `name (type): text`, continued by deeper lines."""
    texts: dict[str, str] = {}
    inside, indent, name = False, 0, ""
    for line in lines:
        depth = len(line) - len(line.lstrip())
        if not line.strip():
            continue
        if depth == 0:
            inside, indent, name = line.strip() in _PARAMETERS, 0, ""
            continue
        indent = indent or depth
        entry = _GOOGLE.fullmatch(line.strip()) if inside and depth <= indent else None
        if entry is not None:
            name = entry[1]
            texts[name] = entry[2]
        elif inside and name:
            texts[name] += f" {line.strip()}"
    return texts
