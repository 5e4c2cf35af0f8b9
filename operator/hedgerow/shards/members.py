"""Members: what is seen of the replicas' Leases, and for how long each showed no sign of life.

All Leases of an installation have one label, so that one watch shows them as one history. Only our
own clock counts. That a Lease did not change is certain only by a read that began later, because a
watch may lag behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import asdict

from hedgerow.encoding import decode, to_json
from hedgerow.objects import annotation
from hedgerow.shards import assignment
from hedgerow.shards.slices import ALL, COUNT, NONE, Slices, parse
from hedgerow_schemas.base import View

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet
    from typing import Any

    from hedgerow.shards.assignment import Assignment

LABEL: Final = "hedgerow.dev/shards"
"""The label of all Leases of an installation, whose value is its name."""
MEMBER_STATUS: Final = LABEL
"""Annotation: a member's status, in its own Lease."""
ASSIGNMENT: Final = "hedgerow.dev/assignment"
"""Annotation: the assignment, in a Lease of its own."""
_LONGEST: Final = 64 * 1024
KEPT: Final = 10
"""Lease durations after which the Lease of a member that went silent is removed."""
LEAP: Final = 10**9
"""An epoch by so much greater than all that members told of is forged: nobody adopts it."""
MOST_KNOWN: Final = 2 * assignment.MOST_MEMBERS
"""The most Leases that are remembered: with more, nobody begins with anything new."""
_AGAIN: Final = 0.5
"""Seconds between two reads that are to show whether a member is silent."""
MOST_HEIRS: Final = 6
"""The most members that are told what was written last; all others list what they take over."""
MOST_WATCHES: Final = 32
"""The most watches of which a member tells what was written last."""
LONGEST_NAME: Final = 150
"""Characters of a watch's name that a member tells of."""
Versions = dict[Annotated[str, Meta(max_length=LONGEST_NAME)], Annotated[int, Meta(ge=0)]]
"""By watch, the last resourceVersion of its objects."""


class HandedOver(Struct, frozen=True):
    """What a member does not hold any more, under the assignment that it has adopted."""

    to: Annotated[str, Meta(max_length=253)]
    slices: str
    last: Annotated[Versions, Meta(max_length=MOST_WATCHES)]
    """What was written there last: whoever has watched for so long knows all of it."""


class MemberStatus(Struct, frozen=True):
    """What a member says in its Lease."""

    token: Annotated[str, Meta(max_length=64)] = ""
    """The assignment that it has adopted, and that all else is about."""
    epoch: Annotated[int, Meta(ge=0, le=assignment.LAST_EPOCH)] = 0
    ready: bool = False
    """It has watched for long enough to know of all others."""
    filled: bool = False
    """All have adopted the assignment, and its caches hold what can be listed of its share."""
    leaving: bool = False
    revision: Annotated[str, Meta(max_length=253)] = ""
    """Which version of the Deployment it belongs to."""
    load: Annotated[
        tuple[
            tuple[Annotated[int, Meta(ge=0, lt=COUNT)], Annotated[float, Meta(ge=0, le=1e9)]], ...
        ],
        Meta(max_length=assignment.MOST_PARTS),
    ] = ()
    facts: dict[str, float] = {}
    """For people: how many namespaces and resources, passes a second, lag."""
    holds: str = ""
    """The slices that it may write for: nobody else begins with them."""
    gave: Annotated[tuple[HandedOver, ...], Meta(max_length=MOST_HEIRS)] = ()


def parse_status(text: str) -> tuple[MemberStatus | None, Slices]:
    """Return what a text says, and the slices; whoever wrote it, garbled it may hold all."""
    try:
        if len(text) > _LONGEST:
            return None, ALL
        found = convert(decode(text.encode()), MemberStatus)
        texts = (found.holds, *(each.slices for each in found.gave))
        if any(each.count(",") >= assignment.MOST_PARTS for each in texts):
            return None, ALL
        holds, *_ = map(parse, texts)
    except (ValueError, ValidationError):
        return None, ALL
    return found, holds


def status_text(what: MemberStatus) -> str:
    """Return what a member says as JSON."""
    return to_json(asdict(what) | {"gave": tuple(map(asdict, what.gave))}).decode()


class Sighting(Struct):
    """A member's Lease as it was last seen, and since when it has been like that."""

    name: str
    version: tuple[str, str, str]
    """Its uid, version and renewTime. After a restore of the store versions are given again."""
    holder: str
    created: str
    status: MemberStatus | None
    """None if it is garbled."""
    holds: Slices
    since: float
    """When the last change was seen, deletion included."""
    exists: bool = True
    silent: float = 0.0
    """Seconds for which there was certainly no change."""
    took_part: bool = False
    """It once was ready, or held something, or may have."""

    @property
    def is_released(self) -> bool:
        """Whether it said that it is gone: a holder that somebody else removed does not count."""
        return not self.holder and self.status is not None and not self.holds

    @property
    def token(self) -> str:
        """The assignment that it has adopted, if it can be read."""
        return self.status.token if self.status else ""


def version_of(lease: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return what is another one after each change of a Lease."""
    view = View(lease)
    return view.uid, view.text("metadata", "resourceVersion"), view.text("spec", "renewTime")


def sighting(lease: Mapping[str, Any], now: float) -> Sighting:
    """Return what is seen of a member's Lease."""
    view = View(lease)
    found, holds = parse_status(annotation(lease, MEMBER_STATUS))
    return Sighting(
        view.name,
        version_of(lease),
        view.text("spec", "holderIdentity"),
        view.text("metadata", "creationTimestamp"),
        found,
        holds,
        now,
        took_part=bool(holds) or found is None or found.ready,
    )


class StoredAssignment(Struct, frozen=True):
    """The Lease with the assignment; what it says is None if nobody can read it."""

    uid: str
    version: str
    assignment: Assignment | None


class Members:
    """Everything that is known of an installation's Leases. Instants are `Clock.elapsed`."""

    def __init__(self, base: str, own: str, *, duration: float, deadline: float) -> None:
        self.own = own
        self.assignment_lease, self._election = f"{base}-shards", base
        self._duration, self._deadline = duration, deadline
        self.stored: StoredAssignment | None = None
        self.known: dict[str, Sighting] = {}
        self._began: float | None = None
        self._looked = -_AGAIN
        self.is_crowded = False
        """Whether there are more Leases than are remembered, or were within a duration."""
        self._room_since: float | None = None
        self.ready = False
        """Whether we have watched for so long that nobody whom we do not know of may write."""

    def snapshot(self, leases: Iterable[Mapping[str, Any]], now: float) -> None:
        """Take in all Leases; those that are missing were deleted."""
        found = {View(lease).name: lease for lease in leases}
        self.stored = None
        for lease in found.values():
            self.changed(lease, now)
        for name in self.known.keys() - found.keys():
            self._deleted(name, now)
        self._began = now if self._began is None else self._began

    def changed(self, lease: Mapping[str, Any], now: float) -> None:
        """Take in a Lease as it is now."""
        seen = sighting(lease, now)
        if seen.name == self.assignment_lease:
            kept = assignment.read(annotation(lease, ASSIGNMENT))
            self.stored = StoredAssignment(seen.version[0], seen.version[1], kept)
        elif seen.name != self._election:
            before = self.known.get(seen.name)
            if before is None and self._is_full(seen.name):
                self._leave_out()
            elif before is None or not before.exists or before.version != seen.version:
                seen.took_part = seen.took_part or (before is not None and before.took_part)
                self.known[seen.name] = seen

    def _is_full(self, name: str) -> bool:
        return len(self.known) >= MOST_KNOWN and name != self.own

    def _leave_out(self) -> None:
        self.is_crowded, self._room_since = True, None

    def deleted(self, lease: Mapping[str, Any], now: float) -> None:
        """Take in that a Lease is gone."""
        name = View(lease).name
        if name == self.assignment_lease:
            self.stored = None
        elif name in self.known:
            self._deleted(name, now)

    def _deleted(self, name: str, now: float) -> None:
        """Keep the last state: its member may not have noticed yet, and make the Lease anew."""
        found = self.known[name]
        if self.is_gone(found):
            self.known.pop(name)
        elif found.exists:
            found.exists, found.since, found.silent = False, now, 0.0

    def expect(self, names: Iterable[str], now: float) -> None:
        """Count members that we do not know of as possibly holding everything, for a while."""
        for name in names:
            if name not in self.known and self._is_full(name):
                self._leave_out()
                continue
            if name not in self.known:
                unknown = Sighting(name, ("", "", ""), "", "", None, ALL, now, exists=False)
                self.known[name] = unknown
            if name != self.own:
                self.known[name].took_part = True

    def relist_due(self) -> float | None:
        """Return from when on a read would show something that is not known yet, or None."""
        due = [
            each.since + (self._deadline if each.silent < self._deadline else self._duration)
            for each in self.others()
        ]
        due += [
            each.since + self._kept(each) for each in self._gone() if each.silent < self._kept(each)
        ]
        if self.is_crowded:
            due.append(self._looked + self._deadline)
        elif self._began is not None and not self.ready:
            due.append(self._began + self._duration)
        return max(min(due), self._looked + _AGAIN) if due else None

    def relisted(self, leases: Iterable[Mapping[str, Any]], began: float) -> None:
        """Take in all Leases as a consistent read showed them, which began then."""
        self._looked = began
        found = {View(lease).name: lease for lease in leases}
        versions = {name: version_of(lease) for name, lease in found.items()}
        self.ready = self.ready or self._is_complete(versions.keys(), began)
        for name, each in tuple(self.known.items()):
            if versions.get(name) == (each.version if each.exists else None):
                each.silent = max(each.silent, began - each.since)
            if not each.exists and self.is_gone(each):
                self.known.pop(name)
        if self.is_crowded:
            self._room_since = began if self._room_since is None else self._room_since
            self._take_in(found, began)

    def _take_in(self, found: Mapping[str, Mapping[str, Any]], began: float) -> None:
        """Remember what was left out; one that was deleted meanwhile may write for a duration."""
        for name in found.keys() - self.known.keys() - {self.assignment_lease, self._election}:
            self.changed(found[name], began)
        if self._room_since is not None and began >= self._room_since + self._duration:
            self.is_crowded = False

    def _is_complete(self, names: AbstractSet[str], began: float) -> bool:
        """Return whether we knew of all Leases, after having watched for as long as one lasts."""
        if self._began is None or began < self._began + self._duration:
            return False
        here = {name for name, each in self.known.items() if each.exists}
        return names - {self.assignment_lease, self._election} <= here

    def is_gone(self, each: Sighting) -> bool:
        """Return whether a member certainly does not write any more, nor does a late write."""
        return each.is_released or each.silent >= self._duration

    def has_stopped_sending(self, each: Sighting) -> bool:
        """Return whether a member sends no more writes; late ones may still arrive."""
        return each.is_released or each.silent >= self._deadline

    def others(self) -> Iterator[Sighting]:
        """Yield the members besides us that may write."""
        return (
            each for name, each in self.known.items() if name != self.own and not self.is_gone(each)
        )

    def _gone(self) -> Iterator[Sighting]:
        return (
            each for name, each in self.known.items() if name != self.own and self.is_gone(each)
        )

    def _kept(self, each: Sighting) -> float:
        """Return the seconds of silence after which the Lease of one that is gone is removed."""
        return (1 if each.is_released else KEPT) * self._duration

    def superfluous(self) -> list[Sighting]:
        """Return the Leases of members that are long gone."""
        return [each for each in self._gone() if each.exists and each.silent >= self._kept(each)]

    def participants(self) -> Iterator[Sighting]:
        """Yield the members besides us that may write, or may do so before they adopt ours.

        One that never was ready has begun nothing: it waits until it sees that it was told ready.
        By then it sees our assignment too.
        """
        return (each for each in self.others() if each.took_part)

    def takes_part(self) -> bool:
        """Return whether we know all others, and they can see that we may begin something."""
        own = self.known.get(self.own)
        return self.ready and not self.is_crowded and own is not None and own.took_part

    def living(self) -> dict[str, MemberStatus]:
        """Return what the members say that may be assigned something, by name."""
        return {
            name: each.status
            for name, each in sorted(self.known.items())
            if each.status is not None and each.status.ready and not each.status.leaving
            if each.holder and not self.has_stopped_sending(each)
        }

    def holds(self) -> dict[str, Slices]:
        """Return who holds what, of the members that can be read."""
        return {name: each.holds for name, each in self.known.items() if each.status is not None}

    def unserved(self) -> Slices:
        """Return what no member holds that may write; nothing until we know of all. Any thread."""
        if not self.ready:
            return NONE
        known = [each for each in tuple(self.known.values()) if not self.is_gone(each)]
        return ALL - Slices.of(
            part for each in known if each.status is not None for part in each.holds.ranges
        )

    def current(self) -> Assignment | None:
        """Return the assignment that is stored; None if there is none, or its epoch is absurd."""
        found = self.stored.assignment if self.stored else None
        return found if found is not None and found.epoch <= self._last_epoch() + LEAP else None

    def epoch(self) -> int:
        """Return the last epoch that counts, or 0."""
        current = self.current()
        return max(current.epoch if current else 0, self._last_epoch())

    def _last_epoch(self) -> int:
        """Return the last epoch in the status of a member that may write."""
        known = (each for each in self.known.values() if not self.is_gone(each))
        return max((each.status.epoch for each in known if each.status), default=0)
