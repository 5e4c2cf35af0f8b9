"""Too large: the limits for a cached object, the stub that is cached instead, and the problem."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from hedgerow.fields.applyconfiguration import extract
from hedgerow.fields.paths import is_map
from hedgerow.objects import Installation, Key, controller_of, metadata
from hedgerow.plan.conditions import Problem
from hedgerow.plan.installations import instance_of, program_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hedgerow.objects import ObjectRef
    from hedgerow_schemas.base import Object

TOO_LARGE: Final = "TooLarge"
MARK: Final = "hedgerowStub"
"""A top-level field that no object of the API has; it marks a stub in the caches."""
_KEPT: Final = (
    "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp",
)  # fmt: skip
_STATUS: Final = "status"
_MOST_REPORTS: Final = 8
_MIB: Final = 1024 * 1024
MOST_BYTES: Final = 2 * _MIB
"""What etcd stores, 1.5 MiB, is about as much JSON: base64 takes a third more, and the names of
fields count there as well. So what has a megabyte of data is let in."""
MOST_VALUES: Final = 5_000
"""A child with so many is judged in 30 to 45 ms, and nothing else is done meanwhile."""
COUNTED: Final = 100_000
"""The most values that are counted, in a few milliseconds."""
_CONTAINERS: Final[frozenset[type]] = frozenset({dict, list})

SizeLimit = Literal["bytes", "values", "sum"]
StubRole = Literal["resource", "child", "other"]


class Excess(Struct, frozen=True):
    """Why an object is not cached: the `number` that it has, where `most` is the limit.

    `of` says what is counted: the bytes of its JSON, the values in it, or the bytes of all cached
    objects, of which it has `number`.
    """

    number: int
    most: int
    of: SizeLimit


def excess(obj: Object, text: bytes) -> Excess | None:
    """Return why an object with this JSON is too large by itself; None if it is not.

    A text has no more values than it has commas and brackets; only if these are too many are the
    values counted.
    """
    if len(text) > MOST_BYTES:
        return Excess(len(text), MOST_BYTES, "bytes")
    if most_values(text) > MOST_VALUES and (number := _values(obj)) > MOST_VALUES:
        return Excess(number, MOST_VALUES, "values")
    return None


def most_values(text: bytes) -> int:
    """Return the most values that a JSON text can have, those in its strings included."""
    return 1 + text.count(b",") + text.count(b"{") + text.count(b"[")


def _values(obj: Object) -> int:
    """Return the number of values of an object; it ends somewhere after `COUNTED`."""
    number, waiting = 1, list[Any]([obj])
    while waiting and number <= COUNTED:
        container = waiting.pop()
        number += len(container)
        if number <= COUNTED:
            values: Iterable[Any] = container.values() if is_map(container) else container
            waiting.extend(value for value in values if type(value) in _CONTAINERS)
    return number


def stub_of(obj: Object, excess: Excess, manager: str, concerns: Iterable[Key] = ()) -> Object:
    """Return the stub of an object: its identity, its owner, and our status.

    `manager` is our field manager: without our status a CronJob's start might be made twice.
    `concerns` are the keys of the resources that the object concerns; the stub lists them, since
    the fields from which they follow are left out.
    """
    meta = metadata(obj)
    kept: Object = {name: meta[name] for name in _KEPT if name in meta}
    labels: Object = meta.get("labels") or {}
    key = Installation(program=program_of(manager)).label_key
    label = labels.get(key)
    kept |= {"labels": {key: label}} if label else {}
    owner = controller_of(obj)
    kept |= {"ownerReferences": [owner]} if owner else {}
    reports = (_report(entry, manager) for entry in meta.get("managedFields") or ())
    kept["managedFields"] = list(islice(filter(None, reports), _MOST_REPORTS))
    said = (extract(obj, manager, _STATUS) or {}).get(_STATUS)
    mark = {"number": excess.number, "most": excess.most, "of": excess.of}
    return {
        **{name: obj[name] for name in ("apiVersion", "kind") if name in obj},
        "metadata": kept,
        **({_STATUS: said} if is_map(said) else {}),
        MARK: {**mark, "concerns": [list(key) for key in concerns]},
    }


def _report(entry: Mapping[str, Any], manager: str) -> Object:
    """Return an operator's entry for the status, else nothing; only ours keeps its `fieldsV1`."""
    if instance_of(str(entry.get("manager")), program_of(manager)) is None:
        return {}
    if entry.get("subresource") != _STATUS or entry.get("operation") != "Apply":
        return {}
    if entry.get("manager") == manager:
        return dict(entry)
    return {name: value for name, value in entry.items() if name != "fieldsV1"}


def excess_of(obj: Mapping[str, Any]) -> Excess | None:
    """Return why an object is a stub; None for a whole object."""
    mark = obj.get(MARK)
    return Excess(mark["number"], mark["most"], mark["of"]) if mark else None


def concerned_by(stub: Mapping[str, Any]) -> tuple[Key, ...]:
    """Return the keys of the resources that a stub's object concerns."""
    return tuple(Key(*key) for key in stub[MARK]["concerns"])


def problem(ref: ObjectRef, excess: Excess, role: StubRole = "resource") -> Problem:
    """Return the problem that a resource reports of a stub: itself, a child, or another object."""
    until = f"Until then hedgerow writes nothing for {'it' if role == 'resource' else 'this one'}"
    if excess.of == "sum":
        said = (
            f"{ref} is left out: it has {readable(excess.number)} of JSON, and all objects together"
            f" may take {readable(excess.most)}, of which this namespace takes the most. Make what"
            " is there smaller or fewer, or raise the operator's memory limit; hedgerow reads it"
            " again within about a minute once there is room"
        )
        return Problem(TOO_LARGE, f"{said}. {until}")
    if excess.of == "bytes":
        has, bound = f"{readable(excess.number)} of JSON", readable(excess.most)
    else:
        count = f"{excess.number:,}" if excess.number <= COUNTED else f"more than {COUNTED:,}"
        has, bound = f"{count} JSON values", f"{excess.most:,}"
    anew = ", or delete it: what is declared of it is made anew" if role == "child" else ""
    said = f"{ref} is too large: it has {has}, and {bound} is the most. Make it smaller{anew}"
    return Problem(TOO_LARGE, f"{said}. {until}")


def readable(size: int) -> str:
    """Return a number of bytes as text in MiB."""
    return f"{size / _MIB:.1f} MiB"
