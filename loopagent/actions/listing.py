"""What is said of actions in lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopagent.actions.build import FileAction


if TYPE_CHECKING:
    from collections.abc import Mapping

    from loopagent.action import Action


def action_row(action: Action[..., Any], used_by: list[str]) -> dict[str, Any]:
    """One action as JSON.

    Args:
        action: The action.
        used_by: Names of the agents that use it.

    Returns:
        What it is and does; never the values of its secrets, of which there are only names.
    """
    spec = action.spec
    row: dict[str, Any] = {
        "name": spec.name,
        "kind": "code",
        "title": "",
        "description": spec.description,
        "version": "",
        "tags": [],
        "deprecated": False,
        "enabled": True,
        "effects": spec.effects,
        "approval": spec.approval,
        "idempotent": spec.idempotent,
        "parameters": spec.parameters,
        "ui": {},
        "hosts": [],
        "secrets": [],
        "examples": [],
        "tests": 0,
        "usedBy": used_by,
        "source": "file",
        "state": "published",
        "published": None,
        "shadowed": False,
        "updatedAt": None,
        "updatedBy": "",
    }
    if isinstance(action, FileAction):
        file = action.file
        row |= {
            "kind": file.run.kind,
            "title": file.title,
            "version": file.version,
            "tags": list(file.tags),
            "deprecated": file.deprecated,
            "enabled": file.enabled,
            "ui": file.ui,
            "hosts": list(file.egress.hosts),
            "secrets": list(file.secrets),
            "examples": [
                one.model_dump(mode="json", by_alias=True, exclude_unset=True)
                for one in file.examples
            ],
            "tests": len(file.tests),
        }
    return row


def action_rows(
    actions: Mapping[str, Action[..., Any]], agents: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """All actions as JSON, sorted by name.

    Args:
        actions: The actions by name.
        agents: Agents by name; each has `actions`.
    """
    return [
        action_row(one, sorted(agent for agent, of in agents.items() if name in of.actions))
        for name, one in sorted(actions.items())
    ]
