"""Informer: what was added, updated and deleted, each once, across every gap of the watch.

It joins the reflector (`kube.watch.reflect`) and the store of the operator's caches. A new list
after a gap is compared with the store, so that no deletion is lost and none is invented. An object
made anew under the same name, with another uid, is a deletion and an addition.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from hedgerow.kube.retry import RetryClock
from hedgerow.kube.watch import Bookmark, Changed, Snapshot, reflect
from hedgerow.objects import metadata
from hedgerow.runtime.cache.store import ANEW_AFTER, RestoredError, Store
from hedgerow_tools.watch.lines import WatchNotice

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.kube.cluster import Cluster
    from hedgerow.runtime.cache.store import StoreChange
    from hedgerow_schemas.base import ApiResource, Object
    from hedgerow_tools.watch.lines import Printer


async def inform(
    cluster: Cluster,
    api: ApiResource,
    namespace: str,
    *,
    labels: str,
    name: str = "",
    printer: Printer,
    timing: RetryClock | None = None,
) -> None:
    """Have everything printed, until the printer raises an error or this is cancelled.

    `name` is that of the one object, if it is one.
    """
    informer = _Informer(printer)
    while True:
        events = reflect(
            cluster,
            api,
            namespace,
            labels=labels,
            fields=f"metadata.name={name}" if name else "",
            on_problem=printer.failed,
            on_listed=informer.listed,
            timing=timing,
        )
        try:
            async with aclosing(events):
                async for event in events:
                    printer.recovered()
                    informer.take_event(event)
        except RestoredError:
            informer.forget_versions()
            await (timing or RetryClock()).sleep(ANEW_AFTER)


class _Informer:
    def __init__(self, printer: Printer) -> None:
        self._printer = printer
        self._store = Store()
        self._is_synced = False

    def listed(self, kept: Object) -> None:
        """Take in an object of a list that is being read."""
        change = self._store.meet(kept)
        self._tell((change,) if change else (), listed=True)

    def take_event(self, event: Snapshot | Changed | Bookmark) -> None:
        """Take in an event of the reflector. Raises RestoredError."""
        match event:
            case Snapshot(items, version, met):
                for changes in self._store.replacing(items, version, met):
                    self._tell(changes, listed=True)
                self._printer.synced(len(self._store), again=self._is_synced)
                self._is_synced = True
            case Bookmark(version):
                self._store.bookmark(version)
            case Changed(type="DELETED", object=last):
                change = self._store.remove(last)
                self._tell((change,) if change else (), last=last)
            case _:
                change = self._store.put(event.object)
                self._tell((change,) if change else ())

    def forget_versions(self) -> None:
        """Have everything compared with the next list, whatever its version is."""
        known, self._store = self._store.all(), Store()
        for kept in known:
            self._store.put_read(_unversioned(kept))

    def _tell(
        self, changes: Iterable[StoreChange], *, listed: bool = False, last: Object | None = None
    ) -> None:
        for old, new in changes:
            if not self._is_synced or _is_as_before(old, new):
                continue
            if old and new and _uid(old) == _uid(new):
                self._printer.heard(WatchNotice("UPDATED", old, new, listed))
                continue
            if old:
                known = last if last and _uid(last) == _uid(old) else old
                self._printer.heard(WatchNotice("DELETED", known, None, listed))
            if new:
                self._printer.heard(WatchNotice("ADDED", None, new, listed))


def _is_as_before(old: Object | None, new: Object | None) -> bool:
    """Return whether the version, which was forgotten, is all that is new of an object."""
    is_forgotten = old is not None and "resourceVersion" not in metadata(old)
    return is_forgotten and new is not None and old == _unversioned(new)


def _unversioned(kept: Object) -> Object:
    meta = {name: value for name, value in metadata(kept).items() if name != "resourceVersion"}
    return {**kept, "metadata": meta}


def _uid(kept: Object) -> str:
    return metadata(kept).get("uid", "")
