"""Oversized: objects that cannot be cached whole, which part is kept, and what is reported."""

from __future__ import annotations

from collections import defaultdict
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from msgspec import Struct

from hedgerow.encoding import DEEPEST
from hedgerow.fields.applyconfiguration import extract
from hedgerow.fields.paths import is_map
from hedgerow.objects import Installation, controller_of, metadata
from hedgerow.plan.conditions import Problem
from hedgerow.plan.installations import instance_of, program_of
from hedgerow.texts import command_line, within

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hedgerow.objects import ObjectRef
    from hedgerow_schemas.base import Object

TOO_LARGE: Final = "TooLarge"
UNREADABLE: Final = "Undecodable"
MARK: Final = "hedgerowExcess"
"""A top-level field that no object of the API has; it marks a reduced object in the cache."""
_KEPT: Final = (
    "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp",
)  # fmt: skip
_STATUS: Final = "status"
_MOST_REPORTS: Final = 8
_MIB: Final = 1024 * 1024


class Family(NamedTuple):
    """A resource with its children and related objects: controller name and resource key."""

    controller: str
    namespace: str
    name: str


class Oversize(Struct, frozen=True):
    """Why only a part of an object is cached; `weight` and `most` are bytes of memory.

    `of` says what exceeds `most`: this one object, or the sum of all cached objects. Or the object
    is undecodable: parts of it were lost when it was read, so no write may be based on the rest.
    """

    weight: int
    most: int
    of: Literal["object", "sum", "undecodable"]


def reduced(obj: Object, oversize: Oversize, manager: str) -> Object:
    """Return the part of an object that is cached: its identity, its owner, and our status.

    `manager` is our field manager.
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
    return {
        **{name: obj[name] for name in ("apiVersion", "kind") if name in obj},
        "metadata": kept,
        **({_STATUS: said} if is_map(said) else {}),
        MARK: {"weight": oversize.weight, "most": oversize.most, "of": oversize.of},
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


def oversize_of(obj: Mapping[str, Any]) -> Oversize | None:
    """Return why only a part of an object is cached; None for a whole object."""
    mark = obj.get(MARK)
    return Oversize(**mark) if mark else None


def problem(ref: ObjectRef, oversize: Oversize) -> Problem:
    """Return the problem to report for an object of which only a part is cached."""
    if oversize.of == "undecodable":
        return Problem(
            UNREADABLE, f"{ref} {why_unreadable(ref)}. Until then hedgerow writes nothing for it"
        )
    most = readable(oversize.most)
    if oversize.of == "object":
        said = (
            f"{ref} is too large: it takes about {readable(oversize.weight)} of memory, and {most}"
            " is the most for one object. Make it smaller, with fewer items above all, or raise"
            " the operator's memory limit"
        )
    else:
        said = (
            f"{ref} is left out: it takes about {readable(oversize.weight)} of memory, and there is"
            f" room for {most} altogether, of which this namespace takes the most. Make it and"
            " others there smaller or fewer, or raise the operator's memory limit; hedgerow"
            " caches it again once there is room"
        )
    return Problem(TOO_LARGE, f"{said}. Until then hedgerow writes nothing for it")


def why_unreadable(ref: ObjectRef) -> str:
    """Return why an object cannot be read, and the command that mends it."""
    kind = ".".join(filter(None, (ref.api.plural, ref.api.group)))
    words = (kind, ref.name, *within(ref.namespace), "--type=merge", "-p", _NO_MANAGED_FIELDS)
    return (
        "cannot be read: its JSON has bytes that are no UTF-8, a number of thousands of digits, or"
        f" more than {DEEPEST} levels, most likely in metadata.managedFields. Reset these:"
        f" `{command_line('kubectl', 'patch', *words)}`"
    )


_NO_MANAGED_FIELDS: Final = '{"metadata":{"managedFields":[{}]}}'


def readable(size: int) -> str:
    """Return a number of bytes as text in MiB."""
    return f"{size / _MIB:.1f} MiB"


def surplus(weights: Mapping[Family, int], gain: Mapping[Family, int], need: int) -> list[Family]:
    """Return the families to reduce, so that at least `need` bytes are freed if possible.

    `weights` are the bytes that each family takes, `gain` the bytes that reducing it would free.
    It repeatedly picks the heaviest family of the namespace that takes the most, so that small
    namespaces do not suffer from large ones.
    """
    lightest_first: defaultdict[str, list[Family]] = defaultdict(list)
    sums: defaultdict[str, int] = defaultdict(int)
    for family in sorted(weights, key=lambda one: (weights[one], one)):
        sums[family.namespace] += weights[family]
        if gain[family] > 0:
            lightest_first[family.namespace].append(family)
    heap = [(-sums[namespace], namespace) for namespace in lightest_first]
    heapify(heap)
    found: list[Family] = []
    while heap and need > 0:
        taken, namespace = heappop(heap)
        family = lightest_first[namespace].pop()
        found.append(family)
        need -= gain[family]
        if lightest_first[namespace]:
            heappush(heap, (taken + gain[family], namespace))
    return found
