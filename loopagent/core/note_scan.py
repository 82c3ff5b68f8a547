"""Looking at a note before it is kept: does it try to give orders, and does it hold a credential?

A note is shown to later runs as data. One that reads like an instruction to an agent, like a permission or like a part
of the protocol is not shown at all until a person has looked at it. Nothing here has to be complete to be safe: what
gets through still changes no gate and no right.

Source:
    semantics reference 17.2, row 38.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final


REDACTED: Final = "[redacted]"
_HIDDEN: Final = re.compile(
    "[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u00ad\U000e0000-\U000e007f\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
)
_SIGNS: Final[tuple[tuple[str, str], ...]] = (
    (
        "tells to set instructions aside",
        (
            r"\b(ignor\w*|disregard\w*|forget|override|bypass|circumvent|vergiss|oublie\w*|olvida\w*)\b.{0,40}"
            r"\b(instructions?|rules?|prompts?|polic(y|ies)|guidelines?|safety|restrictions?|anweisung\w*|regeln?"
            r"|consignes?|instrucciones|reglas)\b"
        ),
    ),
    (
        "gives new instructions",
        r"\b(new|real|actual|updated|secret|system) (instructions?|prompt|orders?)\b",
    ),
    (
        "speaks of approvals or permissions",
        (
            r"\b(approv\w+|permissions?|confirm(ation|ations|ing)?|consent|authori[sz]\w+|plan mode)\b.{0,60}"
            r"\b(not|never|no longer|without|unnecessary|optional|granted|skip\w*|waive\w*|given|always)\b"
        ),
    ),
    (
        "speaks of approvals or permissions",
        (
            r"\b(without|skip\w*|no need (for|of|to)|never|not|don'?t|do not|always|has|have|already|auto\w*)\b.{0,40}"
            r"\b(approv\w+|permissions?|confirmations?|consent|authori[sz]\w+|ask(ing)? (the )?(user|person|human)"
            r"|ask(ing)? (for|before|first))\b"
        ),
    ),
    (
        "poses as another speaker",
        r"(^|[\n\"'.;>-])\s*(system|assistant|developer|user|human|tool)\s*:",
    ),
    (
        "poses as another speaker",
        r"<\|?/?(im_start|im_end|system|assistant|user|tool|endoftext|s)\|?>|\[/?inst\]|<<sys>>",
    ),
    (
        "holds parts of the protocol",
        r"\b(nextstep|taskcomplete|payloadchangerequest|memorywrites|scratchpad|artifacttoolcalls|clienttools)\b",
    ),
    (
        "changes who the agent is",
        r"\b(you are now|act as|pretend (to be|you)|role-?play|jailbreak|developer mode|dan mode)\b",
    ),
    (
        "asks to keep something from people",
        r"\b(do not|don'?t|never)\b.{0,20}\b(tell|mention|reveal|inform|show|notify)\b",
    ),
    (
        "asks to send something out",
        (
            r"\b(send|post|upload|forward|exfiltrate|leak|transmit|report|copy|bcc)\b.{0,80}"
            r"(https?://|ftp://|www\.|@[\w-]+\.|\bwebhook\b)"
        ),
    ),
    ("holds an address that carries data", r"!\[[^\]]*\]\(|data:[\w/+-]+;base64|javascript:"),
    (
        "orders the agent to do something always",
        r"\b(you|the (agent|assistant|model|ai)) (must|shall|have to|has to|should always|will always|are to|is to)\b",
    ),
    (
        "orders the agent to call something",
        r"\b(call|run|execute|invoke|trigger|use) (the )?[\w.-]* ?(action|tool|function|command|script|shell)\b",
    ),
)
_PATTERNS: Final = tuple((what, re.compile(pattern, re.DOTALL)) for what, pattern in _SIGNS)
_CREDENTIALS: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\bsk-[A-Za-z0-9_-]{16,}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}"
    r"|\bglpat-[\w-]{16,}|\bxox[abposr]-[\w-]{10,}|\bAIza[\w-]{30,}|\bey[JK][\w-]{10,}\.[\w-]{10,}\.[\w-]{5,}",
    re.DOTALL,
)
_NAMED: Final = re.compile(
    r"(\b(?:password|passwd|passphrase|pwd|api[ _-]?key|access[ _-]?token|auth[ _-]?token|secret(?:[ _-]?key)?|token"
    r"|bearer|pin|passwort|kennwort)\b(?:\s+(?:is|ist)|\s*[:=])?\s+|\b(?:password|passwd|pwd|api[_-]?key|token|secret)[:=])"
    r"(?=\S*[\d!$%&*#_-])(\S{4,})",
    re.IGNORECASE,
)
"""A name for a secret and, after it, something that looks like one: it has a digit or a sign in it."""


def suspicions(text: str) -> tuple[str, ...]:
    """Why a note should be seen by a person before any agent sees it; empty when nothing speaks against it.

    Args:
        text: The note.
    """
    found: dict[str, None] = {}
    if _HIDDEN.search(text):
        found["holds characters that cannot be seen"] = None
    plain = _HIDDEN.sub("", unicodedata.normalize("NFKC", text)).casefold()
    for what, pattern in _PATTERNS:
        if pattern.search(plain):
            found[what] = None
    return tuple(found)


def without_credentials(text: str) -> str:
    """The note with everything masked that has the form of a credential."""
    text = _CREDENTIALS.sub(REDACTED, text)
    return _NAMED.sub(lambda found: found[1] + REDACTED, text)
