"""Commits: a transition and everything it brings is one statement, so one trip to the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from asyncpg import UniqueViolationError
from pydantic_core import to_json

from loopagent.stores import records
from loopagent.stores.postgres import artifacts, conversations, notices, parts
from loopagent.stores.postgres.statements import Statement
from loopagent.stores.written import first_message


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.ports import RememberedAnswer, StoredArtifact
    from loopagent.stores.written import Row

Db: TypeAlias = Any


# ---------------------------------------------------------------------- commits


async def commit_all(db: Db, rows: Sequence[Row], again: bool) -> int:
    """Move a run on by one commit or several; returns the `seq` of the first fact."""
    if len(rows) == 1:
        return await commit(db, rows[0], again)
    async with db.transaction():
        numbers = [await commit(db, one, again) for one in rows]
        return numbers[0]


async def commit(db: Db, row: Row, again: bool) -> int:
    """Move a run on, if it is still where the commit saw it; returns the `seq` of its first fact.

    Args:
        db: The connection.
        row: What to write.
        again: It may have been written already, by a connection that was lost before it could say so.
    """
    made, state = Statement(), row.commit.state
    facts = made.value(len(row.commit.facts), "integer")
    made.add(
        "moved",
        f"""
        UPDATE run SET version = version + 1, seq = seq + {facts},
          shown = {made.value(records.shown(state))}, turn = {made.value(state.turn)},
          updated_at = {made.value(row.commit.at)}, state = {made.value(row.state)},
          status = {made.value(state.status)}, due = {made.value(records.due(state))}
        WHERE id = {made.value(state.id)} AND version = {made.value(row.commit.version)}
        RETURNING key, root, seq, version, conversation
        """,
    )
    made.add(
        "counted",
        f"UPDATE run SET seq = run.seq + {facts} FROM moved WHERE run.key = moved.root"
        " RETURNING run.seq",
    )
    made.add(
        "place",
        """
        SELECT moved.key, coalesce(moved.root, moved.key) AS root, moved.version,
               coalesce(counted.seq, moved.seq) AS seq, moved.conversation
        FROM moved LEFT JOIN counted ON true
        """,
    )
    _append(made, row, facts)
    found = await db.fetchrow(
        made.text(f"SELECT seq - {facts} + 1 FROM place"),
        *made.values,
    )
    if found is not None:
        return int(found[0])
    seq = await _written(db, row) if again else None
    if seq is None:
        raise records.moved_on(state.id, row.commit.version)
    return seq


async def _written(db: Db, row: Row) -> int | None:
    """The first number of a commit that is there already, word for word."""
    found = await db.fetchval(
        """
        SELECT log.first_seq FROM run JOIN log ON log.run = run.key AND log.version = $2
        WHERE run.id = $1 AND log.body = $3
        """,
        row.commit.state.id,
        row.commit.version + 1,
        row.body,
    )
    return None if found is None else int(found)


def _append(made: Statement, row: Row, facts: str) -> None:
    """Write the log entry and what goes with it, at `place`."""
    made.add(
        "logged",
        f"""
        INSERT INTO log (run, version, root, first_seq, last_seq, first_message, messages, body)
        SELECT key, version, root, seq - {facts} + 1, seq, {made.value(first_message(row.commit), "integer")},
               {made.value(len(row.commit.messages), "integer")}, {made.value(row.body, "bytea")}
        FROM place
        """,
    )
    if row.requests:
        _change_requests(made, row)
    if row.spilled is not None:
        parts.spill(made, *row.spilled)
    if row.payload is not None:
        parts.keep_payload(made, row.payload)
    if row.said:
        conversations.add(made, row.said, row.commit.at)
    if row.artifacts:
        artifacts.add(made, row.commit.state.tenant, row.artifacts)
    if row.notices:
        notices.add(made, row.notices)


def _change_requests(made: Statement, row: Row) -> None:
    """Open, close and hold requests; one that is opened and closed by the same commit is written once."""
    opened: dict[str, records.RequestChange] = {}
    closed: dict[str, records.RequestChange] = {}
    held: dict[str, records.RequestChange] = {}
    for one in row.requests:
        if one.status == "held":
            held[one.request_id] = one
        elif one.status == "open":
            opened[one.request_id] = one
            closed.pop(one.request_id, None)
        else:
            closed[one.request_id] = one
    at = made.value(row.commit.at, "double precision")
    if opened:
        _open(made, opened, closed, at)
    rest = [name for name in {**closed, **held} if name not in opened]
    if rest:
        _change(made, [(name, closed.get(name), held.get(name)) for name in rest], at)


def _open(
    made: Statement,
    opened: dict[str, records.RequestChange],
    closed: dict[str, records.RequestChange],
    at: str,
) -> None:
    ends = [closed.get(one) for one in opened]
    columns = [
        made.value(list(opened), "text[]"),
        made.value([_data(one) for one in opened.values()], "text[]"),
        made.value(["open" if one is None else one.status for one in ends], "text[]"),
        made.value([None if one is None else _data(one) for one in ends], "text[]"),
    ]
    made.add(
        "opened",
        f"""
        INSERT INTO request (id, run, status, created_at, body, resolved_at, resolution)
        SELECT new.id, place.key, new.status, {at}, new.body,
               CASE WHEN new.status <> 'open' THEN {at} END, new.resolution
        FROM place, unnest({", ".join(columns)}) WITH ORDINALITY
          AS new (id, body, status, resolution, number)
        ORDER BY new.number
        ON CONFLICT (id) DO UPDATE SET status = excluded.status, created_at = excluded.created_at,
          body = excluded.body, resolved_at = excluded.resolved_at, resolution = excluded.resolution,
          holder = '', held_at = NULL
        """,
    )


def _change(
    made: Statement,
    changes: Sequence[tuple[str, records.RequestChange | None, records.RequestChange | None]],
    at: str,
) -> None:
    """Write how requests end and who takes care of them; in one part, as no statement may change a row twice.

    Args:
        made: The statement.
        changes: Ids, each with how the request ends and who takes care of it from now on, if that is said.
        at: When.
    """
    columns = [
        made.value([name for name, _, _ in changes], "text[]"),
        made.value([end and end.status for _, end, _ in changes], "text[]"),
        made.value([end and _data(end) for _, end, _ in changes], "text[]"),
        made.value([None if held is None else held.holder for *_, held in changes], "text[]"),
    ]
    made.add(
        "changed",
        f"""
        UPDATE request SET status = coalesce(new.status, request.status),
          resolved_at = CASE WHEN new.status IS NULL THEN request.resolved_at ELSE {at} END,
          resolution = coalesce(new.resolution, request.resolution),
          holder = coalesce(new.holder, request.holder),
          held_at = CASE WHEN new.holder IS NULL THEN request.held_at WHEN new.holder <> '' THEN {at} END
        FROM place, unnest({", ".join(columns)}) AS new (id, status, resolution, holder)
        WHERE request.id = new.id
        """,
    )


def _data(change: records.RequestChange) -> str:
    return to_json(change.data).decode()


# ---------------------------------------------------------------------- new runs


async def create(db: Db, row: Row, spec: int, again: bool) -> int:
    """Add a run; returns the `seq` of its first fact."""
    try:
        if row.commit.state.conversation or row.commit.artifacts:
            async with db.transaction():
                talk = await conversations.enter(db, row.commit)
                seq = await _insert(db, row, spec, talk)
                for one in row.commit.artifacts:
                    await put_artifact(db, row.commit.state.id, one)
                return seq
        return await _insert(db, row, spec, None)
    except UniqueViolationError as error:
        seen = await _written(db, row) if again else None
        if seen is None:
            raise records.exists(row.commit.state.id) from error
        return seen


async def _insert(db: Db, row: Row, spec: int, talk: int | None) -> int:
    made, state = Statement(), row.commit.state
    facts = made.value(len(row.commit.facts), "integer")
    before = sum(len(one.facts) for one in row.commit.history)
    all_facts = made.value(len(row.commit.facts) + before, "integer")
    root_id = records.root_of(state)
    child = root_id != state.id
    if child:
        top = made.value(root_id)
        made.add(
            "top", f"UPDATE run SET seq = seq + {all_facts} WHERE id = {top} RETURNING key, seq"
        )
    columns = _columns(made, row, spec, talk) | {"seq": all_facts}
    source = "FROM top" if child else ""
    made.add(
        "added",
        f"INSERT INTO run ({', '.join(columns)}) SELECT {', '.join(columns.values())} {source}"
        " RETURNING key, seq, version, conversation",
    )
    made.add(
        "place",
        "SELECT added.key, top.key AS root, added.version, top.seq, added.conversation FROM added, top"
        if child
        else "SELECT key, key AS root, version, seq, conversation FROM added",
    )
    if row.history:
        _take_over(made, row)
    _append(made, row, facts)
    found = await db.fetchval(
        made.text(f"SELECT seq - {facts} + 1 FROM place"),
        *made.values,
    )
    if found is None:
        raise records.gone(root_id)
    return int(found)


def _columns(made: Statement, row: Row, spec: int, talk: int | None) -> dict[str, str]:
    """The columns of a new run and their values, but for `seq`; a child's root comes from the part `top`."""
    state = row.commit.state
    root_id = records.root_of(state)
    child = root_id != state.id
    parent = made.value(state.parent_id or root_id)
    return {
        "id": made.value(state.id),
        "root": "top.key" if child else "NULL::bigint",
        "parent": f"(SELECT key FROM run WHERE id = {parent})"
        if child
        else f"nullif({parent}, {parent})::bigint",
        "spec": made.value(spec, "bigint"),
        "agent": made.value(state.spec.name),
        "status": made.value(state.status),
        "due": made.value(records.due(state), "double precision"),
        "version": made.value(row.commit.version + 1, "integer"),
        "shown": made.value(records.shown(state)),
        "turn": made.value(state.turn, "integer"),
        "created_at": made.value(row.commit.at, "double precision"),
        "updated_at": made.value(row.commit.at, "double precision"),
        "conversation": made.value(talk, "bigint"),
        "tenant": made.value(state.tenant),
        "title": made.value(records.title(row.commit).replace("\0", "\ufffd")),
        "metadata": made.value(row.metadata),
        "state": made.value(row.state, "bytea"),
    }


def _take_over(made: Statement, row: Row) -> None:
    """Begin the log with that of another run."""
    seqs, messages, bodies = (list(one) for one in zip(*row.history, strict=True))
    history = row.commit.history
    columns = [
        made.value(seqs, "bigint[]"),
        made.value([len(one.facts) for one in history], "integer[]"),
        made.value(messages, "integer[]"),
        made.value([len(one.messages) for one in history], "integer[]"),
        made.value(bodies, "bytea[]"),
    ]
    made.add(
        "inherited",
        f"""
        INSERT INTO log (run, version, root, first_seq, last_seq, first_message, messages, body)
        SELECT place.key, old.number, place.root, old.seq, old.seq + old.facts - 1, old.message, old.messages, old.body
        FROM place, unnest({", ".join(columns)}) WITH ORDINALITY
          AS old (seq, facts, message, messages, body, number)
        """,
    )


async def spec_key(db: Db, digest: str, body: str) -> int:
    """Key of a pinned definition; equal ones are stored once."""
    await db.execute(
        "INSERT INTO spec (hash, body) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING", digest, body
    )
    return int(await db.fetchval("SELECT key FROM spec WHERE hash = $1", digest))


# ---------------------------------------------------------------------- artifacts and answers


async def put_artifact(db: Db, run_id: str, artifact: StoredArtifact) -> None:
    """Link a text to a run; its content is stored once."""
    # Written again, so that it stays locked: whoever deletes the last link to it meanwhile has to wait.
    await db.execute(
        "INSERT INTO content (hash, body) VALUES ($1, $2)"
        " ON CONFLICT (hash) DO UPDATE SET hash = excluded.hash",
        artifact.artifact_id,
        artifact.content,
    )
    linked = await db.fetchval(
        """
        WITH whose AS (SELECT key FROM run WHERE id = $1), linked AS (
          INSERT INTO artifact (run, hash, media_type) SELECT key, $2, $3 FROM whose
          ON CONFLICT DO NOTHING)
        SELECT count(*) FROM whose
        """,
        run_id,
        artifact.artifact_id,
        artifact.media_type,
    )
    if not linked:
        raise records.gone(run_id)


async def remember(db: Db, key: str, answer: RememberedAnswer, at: float, oldest: float) -> None:
    """Keep an answer unless one is kept; forget some that are older than `oldest`."""
    await db.execute(
        """
        DELETE FROM answer WHERE at < $1 AND (name = $2 OR name IN (
          SELECT name FROM answer WHERE at < $1 ORDER BY at LIMIT 20 FOR UPDATE SKIP LOCKED))
        """,
        oldest,
        key,
    )
    await db.execute(
        """
        INSERT INTO answer (name, at, fingerprint, status, headers, body)
        VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING
        """,
        key,
        at,
        answer.fingerprint,
        answer.status,
        to_json(answer.headers).decode(),
        answer.body,
    )
