"""Writers: which replicas wrote where, one after the other, as the API server's audit log tells it.

Replicas that share the work write their name into the user agent, what they may write for into
their Leases, and the leader who shall serve what into one more. All of that is in the log.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from operator import attrgetter, itemgetter
from typing import Any

from hedgerow.objects import annotation
from hedgerow.shards import assignment
from hedgerow.shards.assignment import Assignment
from hedgerow.shards.members import ASSIGNMENT
from hedgerow.shards.slices import point_of

Entry = dict[str, Any]

NOWHERE = ""
"""The place of what is not divided: Secrets that are copied to other namespaces."""
_REPLICA = re.compile(r"\((hedgerow-[0-9a-f]+)\)")
_START = re.compile(r"-(\d{10})$")


@dataclass(frozen=True)
class Write:
    """A request of a replica that writes: from when to when, by whom, to what."""

    began: datetime
    ended: datetime
    replica: str
    what: str
    name: str
    done: bool

    def __str__(self) -> str:
        return f"{self.replica} at {self.began:%H:%M:%S.%f}: {self.what}"


@dataclass
class Writers:
    """All that replicas wrote, by the slices' namespaces, and what permitted it."""

    places: dict[str, list[Write]] = field(default_factory=lambda: defaultdict(list[Write]))
    renewals: dict[str, list[Write]] = field(default_factory=lambda: defaultdict(list[Write]))
    assigned: list[tuple[datetime, Assignment]] = field(default_factory=list[Any])

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Writers:
        """Return what finished requests show."""
        found = cls()
        for entry in sorted(entries, key=lambda entry: _time(entry, "requestReceivedTimestamp")):
            found.take(entry)
        return found

    def take(self, entry: Entry) -> None:
        """Take in the next finished request."""
        if entry["verb"] not in ("patch", "delete"):
            return
        if entry["objectRef"]["resource"] == "leases":
            self._take_lease(entry)
        elif write := _write(entry):
            self.places[_place(entry)].append(write)

    def _take_lease(self, entry: Entry) -> None:
        write = _write(entry)
        if write and write.done and entry["verb"] == "patch" and write.name == write.replica:
            self.renewals[write.replica].append(write)
        body = entry.get("requestObject") or {}
        told = assignment.read(annotation(body, ASSIGNMENT))
        if told and entry["responseStatus"]["code"] < 300:
            self.assigned.append((_time(entry, "requestReceivedTimestamp"), told))

    def turns(self, place: str) -> list[str]:
        """Return who wrote in a place, one after the other."""
        return [name for name, _ in groupby(write.replica for write in self.places[place])]

    def broken(self, duration: float) -> list[str]:
        """Return what does not hold, a line each, if a Lease lasts for so many seconds."""
        places = {place: writes for place, writes in self.places.items() if writes}
        return [
            *(line for writes in places.values() for line in _at_once(writes)),
            *(line for place in places for line in self._unassigned(place)),
            *(line for writes in places.values() for line in self._lapsed(writes, duration)),
        ]

    def _unassigned(self, place: str) -> Iterator[str]:
        """No replica writes but in its turn, and as often as it was assigned the place anew."""
        point = point_of(place)
        owners = [(since, _owner(each, point)) for since, each in self.assigned]
        owners = [next(each) for _, each in groupby(owners, key=itemgetter(1))]
        left = iter(owners)
        for name, writes in groupby(self.places[place], key=attrgetter("replica")):
            since = next((since for since, owner in left if owner == name), None)
            first = next(writes)
            if since is None or since > first.began:
                turns = self.turns(place)
                yield f"in {place or 'no namespace'} wrote {turns}, assigned to {owners}: {first}"
                return

    def _lapsed(self, writes: Iterable[Write], duration: float) -> Iterator[str]:
        """No write comes when the Lease of its replica has run out."""
        for write in writes:
            renewed = [
                each.ended for each in self.renewals[write.replica] if each.began <= write.began
            ]
            if not renewed or write.began > max(renewed) + timedelta(seconds=duration):
                yield f"without a Lease: {write}"


def _at_once(writes: Iterable[Write]) -> Iterator[str]:
    """No two write at overlapping times, and so not to one object either."""
    last: dict[str, Write] = {}
    for write in writes:
        for name, other in last.items():
            if name != write.replica and other.ended > write.began:
                yield f"at once: {other}; {write}"
        former = last.get(write.replica, write)
        last[write.replica] = max(former, write, key=attrgetter("ended"))


def started_twice(entries: Iterable[Entry], interval: float = 0.0) -> list[str]:
    """Return what shows that a start of a CronJob was made twice, or sooner than its schedule has.

    `entries` have the creations of all Jobs that the store remembers.
    """
    made: Counter[tuple[str, str, str]] = Counter()
    for entry in entries:
        reference = entry.get("objectRef", {})
        is_creation = entry["verb"] == "patch" and entry["responseStatus"]["code"] == 201
        if reference.get("resource") != "jobs" or not is_creation:
            continue
        for owner in entry["requestObject"]["metadata"].get("ownerReferences", ()):
            made[reference["namespace"], owner["uid"], reference["name"]] += 1
    lines = [f"{count} times made: {key}" for key, count in made.items() if count > 1]
    for cron, keys in groupby(sorted(made), key=lambda key: key[:2]):
        times = sorted(int(found[1]) for key in keys if (found := _START.search(key[2])))
        lines += [
            f"started too soon: {cron} at {one} and {two}"
            for one, two in pairwise(times)
            if two - one < interval
        ]
    return lines


def _write(entry: Entry) -> Write | None:
    replica = _REPLICA.search(entry.get("userAgent", ""))
    if not replica:
        return None
    return Write(
        began=_time(entry, "requestReceivedTimestamp"),
        ended=_time(entry, "stageTimestamp"),
        replica=replica[1],
        what=f"{entry['verb']} {entry['requestURI']}",
        name=entry["objectRef"].get("name", ""),
        done=entry["responseStatus"]["code"] < 300,
    )


def _place(entry: Entry) -> str:
    """Return the namespace to whose slice an object belongs."""
    reference = entry["objectRef"]
    about = (entry.get("requestObject") or {}).get("regarding", {})
    is_copied = reference["resource"] == "secrets" or about.get("kind") == "Secret"
    return NOWHERE if is_copied else reference.get("namespace", NOWHERE)


def _owner(one: Assignment, point: int) -> str:
    return next(name for (begin, end), name in one.owned() if begin <= point < end)


def _time(entry: Entry, name: str) -> datetime:
    return datetime.fromisoformat(entry[name])
