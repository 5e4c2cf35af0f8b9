"""Selection: the namespace and name of an object, read from its JSON without decoding the rest.

By this a shard drops the objects of other shards' namespaces, in a small part of the time that
decoding takes. An object whose namespace cannot be read in this way is decoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw, Struct

from hedgerow.encoding import reader
from hedgerow.kube.watch import Bookmark, Changed, Undecoded
from hedgerow.objects import metadata

if TYPE_CHECKING:
    from hedgerow.kube.watch import WatchEvent
    from hedgerow.shard import Shard
    from hedgerow_schemas.base import Object

CHANGES: Final = frozenset({"ADDED", "MODIFIED", "DELETED"})


class Naming(Struct, rename="camel"):
    """The names of an object in one version; a missing one is empty."""

    namespace: str = ""
    name: Any = ""
    resource_version: Any = ""


class _Item(Struct):
    metadata: Naming


class _Event(Struct):
    type: str
    object: _Item


class _List(Struct):
    metadata: dict[str, Any]
    items: list[Raw] | None = None


_item: Final = reader(_Item)
_event: Final = reader(_Event)
_list: Final = reader(_List)


def named(content: bytes | Raw) -> Naming:
    """Return the names of an object; raises ValueError if they cannot be read."""
    return _item(content).metadata


def change(line: bytes) -> tuple[str, Naming]:
    """Return the type of an event, and the names of its object; raises ValueError."""
    event = _event(line)
    return event.type, event.object.metadata


def split(content: bytes) -> tuple[Object, list[Raw]]:
    """Return the metadata of a list and its items, not decoded; raises ValueError."""
    listing = _list(content)
    return listing.metadata, listing.items or []


def has(shard: Shard, item: Object | WatchEvent) -> bool:
    """Return whether a shard serves the namespace of an object; bookmarks are about none."""
    match item:
        case Bookmark():
            return True
        case Undecoded(key=key):
            return shard.serves(key.namespace)
        case Changed(object=obj) | obj:
            return shard.serves(metadata(obj).get("namespace") or "")


def may_have(shard: Shard, item: Raw) -> bool:
    """Return whether a shard may serve the namespace of an object."""
    try:
        return shard.serves(named(item).namespace)
    except ValueError:
        return True


def drops(shard: Shard, line: bytes) -> bool:
    """Return whether a line of a watch is an event of an object that is certainly another shard's.

    Bookmarks and errors are about no object.
    """
    try:
        kind, naming = change(line)
    except ValueError:
        return False
    return kind in CHANGES and not shard.serves(naming.namespace)
