"""JSON as a tree, and differences between texts: small pages of what may be large."""

from __future__ import annotations

import json

import pytest

from loopagent.artifacts.changes import changes
from loopagent.artifacts.source import Source, ToolError
from loopagent.artifacts.trees import MAX_CHILDREN, MAX_NODES, Node, tree


def json_of(value: object) -> Source:
    return Source(json.dumps(value).encode(), kind="json")


def count(node: Node) -> int:
    return 1 + sum(count(one) for one in node.children)


def test_a_tree_shows_the_top_and_says_where_to_go_on() -> None:
    deep = {"a.b": [{"c": {"d": {"e": 1}}}], "t": "x" * 3_000, "n": None}
    root = tree(json_of(deep))
    listed, text, null = root.children
    assert (root.kind, root.length, root.next) == ("object", 3, None)
    assert (listed.path, listed.kind) == ('["a.b"]', "list")
    below = listed.children[0].children[0].children[0]
    assert (below.path, below.next, below.children) == ('["a.b"][0].c.d', 0, [])
    assert (len(text.text), text.length, null.text) == (2_000, 3_000, "null")
    again = tree(json_of(deep), below.path)
    assert [(one.key, one.text) for one in again.children] == [("e", "1")]


def test_a_long_list_comes_in_pages() -> None:
    source = json_of(list(range(250)))
    first = tree(source)
    assert (len(first.children), first.next) == (MAX_CHILDREN, MAX_CHILDREN)
    last = tree(source, "", 200)
    assert [last.children[0].path, last.children[-1].path, last.next] == ["[200]", "[249]", None]


def test_a_tree_is_never_larger_than_a_page() -> None:
    wide = [[[0] * 200 for _ in range(200)] for _ in range(5)]
    root = tree(json_of(wide))
    assert count(root) <= MAX_NODES + 1
    assert any(one.next == 0 for one in root.children[0].children)


@pytest.mark.parametrize(("content", "path"), [(b"{", ""), (b"{}", "a"), (b"{}", "[[")])
def test_what_is_not_there_is_said(content: bytes, path: str) -> None:
    with pytest.raises(ToolError):
        tree(Source(content, kind="json"), path)


def test_changes_count_from_the_beginning() -> None:
    old = "\n".join(f"l{at}" for at in range(1, 1_001))
    found = changes(Source(old.encode()), Source(old.replace("l500\n", "new\nmore\n").encode()))
    assert found["lines"][0] == "@@ -497,7 +497,8 @@"
    assert [one for one in found["lines"] if one[0] in "+-"] == ["-l500", "+new", "+more"]
    assert (found["same"], found["cut"]) == (False, False)


def test_the_same_and_the_incomparable() -> None:
    text = Source(b"a\r\nb")
    assert changes(text, Source(b"a\nb\n")) == {"lines": [], "cut": False, "same": True}
    with pytest.raises(ToolError, match="only texts"):
        changes(text, Source(b"x", kind="image"))
    many = [b"\n".join(b"%d %d" % (side, at) for at in range(20_000)) for side in (1, 2)]
    with pytest.raises(ToolError, match="differ over more"):
        changes(Source(many[0]), Source(many[1]))
    middle = [b"\n".join(b"%d %d" % (side, at) for at in range(3_000)) for side in (1, 2)]
    assert changes(Source(middle[0]), Source(middle[1]))["cut"]
