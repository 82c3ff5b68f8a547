"""What every store must do with triggers and what is delivered to them; part of the conformance suite."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loopagent.errors import ConflictError, RequestError
from loopagent.testing.store_samples import CREATED_AT, refused, same
from loopagent.trigger_port import Delivery, TriggerRow


if TYPE_CHECKING:
    from loopagent.ports import Store


def _row(name: str = "t", version: int = 0, due: float | None = None, **body: Any) -> TriggerRow:
    return TriggerRow(name, version, due, body)


def _delivery(name: str, **more: Any) -> Delivery:
    made = Delivery(
        id=name,
        trigger="t",
        event_id=f"e-{name}",
        source="webhook",
        at=CREATED_AT,
        updated_at=CREATED_AT,
        status="fired",
        run_id="run-1",
        bytes=12,
    )
    return replace(made, **more)


async def _save(store: Store, *deliveries: Delivery) -> None:
    for name in {one.trigger for one in deliveries}:
        known = await store.trigger(name)
        own = [one for one in deliveries if one.trigger == name]
        await store.save_trigger(_row(name, known.version if known else 0), own)


async def check_no_triggers(store: Store) -> None:
    """A store without triggers finds none."""
    same(await store.trigger("t"), None, "a trigger")
    same(await store.due_triggers(), [], "due triggers")
    same(await store.delivery("d"), None, "a delivery")
    same(await store.delivered("t", event_id="e"), None, "a delivery of an event")
    same(await store.deliveries(), ([], None), "deliveries")
    same(await store.forget_deliveries("t", CREATED_AT), 0, "forgotten deliveries")
    await refused(store.save_trigger(_row(version=3)), ConflictError, "a change of no trigger")


async def check_trigger_kept(store: Store) -> None:
    """A trigger comes back as it was saved, one version later, and only one of two changes counts."""
    await store.save_trigger(_row(due=5.0, held={"a": [1, "“ü 🙂”", None]}))
    kept = _row(version=1, due=5.0, held={"a": [1, "“ü 🙂”", None]})
    same(await store.trigger("t"), kept, "the trigger")
    await refused(store.save_trigger(_row()), ConflictError, "a second first row")
    await store.save_trigger(_row(version=1, due=None))
    late = store.save_trigger(_row(version=1, due=9.0), [_delivery("d")])
    await refused(late, ConflictError, "a change of an older version")
    same(await store.trigger("t"), _row(version=2), "the trigger after a refused change")
    same(await store.delivery("d"), None, "a delivery that was refused with it")


async def check_triggers_due(store: Store) -> None:
    """Triggers that have a time come, earliest first."""
    for name, due in (("late", 9.0), ("never", None), ("early", 1.5)):
        await store.save_trigger(_row(name, due=due))
    same(await store.due_triggers(), [("early", 1.5), ("late", 9.0)], "due triggers")


async def check_one_change_of_a_trigger(store: Store) -> None:
    """Of changes made at the same time from the same version one is kept, with its deliveries."""
    await store.save_trigger(_row())
    rivals = [
        store.save_trigger(_row(version=1, by=name), [_delivery(name)]) for name in ("a", "b", "c")
    ]
    ends = await asyncio.gather(*rivals, return_exceptions=True)
    same(sum(isinstance(one, ConflictError) for one in ends), 2, "refused changes")
    rows, _ = await store.deliveries()
    row = await store.trigger("t")
    same([one.id for one in rows], [row.body["by"] if row else ""], "deliveries")


async def check_delivery_kept(store: Store) -> None:
    """A delivery comes back as it was saved, and again as it was changed."""
    task = {"message": "Ünï 🙂", "payload": {"a": [1.5, None]}}
    one = _delivery("d", status="held", run_id="", task=task, dedupe="h")
    await _save(store, one)
    same(await store.delivery("d"), one, "the delivery")
    done = replace(one, status="fired", task=None, run_id="run-9", updated_at=CREATED_AT + 1)
    await _save(store, done)
    same(await store.delivery("d"), done, "the changed delivery")
    same(await store.deliveries(), ([done], None), "deliveries")


async def check_same_deliveries(store: Store) -> None:
    """The latest accepted delivery of an event, or of its like, is found; others' and refused ones are not."""
    await _save(
        store,
        _delivery("a", event_id="e", dedupe="h", at=CREATED_AT),
        _delivery("b", event_id="e", dedupe="h", at=CREATED_AT + 1, status="duplicate"),
        _delivery("c", event_id="f", dedupe="h", at=CREATED_AT + 2, status="held"),
        _delivery("d", event_id="g", dedupe="i", at=CREATED_AT + 3, status="failed"),
        _delivery("x", event_id="e", dedupe="h", at=CREATED_AT + 4, trigger="other"),
    )
    cases: list[tuple[dict[str, Any], str | None]] = [
        ({"event_id": "e"}, "a"),
        ({"event_id": "g"}, None),
        ({"dedupe": "h"}, "c"),
        ({"dedupe": "h", "since": CREATED_AT + 2}, "c"),
        ({"dedupe": "h", "since": CREATED_AT + 2.5}, None),
        ({"event_id": "e", "dedupe": "h"}, "a"),
    ]
    for wanted, found in cases:
        one = await store.delivered("t", **wanted)
        same(one.id if one else None, found, f"the delivery with {wanted}")


async def check_delivery_pages(store: Store) -> None:
    """Deliveries come newest first, page by page, each once."""
    status = ("fired", "filtered")
    for number in range(5):
        await _save(store, _delivery(f"d{number}", status=status[number % 2]))
    await _save(store, _delivery("x", trigger="other"))
    same(await _pages(store, None, None), ["x", "d4", "d3", "d2", "d1", "d0"], "all")
    same(await _pages(store, "t", None), ["d4", "d3", "d2", "d1", "d0"], "of one trigger")
    same(await _pages(store, "t", "filtered"), ["d3", "d1"], "of one status")
    await refused(store.deliveries(cursor="nonsense"), RequestError, "a cursor of no list")


async def _pages(store: Store, trigger: str | None, status: str | None) -> list[str]:
    found: list[str] = []
    cursor = None
    while True:
        rows, cursor = await store.deliveries(trigger, status=status, cursor=cursor, limit=2)
        found += [one.id for one in rows]
        if cursor is None:
            return found


async def check_deliveries_forgotten(store: Store) -> None:
    """Old deliveries go, those that are open stay."""
    await _save(
        store,
        _delivery("old"),
        _delivery("open", status="waiting"),
        _delivery("new", at=CREATED_AT + 10),
        _delivery("x", trigger="other"),
    )
    same(await store.forget_deliveries("t", CREATED_AT + 5), 1, "forgotten deliveries")
    rows, _ = await store.deliveries()
    same(sorted(one.id for one in rows), ["new", "open", "x"], "deliveries left")
