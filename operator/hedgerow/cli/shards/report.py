"""Shards report: who serves which slices, and what nobody serves, from the Leases alone; pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from hedgerow.objects import annotation
from hedgerow.runtime.leaderelection.record import seen
from hedgerow.shards import assignment
from hedgerow.shards.members import ASSIGNMENT, sighting
from hedgerow.shards.slices import ALL, NONE, Slices, point_of
from hedgerow.texts import cut
from hedgerow_schemas.base import View

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from hedgerow_schemas.base import Object

LONGEST: Final = 253
"""The most characters of a replica's name, as of any name in Kubernetes."""
_SECONDS: Final = 15
"""How long a Lease lasts that does not say so."""
_MOST_SECONDS: Final = 3600
_MOST_OF_ANYTHING: Final = 1e12

State = Literal["serves", "joins", "fills its caches", "leaves", "silent", "unreadable"]


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica, as its Lease tells; `since` and `renewed` are RFC 3339 times.

    `slices` are those that it serves; it serves nothing any more if it is silent.
    """

    name: str
    state: State
    slices: Slices
    since: str
    renewed: str
    revision: str = ""
    namespaces: int = 0
    resources: int = 0
    passes: float = 0.0
    """How many in a second."""
    lag: float = 0.0
    """By how many seconds its event loop is late."""

    @property
    def is_there(self) -> bool:
        """Whether its Lease is in force."""
        return self.state != "silent"


@dataclass(frozen=True, slots=True)
class Gap:
    """Slices that nobody serves, and who did until when; if nobody is known, since when at most."""

    slices: Slices
    since: str
    former: str


@dataclass(frozen=True, slots=True)
class ShownAssignment:
    """Who shall serve what, since when, and which replica said so."""

    epoch: int
    since: str
    author: str


@dataclass(frozen=True, slots=True)
class ShardsReport:
    """The replicas of one installation; `more` are not listed."""

    replicas: tuple[Replica, ...]
    more: int
    gaps: tuple[Gap, ...]
    assignment: ShownAssignment | None
    leader: str
    namespaces: tuple[str, ...]
    """The namespaces that the installation is limited to; none mean all."""

    def serving(self, namespace: str) -> str:
        """Return the replica that serves a namespace, or what is in none; empty if nobody does."""
        if self.namespaces and namespace not in self.namespaces:
            return ""
        point = point_of(namespace)
        having = (each.name for each in self.replicas if each.is_there and point in each.slices)
        return next(having, "")


def is_shared(leases: Iterable[Mapping[str, Any]], base: str) -> bool:
    """Return whether any of these Leases is one of shards, and not only the election's."""
    return any(View(lease).name != base for lease in leases)


def reported(leases: Iterable[Object], base: str, now: datetime) -> ShardsReport:
    """Return the report on an installation from the Leases that have its label.

    Of more Leases than there can be replicas, those count that were renewed last.
    """
    found = {View(lease).name: lease for lease in leases}
    election, stored = found.pop(base, None), found.pop(f"{base}-shards", None)
    last = sorted(found.values(), key=_renewed, reverse=True)[: assignment.MOST_MEMBERS]
    members = [_member(lease, now) for lease in last]
    here = [each for each, is_released in members if not is_released]
    names = {View(lease).name: each.name for lease, (each, _) in zip(last, members, strict=True)}
    assigned = _assignment(stored, names) if stored else None
    leads = seen(election) if election else None
    return ShardsReport(
        tuple(sorted(here, key=lambda each: (each.name, each.since))),
        len(found) - len(last),
        tuple(_gaps((each for each, _ in members), assigned)),
        assigned,
        pod_of(leads.holder) if election and leads and not _is_over(election, now) else "",
        leads.namespaces if leads else (),
    )


def pod_of(identity: str) -> str:
    """Return the pod or host of a replica's identity, which has a unique suffix."""
    return cut(identity.rpartition("_")[0] or identity, LONGEST)


def _member(lease: Object, now: datetime) -> tuple[Replica, bool]:
    """Return a replica, and whether it has ended and said so."""
    told, view = sighting(lease, 0.0), View(lease)
    status = told.status
    state: State = "serves"
    if not told.holder or _is_over(lease, now):
        state = "silent"
    elif status is None:
        state = "unreadable"
    elif status.leaving:
        state = "leaves"
    elif not status.ready:
        state = "joins"
    elif not status.filled:
        state = "fills its caches"
    replica = Replica(
        pod_of(told.holder) or cut(told.name, LONGEST),
        state,
        told.holds if status else NONE,
        _time(view, "acquireTime"),
        _time(view, "renewTime"),
    )
    if status:
        fact = partial(_fact, status.facts)
        replica = replace(
            replica,
            revision=status.revision,
            namespaces=int(fact("namespaces")),
            resources=int(fact("resources")),
            passes=fact("passes"),
            lag=fact("lag"),
        )
    return replica, told.is_released


def _fact(facts: Mapping[str, float], name: str) -> float:
    """Return a number that a replica says of itself, or 0 if it cannot be."""
    value = facts.get(name, 0.0)
    return float(value) if 0 <= value < _MOST_OF_ANYTHING else 0.0


def _renewed(lease: Object) -> str:
    return _time(View(lease), "renewTime")


def _time(view: View, name: str) -> str:
    return cut(view.text("spec", name), LONGEST)


def _is_over(lease: Object, now: datetime) -> bool:
    """Return whether a Lease has run out, by the clock of this machine."""
    view = View(lease)
    renewed = _instant(view.text("spec", "renewTime"))
    seconds = view.number("spec", "leaseDurationSeconds") or _SECONDS
    lasts = timedelta(seconds=min(max(seconds, 1), _MOST_SECONDS))
    return renewed is None or now - renewed > lasts


def _instant(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _assignment(lease: Object, names: Mapping[str, str]) -> ShownAssignment | None:
    """Return the assignment; None if nobody can read it, as the leader writes a new one then.

    Its author is called by the name of its own Lease, of which `names` has the replica.
    """
    view, stored = View(lease), assignment.read(annotation(lease, ASSIGNMENT))
    since = _time(view, "renewTime") or _time(view, "acquireTime")
    holder = view.text("spec", "holderIdentity")
    author = names.get(holder) or pod_of(holder)
    return ShownAssignment(stored.epoch, since, author) if stored else None


def _gaps(members: Iterable[Replica], assigned: ShownAssignment | None) -> Iterable[Gap]:
    """Yield what nobody serves; `members` are those that were renewed last first."""
    every = list(members)
    missing = ALL - Slices.of(
        each for replica in every if replica.is_there for each in replica.slices.ranges
    )
    for each in every:
        if not each.is_there and (lost := missing & each.slices):
            yield Gap(lost, each.renewed, each.name)
            missing -= lost
    if missing:
        yield Gap(missing, assigned.since if assigned else "", "")
