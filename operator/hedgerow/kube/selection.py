"""Selection: the objects of the namespaces of some slices, of all that a list or a watch sends.

An API server with the feature gate ShardedListAndWatch sends no others. From any other one, what is
not selected is dropped before it is decoded: a decoder of nothing but `metadata.namespace` takes a
small part of the time, and makes no objects. Where it cannot tell, the decoded object does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw, Struct

from hedgerow.encoding import struct_reader
from hedgerow.objects import metadata
from hedgerow.shards.slices import ALL, COUNT, Slices, point_of, selector

if TYPE_CHECKING:
    from hedgerow_schemas.base import Object

PARAMETER: Final = "shardSelector"
HALF: Final = Slices(((0, COUNT // 2),))
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


class Selected(Struct, frozen=True):
    """The slices whose objects are wanted; `by_server`: the API server can select them."""

    slices: Slices = ALL
    by_server: bool = False

    @property
    def params(self) -> dict[str, str]:
        """The parameters of a list or watch by which the server selects."""
        return {PARAMETER: selector(self.slices)} if self.by_server else {}

    def has(self, obj: Object) -> bool:
        """Return whether an object is selected."""
        return point_of(metadata(obj).get("namespace") or "") in self.slices

    def drops(self, line: bytes) -> bool:
        """Return whether a line of a watch is an event of an object that is certainly not wanted.

        Bookmarks and errors are about no object.
        """
        try:
            event = _event(line)
        except ValueError:
            return False
        wanted = point_of(event.object.metadata.namespace) in self.slices
        return not wanted and event.type in CHANGES

    def split(self, content: bytes) -> tuple[Object, list[bytes]] | None:
        """Return a list without its items, and those items that may be selected, as JSON.

        None if it cannot be told without decoding them.
        """
        try:
            found = _list(content)
        except ValueError:
            return None
        return {"metadata": found.metadata}, [
            bytes(item) for item in found.items or () if self._may_have(item)
        ]

    def _may_have(self, item: Raw) -> bool:
        namespace = namespace_of(item)
        return namespace is None or point_of(namespace) in self.slices
