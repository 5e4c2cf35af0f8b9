"""Shards look: the Leases of an installation that shares the work, read once or kept up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.cli.shards.report import ShardsReport, is_shared, reported
from hedgerow.objects import metadata
from hedgerow.runtime.leaderelection.record import LEASES
from hedgerow.shards.members import LABEL

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from hedgerow.cli.mirror import Mirror
    from hedgerow.objects import Installation
    from hedgerow_schemas.base import Object


class WatchedShards:
    """The Leases by which the replicas of an installation share the work, in a mirror."""

    def __init__(self, mirror: Mirror, installation: Installation, namespace: str) -> None:
        self._mirror, self._base, self._namespace = mirror, installation.base, namespace
        self._labels = f"{LABEL}={installation.base}"
        self.changed = mirror.changed

    @property
    def is_shared(self) -> bool:
        """Whether any replica has said that it shares the work."""
        return is_shared(self._leases(), self._base)

    @property
    def problem(self) -> str:
        """Why what was read may be out of date; empty if it is not."""
        return str(self._mirror.problems.get(LEASES, ""))

    def report(self, now: datetime) -> ShardsReport:
        """Return who serves what."""
        return reported(self._leases(), self._base, now)

    async def read(self) -> None:
        """Read the Leases once. Raises KubeError."""
        await self._mirror.read(LEASES, self._namespace, reduced, labels=self._labels)

    async def follow(self) -> None:
        """Keep what was read up to date until cancelled."""
        await self._mirror.follow(LEASES, self._namespace, reduced, labels=self._labels)

    def _leases(self) -> Collection[Object]:
        return self._mirror.objects.get(LEASES, {}).values()


def reduced(lease: Object) -> Object:
    """Return what is needed of a Lease."""
    meta = metadata(lease)
    kept = ("name", "namespace", "annotations", "labels")
    return {
        "metadata": {name: meta[name] for name in kept if name in meta},
        "spec": lease.get("spec"),
    }
