"""Leads in a CSV file, and the register that knows more about them (here a file that stands in for a service)."""

import asyncio
import csv
import json
from functools import cache
from pathlib import Path
from typing import Any

from loopagent import ActionError, action


DATA = Path(__file__).resolve().parent.parent / "data"


@cache
def register() -> dict[str, Any]:
    """The companies of the register by domain, read once."""
    return json.loads((DATA / "register.json").read_text(encoding="utf-8"))


@action(effects="read")
def read_leads(file: str) -> list[dict[str, str]]:
    """Read a CSV file of leads.

    Args:
        file: Its name in the data folder.
    """
    with (DATA / Path(file).name).open(encoding="utf-8", newline="") as rows:
        return list(csv.DictReader(rows))


@action(effects="read")
async def look_up_company(domain: str) -> dict[str, Any]:
    """Look a company up in the register.

    Args:
        domain: Its domain.
    """
    await asyncio.sleep(0.01)  # a service would take its time too
    found = register().get(domain)
    if found is None:
        raise ActionError(f"the register knows no company with the domain {domain}", code="unknown")
    return found


@action(effects="write", idempotent=True)
def save_leads(file: str, leads: list[dict[str, Any]]) -> str:
    """Write leads to a CSV file.

    Args:
        file: Its name in the `out` folder.
        leads: The rows.
    """
    path = DATA.parent / "out" / Path(file).name
    path.parent.mkdir(exist_ok=True)
    columns = list(dict.fromkeys(key for lead in leads for key in lead))
    with path.open("w", encoding="utf-8", newline="") as target:
        writer = csv.DictWriter(target, columns)
        writer.writeheader()
        writer.writerows(leads)
    return f"out/{path.name}"
