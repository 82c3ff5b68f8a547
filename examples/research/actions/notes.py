"""A search over the notes in the data folder: Markdown files, one topic each."""

from pathlib import Path

from loopagent import action


NOTES = Path(__file__).resolve().parent.parent / "data"


@action(effects="read")
def search_notes(words: str, limit: int = 3) -> list[dict[str, str]]:
    """Find notes, those with most of the words first.

    Args:
        words: Words to look for.
        limit: How many notes at most.
    """
    wanted = words.lower().split()
    found: list[tuple[int, dict[str, str]]] = []
    for path in sorted(NOTES.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        hits = sum(text.lower().count(word) for word in wanted)
        if hits:
            found.append((hits, {"note": path.stem, "text": text.strip()}))
    best = sorted(found, key=lambda one: -one[0])
    return [note for _, note in best[:limit]]
