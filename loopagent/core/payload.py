"""Changes to the payload: one walk over the request makes the new payload and the RFC 6902 patch that leads to it.

Nothing that came in is changed; untouched parts are shared between the old and the new payload.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from loopagent.core.hashing import canonical_json
from loopagent.core.paths import Operation, Path, Rules, pointer, show_path
from loopagent.core.problems import Problem


DELETE = "__DELETE__"
BUCKETS = ("replaceElements", "removeElements", "newElements", "updateElements")
MAX_DEPTH = 100
Json = dict[str, Any]


class _Unset:
    """Stands for "not there", where null is a value."""


_UNSET = _Unset()


@dataclass(slots=True)
class PayloadChange:
    """What a change request makes of a payload.

    `patch` are RFC 6902 operations against the old payload. `refused` are writes the agent may not make; they are
    left out and the rest is done. With `problems` the request cannot be applied at all.
    """

    payload: Any
    patch: list[Json] = field(default_factory=list[Json])
    warnings: list[str] = field(default_factory=list[str])
    refused: list[str] = field(default_factory=list[str])
    problems: list[Problem] = field(default_factory=list[Problem])


def apply_change(payload: Any, request: Json, *, write: Rules, max_bytes: int) -> PayloadChange:
    """Apply a change request.

    For every key the first that applies counts: replace, remove, add (when absent), update. Arrays count by
    position against the old array: `{}` leaves an item, `"__DELETE__"` takes it away after all other changes,
    positions past the end append; `newElements` arrays append.

    Args:
        payload: The payload as it is.
        request: An `AgentPayloadChangeRequest` as camelCase JSON; keys it does not know are taken as changes.
        write: What may be written.
        max_bytes: Size the payload may have as JSON afterwards.
    """
    change = PayloadChange(payload)
    buckets = _buckets(payload, request, change)
    if not any(buckets.values()):
        return change
    base = payload if isinstance(payload, dict) else {}
    if payload is not base and payload is not None:
        change.warnings.append("the payload was not an object and is replaced by one")
    try:
        change.payload = _Walk(change, write).merge(cast("Json", base), buckets, ())
    except RecursionError:
        change.problems.append(
            Problem("payloadChangeRequest", f"nested deeper than {MAX_DEPTH} levels")
        )
        return PayloadChange(payload, problems=change.problems)
    if payload is not base:
        change.patch = [{"op": "replace", "path": "", "value": change.payload}]
    size = len(canonical_json(change.payload).encode("utf-8", "replace")) if change.patch else 0
    if size > max_bytes:
        wrong = Problem(
            "payloadChangeRequest",
            f"the payload may have {max_bytes} bytes; keep large data out",
            str(size),
        )
        return PayloadChange(payload, problems=[wrong])
    return change


def _buckets(payload: Any, request: Json, change: PayloadChange) -> dict[str, Json]:
    buckets: dict[str, Json] = {name: dict(request.get(name) or {}) for name in BUCKETS}
    for key, value in request.items():
        if key in BUCKETS or key == "reasoning":
            continue
        exists = isinstance(payload, dict) and key in payload
        name = "updateElements" if exists else "newElements"
        buckets[name].setdefault(key, value)
        change.warnings.append(f"{key}: stands beside the parts of the request; taken as {name}")
    return buckets


class _Walk:
    """One application: collects patch, warnings and refusals on its way through the request."""

    def __init__(self, change: PayloadChange, write: Rules) -> None:
        self._change = change
        self._write = write

    def merge(self, old: Json, buckets: dict[str, Json], path: Path) -> Json:
        """The new object for an old one."""
        if len(path) > MAX_DEPTH:
            raise RecursionError
        new = dict(old)
        for key in dict.fromkeys(key for bucket in buckets.values() for key in bucket):
            parts = {name: bucket.get(key, _UNSET) for name, bucket in buckets.items()}
            value = self._value(old.get(key, _UNSET), parts, (*path, key))
            if isinstance(value, _Unset):
                new.pop(key, None)
            else:
                new[key] = value
        return new

    def _value(self, old: Any, parts: dict[str, Any], path: Path) -> Any:
        """What becomes of one key or item."""
        replace, remove, add, update = (parts.get(name, _UNSET) for name in BUCKETS)
        if not isinstance(replace, _Unset):
            if _is_partial(old, replace):
                return self._items(old, replace, path, "replaceElements")
            return self._put(old, replace, path)
        if DELETE in (remove, update):
            return self._delete(old, path)
        for name, wanted in (
            ("removeElements", remove),
            ("newElements", add),
            ("updateElements", update),
        ):
            if not isinstance(wanted, _Unset):
                old = self._apply(old, wanted, path, name)
        return old

    def _apply(self, old: Any, wanted: Any, path: Path, name: str) -> Any:
        if name == "removeElements" and not isinstance(wanted, dict | list):
            self._change.warnings.append(
                f'{show_path(path)}: mark what goes with "{DELETE}"; nothing was removed'
            )
            return old
        if isinstance(old, _Unset):
            return self._absent(wanted, path, name)
        if isinstance(old, dict) and isinstance(wanted, dict):
            return self._object(cast("Json", old), cast("Json", wanted), path, name)
        if isinstance(old, list) and isinstance(wanted, list):
            if name == "newElements":
                return self._append(cast("list[Any]", old), cast("list[Any]", wanted), path)
            return self._items(cast("list[Any]", old), cast("list[Any]", wanted), path, name)
        if name == "newElements":
            self._change.warnings.append(f"{show_path(path)}: exists already; taken as an update")
        return old if name == "removeElements" else self._put(old, wanted, path)

    def _absent(self, wanted: Any, path: Path, name: str) -> Any:
        if name == "removeElements":
            self._change.warnings.append(f"{show_path(path)}: is not there; nothing to remove")
            return _UNSET
        if name == "updateElements":
            self._change.warnings.append(f"{show_path(path)}: was not there; added")
        return self._put(_UNSET, _without_marks(wanted), path)

    def _object(self, old: Json, wanted: Json, path: Path, name: str) -> Json:
        """Merge an object of one bucket into an old object."""
        return self.merge(old, {one: wanted if one == name else {} for one in BUCKETS}, path)

    def _append(self, old: list[Any], added: list[Any], path: Path) -> list[Any]:
        kept = [one for one in added if self._allowed((*path, len(old)), "add")]
        for one in kept:
            self._op("add", (*path, "-"), one)
        return [*old, *kept]

    def _items(self, old: list[Any], wanted: list[Any], path: Path, name: str) -> list[Any]:
        """Merge by position; deletions last, from the end, so that positions always mean the old array."""
        new = list(old)
        gone: list[int] = []
        for index, one in enumerate(wanted):
            here = (*path, index)
            if index >= len(old):
                if one not in ({}, DELETE) and self._allowed(here, "add"):
                    self._op("add", (*path, "-"), one)
                    new.append(one)
            elif one == DELETE:
                gone.append(index)
            elif one != {}:
                new[index] = self._item(old[index], one, here, name)
        for index in reversed(gone):
            if self._allowed((*path, index), "delete"):
                self._op("remove", (*path, index))
                del new[index]
        return new

    def _item(self, old: Any, wanted: Any, path: Path, name: str) -> Any:
        if name == "removeElements":
            return self._apply(old, wanted, path, name)
        if isinstance(old, dict) and isinstance(wanted, dict):
            return self._object(cast("Json", old), cast("Json", wanted), path, name)
        return self._put(old, wanted, path)

    def _put(self, old: Any, value: Any, path: Path) -> Any:
        """Set a value; a value that is the same already is no change."""
        absent = isinstance(old, _Unset)
        if not absent and _same(old, value):
            return old
        operation: Operation = "add" if absent else "update"
        if not self._allowed(path, operation):
            return self._allowed_parts(old, value, path) if isinstance(value, dict) else old
        self._op("add" if absent else "replace", path, value)
        return value

    def _allowed_parts(self, old: Any, value: Json, path: Path) -> Any:
        """A refused object whose parts may be written: permission for a part does not need that for the whole."""
        below = [key for key in value if self._write.allows((*path, key), "add")]
        if not below or not isinstance(old, _Unset):
            return old
        self._change.refused.pop()
        made = {key: value[key] for key in below}
        refused = [key for key in value if key not in made]
        self._change.refused += [f"{show_path((*path, key))} (add)" for key in refused]
        self._op("add", path, made)
        return made

    def _delete(self, old: Any, path: Path) -> Any:
        if isinstance(old, _Unset):
            self._change.warnings.append(f"{show_path(path)}: is not there; nothing to remove")
            return old
        if not self._allowed(path, "delete"):
            return old
        self._op("remove", path)
        return _UNSET

    def _allowed(self, path: Path, operation: Operation) -> bool:
        if self._write.allows(path, operation):
            return True
        self._change.refused.append(f"{show_path(path)} ({operation})")
        return False

    def _op(self, op: str, path: Path, *value: Any) -> None:
        entry: Json = {"op": op, "path": pointer(path)}
        if value:
            entry["value"] = value[0]
        self._change.patch.append(entry)


def _same(old: Any, new: Any) -> bool:
    """Equality as JSON has it: true is not 1."""
    return old == new and canonical_json(old) == canonical_json(new)


def _is_partial(old: Any, wanted: Any) -> bool:
    """A replacement inside an array: `{}` places leave items, so it cannot mean the whole array."""
    return isinstance(old, list) and isinstance(wanted, list) and {} in wanted


def _without_marks(value: Any) -> Any:
    """A new value cannot hold deletions; marks in it mean nothing."""
    if isinstance(value, dict):
        fields = cast("Json", value)
        return {key: _without_marks(one) for key, one in fields.items() if one != DELETE}
    if isinstance(value, list):
        return [_without_marks(one) for one in cast("list[Any]", value) if one != DELETE]
    return value


def apply_patch(payload: Any, patch: list[Json]) -> Any:
    """Apply RFC 6902 operations `add`, `replace` and `remove`; the payload that came in is not changed.

    Raises:
        KeyError: A path does not exist.
        IndexError: A position does not exist.
    """
    for operation in patch:
        parts = [
            one.replace("~1", "/").replace("~0", "~") for one in operation["path"].split("/")[1:]
        ]
        payload = _patched(payload, parts, operation)
    return payload


def _patched(value: Any, parts: list[str], operation: Json) -> Any:
    if not parts:
        return operation["value"]
    head, rest = parts[0], parts[1:]
    if isinstance(value, list):
        return _patched_list(cast("list[Any]", value), head, rest, operation)
    new = dict(cast("Json", value))
    if rest:
        new[head] = _patched(new[head], rest, operation)
    elif operation["op"] == "remove":
        del new[head]
    else:
        new[head] = operation["value"]
    return new


def _patched_list(value: list[Any], head: str, rest: list[str], operation: Json) -> list[Any]:
    new = list(value)
    index = len(new) if head == "-" else int(head)
    if rest:
        new[index] = _patched(new[index], rest, operation)
    elif operation["op"] == "remove":
        del new[index]
    elif operation["op"] == "add":
        new.insert(index, operation["value"])
    else:
        new[index] = operation["value"]
    return new
