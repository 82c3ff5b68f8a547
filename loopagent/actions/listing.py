"""What is said of actions in lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopagent.actions.build import FileAction


if TYPE_CHECKING:
    from collections.abc import Mapping

    from loopagent.action import Action
    from loopagent.actions.format import ActionFile
    from loopagent.core.action_spec import ActionSpec


def action_row(action: Action[..., Any], used_by: list[str]) -> dict[str, Any]:
    """One action as JSON.

    Args:
        action: The action.
        used_by: Names of the agents that use it.

    Returns:
        What it is and does; never the values of its secrets, of which there are only names.
    """
    row = spec_row(action.spec) | {"usedBy": used_by}
    return row | file_row(action.file) if isinstance(action, FileAction) else row


def spec_row(spec: ActionSpec) -> dict[str, Any]:
    """What the engine knows of an action, as JSON, with what is so of one in Python.

    Args:
        spec: Of the action.
    """
    return {
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
        "usedBy": [],
        "source": "file",
        "state": "published",
        "published": None,
        "shadowed": False,
        "updatedAt": None,
        "updatedBy": "",
    }


def file_row(file: ActionFile) -> dict[str, Any]:
    """What only the file of an action says, as JSON.

    Args:
        file: The file.
    """
    return {
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
            one.model_dump(mode="json", by_alias=True, exclude_unset=True) for one in file.examples
        ],
        "tests": len(file.tests),
    }


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
