"""Feed: one watch on the cluster in memory, which tells of nothing before it is asked to."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from hedgerow.kube.watch import Changed, Snapshot
from hedgerow.runtime.cache.store import key_of
from hedgerow_testing.memory.cluster import has_fields, selects

if TYPE_CHECKING:
    from hedgerow.contract import Key
    from hedgerow.runtime.cache.caches import Source
    from hedgerow_testing.memory.server import Server

Object = dict[str, Any]


class Feed:
    """One watch: it tells of the server's events in order, as late as `step` is called."""

    def __init__(self, server: Server, source: Source) -> None:
        self._server, self._source = server, source
        self._position = 0
        self._shown: dict[Key, Object] = {}

    def relist(self) -> Snapshot:
        """Return a list of all objects, and go on from its version."""
        api = self._source.api
        listing = self._server.list(api.group, api.kind, self._source.namespace)
        items = [item for item in listing.items if self._selects(item)]
        self._shown = {key_of(item): item for item in items}
        self._position = int(listing.version)
        return Snapshot(tuple(map(self._source.reduce, items)), listing.version)

    def step(self) -> Changed | None:
        """Return the next event that the selector lets through, if there is one."""
        for event in self._server.events_since(self._position, self._source.api):
            self._position = int(event.version)
            change = self._through(event)
            if change is not None:
                return change
        return None

    def _selects(self, item: Object) -> bool:
        """Return whether the watch shows an object: by its labels, or as it was picked."""
        source = self._source
        is_selected = selects(source.labels, item) and has_fields(source.fields, item)
        return is_selected and (source.picks is None or source.picks(item))

    def _through(self, event: Changed) -> Changed | None:
        key, before = key_of(event.object), self._shown.get(key_of(event.object))
        if self._source.namespace not in ("", key[0]):
            return None
        if event.type != "DELETED" and self._selects(event.object):
            self._shown[key] = event.object
            kind = "MODIFIED" if before else "ADDED"
            return Changed(kind, self._source.reduce(event.object), event.version)
        if before is None:
            return None
        # An object that the selector selects no more is deleted: its last form, at the new version.
        last = copy.deepcopy(self._shown.pop(key))
        last["metadata"]["resourceVersion"] = event.version
        return Changed("DELETED", self._source.reduce(last), event.version)
