"""Divisions: whether operators of one installation work that divide the namespaces otherwise; pure.

Each operator takes its own Lease first, and looks at those of the others afterwards, consistently.
So of two divisions that begin at once, at least one sees the other. None that may hold its Lease is
passed over: it was released, or nobody renewed it for its duration by our own clock. An operator
that has begun looks no more: whoever comes later sees its Lease.

Leases are told by their names alone, in the operator's own namespace. Who writes there could as
well write the Lease by which the operator itself is elected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hedgerow.process.leaderelection.record import Election, Timing, seen
from hedgerow.shard import shard_of
from hedgerow_schemas.base import View, instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from hedgerow.process.leaderelection.record import Seen
    from hedgerow.shard import Shard
    from hedgerow_schemas.base import Object

NOBODY: Final = ""
"""Our identity in the election of others: we never stand for it."""


def by_name(leases: Iterable[Object]) -> dict[str, Seen]:
    """Return the Leases by name, as they were read."""
    return {View(lease).name: read for lease in leases if (read := seen(lease))}


def at_work(
    leases: Mapping[str, Seen], wall: datetime, server_time: datetime | None = None
) -> tuple[str, Seen] | None:
    """Return a Lease whose holder seems to work, with its name.

    It goes by the API server's clock, by which the Lease was written too. Where that is not known,
    it goes by the holder's clock and our `wall` clock.
    """
    for name, lease in sorted(leases.items()):
        seconds = lease.seconds or Timing().seconds
        renewed = instant(lease.renewed)
        if server_time and (written := instant(lease.written)):
            wall, renewed = server_time, written
        if lease.holder and renewed and (wall - renewed).total_seconds() < seconds:
            return name, lease
    return None


class Divisions:
    """The Leases of other divisions, as one operator has seen them.

    `base` is the name of its installation, `shard` its part; None if it serves all namespaces. All
    instants are `Clock.elapsed`.
    """

    def __init__(self, base: str, shard: Shard | None, timing: Timing) -> None:
        self._base, self._shard, self._timing = base, shard, timing
        self._others: dict[str, Election] = {}

    def take_in(self, leases: Mapping[str, Seen], now: float) -> None:
        """Take in a consistent list of all Leases, when it arrives."""
        for name in filter(self._is_other, leases):
            self._others.setdefault(name, Election(NOBODY, self._timing))
        for name, election in self._others.items():
            election.take_in(leases.get(name), now)

    def held(self, now: float) -> dict[str, str]:
        """Return the holders of the Leases that may be held, by the name of each."""
        return {
            name: election.seen.holder if election.seen else ""
            for name, election in sorted(self._others.items())
            if election.free_in(now) > 0
        }

    def free_in(self, now: float) -> float:
        """Return the seconds until one of them is free, if nobody renews it; 0 if all are."""
        left = (election.free_in(now) for election in self._others.values())
        return min((seconds for seconds in left if seconds > 0), default=0.0)

    def _is_other(self, lease: str) -> bool:
        """Return whether a Lease is of this installation, but of another division."""
        shard = shard_of(self._base, lease)
        if shard is None:
            return lease == self._base and self._shard is not None
        return self._shard is None or shard.count != self._shard.count
