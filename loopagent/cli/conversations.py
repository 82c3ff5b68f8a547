"""Conversations that are kept in a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loopagent.app import App
from loopagent.cli.manage import ago, with_app
from loopagent.cli.opening import AsJson, Database, ProjectDir
from loopagent.cli.output import out, print_json, short, table, visible
from loopagent.conversation_port import ConversationRow
from loopagent.core.conversation import Said


conversations = typer.Typer(help="Conversations: list, show, delete.", no_args_is_help=True)
Id = Annotated[str, typer.Argument(help="Id of the conversation.")]
User = Annotated[str, typer.Option(help="Whose conversations; those of others do not exist.")]
Tenant = Annotated[str, typer.Option(help="Organisation of that user.")]


@conversations.command("list")
def list_conversations(
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
    user: User = "",
    tenant: Tenant = "",
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 50,
) -> None:
    """List a user's conversations, newest first."""

    async def work(app: App) -> int:
        rows, _ = await app.conversations.page(user=user, tenant=tenant, limit=limit)
        if as_json:
            print_json([_public(one) for one in rows])
            return 0
        shown = [
            (one.id, str(one.messages), ago(one.updated_at), short(one.title, 50)) for one in rows
        ]
        table(("conversation", "messages", "changed", "begins with"), shown)
        return 0

    with_app(project, db, work)


@conversations.command("show")
def show_conversation(
    conversation: Id,
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
    user: User = "",
    tenant: Tenant = "",
    after: Annotated[int, typer.Option(min=0, help="Only messages with a larger number.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=100_000)] = 1000,
) -> None:
    """Print what was said in a conversation."""

    async def work(app: App) -> int:
        row = await app.conversations.get(conversation, user=user, tenant=tenant)
        said = await app.conversations.messages(
            conversation, user=user, tenant=tenant, after=after, limit=limit
        )
        if as_json:
            print_json({**_public(row), "said": [_message(one) for one in said]})
            return 0
        for one in said:
            out.print(visible(f"#{one.sequence} {one.role}: {one.text}"))
        for run_id in row.active:
            out.print(visible(f"not ended: run {run_id}"))
        return 0

    with_app(project, db, work)


@conversations.command("delete")
def delete_conversation(
    conversation: Id,
    project: ProjectDir = Path(),
    db: Database = None,
    user: User = "",
    tenant: Tenant = "",
) -> None:
    """Remove a conversation with everything that was said in it, and its runs."""

    async def work(app: App) -> int:
        await app.conversations.delete(conversation, user=user, tenant=tenant)
        out.print(f"{conversation} removed", markup=False)
        return 0

    with_app(project, db, work)


def _public(row: ConversationRow) -> dict[str, object]:
    return {
        "id": row.id,
        "user": row.user,
        "tenant": row.tenant,
        "title": row.title,
        "createdAt": row.created_at,
        "updatedAt": row.updated_at,
        "messages": row.messages,
        "active": list(row.active),
    }


def _message(one: Said) -> dict[str, object]:
    return {**one.shown(), "runId": one.run_id, "at": one.at}
