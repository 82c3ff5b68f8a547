"""What the pages are made of: vendored files as they were published, addresses that change with the content."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import httpx2

import loopagent.web


VENDOR = Path(loopagent.web.__file__).parent / "static" / "vendor"


def test_vendored_files_are_what_their_list_says() -> None:
    known = json.loads((VENDOR / "vendor.json").read_text())
    assert {one.name for one in VENDOR.glob("*.js")} == set(known)
    for name, about in known.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == about["sha256"]
        assert about["license"] == "0BSD"


def test_every_page_has_a_strict_policy_with_a_nonce_of_its_own(
    client: httpx2.Client, site: str
) -> None:
    nonces = set[str]()
    for path in ("/", "/runs", "/runs/nobody", "/nowhere"):
        page = httpx2.get(f"{site}{path}", headers={"accept": "text/html"})
        policy = page.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "require-trusted-types-for 'script'" in policy
        found = re.search(r"'nonce-([\w-]+)'", policy)
        assert found is not None
        nonces.add(found[1])
        scripts = re.findall(r"<script[^>]*>", page.text)
        assert scripts
        assert all(f'nonce="{found[1]}"' in one for one in scripts)
        assert not re.search(r" on\w+=| style=", page.text)
    assert len(nonces) == 4
    assert client.get("/runs/nobody").headers["content-type"] == "application/problem+json"


def test_static_files_are_kept_for_ever_and_others_are_not_found(site: str) -> None:
    page = httpx2.get(f"{site}/").text
    for address in set(re.findall(r"/static/[\w./-]+", page)):
        answer = httpx2.get(f"{site}{address}")
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    for wrong in ("/static/0000000000000000/app.css", "/static/../app.py", "/static/%2e%2e/app.py"):
        assert httpx2.get(f"{site}{wrong}").status_code == 404
