"""Selection: the objects of one shard's namespaces, of all that a list or a watch sends.

The others are dropped before they are decoded: a decoder of nothing but `metadata.namespace` takes
a small part of the time, and makes no objects. Where it cannot tell, the decoded object does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw, Struct

from hedgerow.encoding import struct_reader
from hedgerow.objects import metadata

if TYPE_CHECKING:
    from hedgerow.shard import Shard
    from hedgerow_schemas.base import Object

CHANGES: Final = frozenset({"ADDED", "MODIFIED", "DELETED"})


class _Place(Struct):
    namespace: str = ""


class _Item(Struct):
    metadata: _Place


class _Event(Struct):
    type: str
    object: _Item


class _List(Struct):
    metadata: dict[str, Any]
    items: list[Raw] | None = None


_item: Final = struct_reader(_Item)
_event: Final = struct_reader(_Event)
_list: Final = struct_reader(_List)


def namespace_of(content: bytes | Raw) -> str | None:
    """Return the namespace of an object as JSON, without decoding the rest; None if unknown."""
    try:
        return _item(content).metadata.namespace
    except ValueError:
        return None


def has(shard: Shard, obj: Object) -> bool:
    """Return whether a shard serves the namespace of an object."""
    return shard.serves(metadata(obj).get("namespace") or "")


def drops(shard: Shard, line: bytes) -> bool:
    """Return whether a line of a watch is an event of an object that is certainly another shard's.

    Bookmarks and errors are about no object.
    """
    try:
        event = _event(line)
    except ValueError:
        return False
    return event.type in CHANGES and not shard.serves(event.object.metadata.namespace)


def split(shard: Shard, content: bytes) -> tuple[Object, list[bytes]] | None:
    """Return a list without its items, and those items that may be a shard's, as JSON.

    None if it cannot be told without decoding them.
    """
    try:
        found = _list(content)
    except ValueError:
        return None
    return {"metadata": found.metadata}, [
        bytes(item) for item in found.items or () if _may_have(shard, item)
    ]


def _may_have(shard: Shard, item: Raw) -> bool:
    namespace = namespace_of(item)
    return namespace is None or shard.serves(namespace)
