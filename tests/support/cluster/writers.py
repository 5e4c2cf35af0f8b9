"""Writers: which shards wrote where, one after the other, as the API server's audit log tells it.

A shard says which one it is in its user agent, and renews a Lease of its own. Both are in the log.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Any

from hedgerow.shard import Shard, lease_name

Entry = dict[str, Any]

NOWHERE = ""
"""The place of what is not divided: Secrets that are copied to other namespaces."""
_OPERATOR = re.compile(r"hedgerow/\S+(?: \(shard (\S+)\))?")
_ELECTION = re.compile(r"hedgerow-lease")
_START = re.compile(r"-(\d{10})$")


@dataclass(frozen=True)
class Write:
    """A request of an operator that writes: from when to when, by whom, to what."""

    began: datetime
    ended: datetime
    shard: Shard | None
    what: str
    name: str
    done: bool

    def __str__(self) -> str:
        return f"{self.writer} at {self.began:%H:%M:%S.%f}: {self.what}"

    @property
    def writer(self) -> str:
        return str(self.shard or "all")

    @property
    def division(self) -> int:
        """Into how many parts its writer divides the namespaces."""
        return self.shard.count if self.shard else 1


@dataclass
class Writers:
    """All that operators wrote, by the places of namespaces, and when they renewed their Leases."""

    places: dict[str, list[Write]] = field(default_factory=lambda: defaultdict(list[Write]))
    renewals: dict[str, list[Write]] = field(default_factory=lambda: defaultdict(list[Write]))

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
        agent = entry.get("userAgent", "")
        if entry["objectRef"]["resource"] == "leases":
            write = _write(entry, None)
            if _ELECTION.match(agent) and write.done and entry["verb"] == "patch":
                self.renewals[write.name].append(write)
        elif found := _OPERATOR.fullmatch(agent):
            shard = Shard.parse(found[1]) if found[1] else None
            self.places[_place(entry)].append(_write(entry, shard))

    def turns(self, place: str) -> list[str]:
        """Return who wrote in a place, one after the other."""
        return [name for name, _ in groupby(write.writer for write in self.places[place])]

    def divisions(self) -> list[int]:
        """Return by how many shards all was written, one division after the other."""
        writes = sorted(
            (write for place in self.places.values() for write in place), key=attrgetter("began")
        )
        return [count for count, _ in groupby(write.division for write in writes)]

    def broken(self, duration: float) -> list[str]:
        """Return what does not hold, a line each, if a Lease lasts for so many seconds."""
        places = {place: writes for place, writes in self.places.items() if writes}
        return [
            *(line for writes in places.values() for line in _at_once(writes)),
            *(line for place, writes in places.items() for line in _misplaced(place, writes)),
            *(line for writes in places.values() for line in self._lapsed(writes, duration)),
            *self._again(),
        ]

    def _again(self) -> Iterator[str]:
        """No division writes again after another one has written."""
        turns = self.divisions()
        if len(set(turns)) < len(turns):
            yield f"divisions wrote in turns: {turns}"

    def _lapsed(self, writes: Iterable[Write], duration: float) -> Iterator[str]:
        """No write comes when the Lease of its shard has run out."""
        for write in writes:
            renewals = self.renewals[lease_name("hedgerow", write.shard)]
            renewed = [each.ended for each in renewals if each.began <= write.began]
            if not renewed or write.began > max(renewed) + timedelta(seconds=duration):
                yield f"without a Lease: {write}"


def _at_once(writes: Iterable[Write]) -> Iterator[str]:
    """No two write at overlapping times, and so not to one object either."""
    last: dict[str, Write] = {}
    for write in writes:
        for name, other in last.items():
            if name != write.writer and other.ended > write.began:
                yield f"at once: {other}; {write}"
        former = last.get(write.writer, write)
        last[write.writer] = max(former, write, key=attrgetter("ended"))


def _misplaced(place: str, writes: Iterable[Write]) -> Iterator[str]:
    """No shard writes in a namespace of another one."""
    for write in writes:
        if write.shard is not None and not write.shard.serves(place):
            yield f"in {place or 'no namespace'}: {write}"


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


def _write(entry: Entry, shard: Shard | None) -> Write:
    return Write(
        began=_time(entry, "requestReceivedTimestamp"),
        ended=_time(entry, "stageTimestamp"),
        shard=shard,
        what=f"{entry['verb']} {entry['requestURI']}",
        name=entry["objectRef"].get("name", ""),
        done=entry["responseStatus"]["code"] < 300,
    )


def _place(entry: Entry) -> str:
    """Return the namespace of the resource to which an object belongs."""
    reference = entry["objectRef"]
    about = (entry.get("requestObject") or {}).get("regarding", {})
    is_copied = "fieldManager=hedgerow-secretsync&" in entry["requestURI"] or (
        entry["verb"] == "delete" and reference["resource"] == "secrets"
    )
    is_told = about.get("kind") == "Secret"
    return NOWHERE if is_copied or is_told else reference.get("namespace", NOWHERE)


def _time(entry: Entry, name: str) -> datetime:
    return datetime.fromisoformat(entry[name])
