"""Shards look: the Leases of an installation that shares the work, read once or kept up to date."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import anyio

from hedgerow.cli.shards.report import ShardsReport, is_shared, reported
from hedgerow.kube.watch import Bookmark, Snapshot, reflect
from hedgerow.objects import metadata
from hedgerow.runtime.leaderelection.record import LEASES
from hedgerow.shards.members import LABEL

if TYPE_CHECKING:
    from datetime import datetime

    from hedgerow.kube.cluster import Cluster
    from hedgerow.kube.errors import KubeError
    from hedgerow.objects import Installation
    from hedgerow_schemas.base import Object


class WatchedShards:
    """The Leases by which the replicas of an installation share the work."""

    def __init__(self, cluster: Cluster, installation: Installation, namespace: str) -> None:
        self._cluster, self._base, self._namespace = cluster, installation.base, namespace
        self._labels = f"{LABEL}={installation.base}"
        self._leases: dict[str, Object] = {}
        self._problem = ""
        self._news = anyio.Event()

    @property
    def is_shared(self) -> bool:
        """Whether any replica has said that it shares the work."""
        return is_shared(self._leases.values(), self._base)

    @property
    def problem(self) -> str:
        """Why what was read may be out of date; empty if it is not."""
        return self._problem

    def report(self, now: datetime) -> ShardsReport:
        """Return who serves what."""
        return reported(self._leases.values(), self._base, now)

    async def read(self) -> None:
        """Read the Leases once. Raises KubeError."""
        found = await self._cluster.list(
            LEASES, self._namespace, labels=self._labels, reduce=reduced
        )
        self._leases = {metadata(lease)["name"]: lease for lease in found.items}

    async def follow(self) -> None:
        """Keep what was read up to date until cancelled."""

        def note(error: KubeError) -> None:
            self._problem = str(error)
            self._news.set()

        events = reflect(
            self._cluster,
            LEASES,
            self._namespace,
            labels=self._labels,
            reduce=reduced,
            on_problem=note,
        )
        async with aclosing(events) as heard:
            async for event in heard:
                self._problem = ""
                match event:
                    case Snapshot(items=items):
                        self._leases = {metadata(lease)["name"]: lease for lease in items}
                    case Bookmark():
                        pass
                    case _ if event.type == "DELETED":
                        self._leases.pop(metadata(event.object)["name"], None)
                    case _:
                        self._leases[metadata(event.object)["name"]] = event.object
                self._news.set()

    async def changed(self) -> None:
        """Wait until something has changed since the last call."""
        await self._news.wait()
        self._news = anyio.Event()


def reduced(lease: Object) -> Object:
    """Return what is needed of a Lease."""
    meta = metadata(lease)
    kept = ("name", "namespace", "annotations", "labels")
    return {
        "metadata": {name: meta[name] for name in kept if name in meta},
        "spec": lease.get("spec"),
    }
