"""Causes: why a write took a field: its purpose, and its effect on the value."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from hedgerow.encoding import canonical_json as text_of
from hedgerow.fields.canonical import identical, quantity, time
from hedgerow.fields.managed_fields import held
from hedgerow.fields.paths import is_list, is_map
from hedgerow.fields.sets import ABSENT, Values
from hedgerow.objects import metadata
from hedgerow.schedule.durations import nanoseconds
from hedgerow.schedule.errors import ScheduleError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hedgerow.fields.sets import FieldPath
    from hedgerow_schemas.base import Object
    from hedgerow_testing.audit.judging.history import LoggedWrite

_LONGEST: Final = 200


def taker(writes: Sequence[LoggedWrite], field_path: FieldPath, user: str) -> LoggedWrite | None:
    """Return the last write of a user that took a place: its value, or a part in holding it."""
    for write in reversed(writes):
        if write.request.user == user and takes(write, field_path):
            return write
    return None


def takes(write: LoggedWrite, field_path: FieldPath) -> bool:
    """Return whether a write changed the value at a place, or who has a part in holding it."""
    before, after = (_value(obj, field_path) for obj in (write.before, write.after))
    return not _equal(before, after) or bool(
        _holders(write.after, field_path) - _holders(write.before, field_path)
    )


def writers(write: LoggedWrite) -> Iterator[tuple[str, str]]:
    """Yield the managers, each with its operation, whose entries a write added or changed."""
    before = {(h.manager, h.operation, h.time) for h, _ in held(write.before or {}).pairs}
    for holder, _ in held(write.after or {}).pairs:
        if (holder.manager, holder.operation, holder.time) not in before:
            yield holder.manager, holder.operation


def causes(write: LoggedWrite | None, field_path: FieldPath) -> tuple[str, ...]:
    """Return why a write took a place, as names of `rules.CAUSES`; what tells most comes first."""
    if write is None:
        return ("unknown",)
    before, after = (_value(obj, field_path) for obj in (write.before, write.after))
    by = _by(write, is_same=_equal(before, after))
    if write.request.verb == "create":
        return (by,)
    if after is not ABSENT and adds_only(before, after):
        return ("default-written-back", by)
    return ("other-spelling", by) if respelled(before, after) else (by,)


def _by(write: LoggedWrite, *, is_same: bool) -> str:
    request = write.request
    if request.verb == "create":
        return "create"
    if request.verb == "update":
        changed = [name for name in _PURPOSES if _differs(write, name)]
        return _PURPOSES[changed[0]] if changed else "whole-object-update"
    if request.is_apply:
        return "same-value-apply" if is_same else "forced-apply" if request.is_forced else "patch"
    return "patch"


_PURPOSES: Final = {
    "finalizers": "finalizer-by-update",
    "annotations": "annotation-by-update",
    "labels": "annotation-by-update",
}


def _differs(write: LoggedWrite, name: str) -> bool:
    """Return whether an update set finalizers, labels or annotations; all but finalizers may go."""
    before, after = (metadata(obj or {}).get(name) for obj in (write.before, write.after))
    if is_map(after):
        known: Object = before if is_map(before) else {}
        return any(known.get(key) != value for key, value in after.items())
    return name == "finalizers" and not identical(before, after)


def adds_only(before: Any, after: Any) -> bool:
    """Return whether a value has all that it had, and more: what was absent was filled in."""
    if before is ABSENT:
        return after is not ABSENT
    if is_map(before) and is_map(after):
        return (
            not identical(before, after)
            and after.keys() >= before.keys()
            and all(identical(v, after[k]) or adds_only(v, after[k]) for k, v in before.items())
        )
    if is_list(before) and is_list(after) and len(before) == len(after):
        pairs = list(zip(before, after, strict=True))
        return not identical(before, after) and all(
            identical(was, now) or adds_only(was, now) for was, now in pairs
        )
    return False


def respelled(before: Any, after: Any) -> bool:
    """Return whether two values that differ mean the same: `60s` and `1m0s`, `1000m` and `1`."""
    if identical(before, after) or before is ABSENT or after is ABSENT:
        return False
    return _means_same(before, after)


def _means_same(first: Any, second: Any) -> bool:
    if is_map(first) and is_map(second):
        return first.keys() == second.keys() and all(
            _means_same(v, second[k]) for k, v in first.items()
        )
    if is_list(first) and is_list(second):
        if len(first) != len(second):
            return False
        in_order = all(map(_means_same, first, second))
        return in_order or sorted(map(text_of, first)) == sorted(map(text_of, second))
    return identical(first, second) or bool(_meanings(first) & _meanings(second))


def _meanings(value: Any) -> set[object]:
    """Return the meanings that a scalar may have, each in one spelling."""
    if isinstance(value, bool):
        return {("word", str(value).lower())}
    if not isinstance(value, str | int | float) or len(str(value)) > _LONGEST:
        return set()
    text = str(value).strip()
    meanings: set[object] = {("word", text.lower())} if text else set()
    with suppress(ScheduleError):
        meanings.add(("duration", nanoseconds(text)))
    if any(char.isdigit() for char in text[:3]):
        meanings |= {("quantity", str(quantity(text))), ("time", time(text))}
    return meanings


def _value(obj: Object | None, field_path: FieldPath) -> Any:
    return ABSENT if obj is None else Values(obj).at(field_path)


def _equal(first: Any, second: Any) -> bool:
    return first is second if ABSENT in (first, second) else identical(first, second)


def _holders(obj: Object | None, field_path: FieldPath) -> set[tuple[str, str]]:
    pairs = held(obj or {}).at(field_path).pairs
    return {(holder.manager, holder.operation) for holder, _ in pairs}
