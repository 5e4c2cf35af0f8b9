"""Ledger: what the server says of every start, read from its events alone."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

from hedgerow_testing.memory.server import Server

Object = dict[str, Any]
Start = tuple[str, str]
"""The uid of a CronJob and the name of a Job."""


@dataclass
class Ledger:
    """One entry a Job: `lost` are the versions at which a process ended or an answer got lost.

    A lost answer counts for the Job that it was about alone.
    """

    server: Server
    ends: list[int] = field(default_factory=list)
    lost: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def process_ends(self) -> None:
        self.ends.append(self.server.version)

    def answer_is_lost(self, name: str) -> None:
        self.lost[name].append(self.server.version)

    def creations(self) -> dict[Start, list[int]]:
        """Return the versions at which each start's Job was created."""
        found: dict[Start, list[int]] = defaultdict(list)
        for event in self._events("Job", "ADDED"):
            found[_start(event.object)].append(int(event.version))
        return found

    def doubles(self) -> list[tuple[Start, int, int]]:
        """Return each start of which a Job was created once more, and these two versions."""
        return [
            (start, earlier, later)
            for start, versions in self.creations().items()
            for earlier, later in pairwise(versions)
        ]

    def is_excused(self, double: tuple[Start, int, int]) -> bool:
        """Return whether a double went through the one hole.

        The process ended, or the answer to the create was lost, after the Job was created, and the
        Job was gone before any status had its start.
        """
        (uid, name), earlier, later = double
        forgotten = any(earlier <= end < later for end in (*self.ends, *self.lost[name]))
        return forgotten and not self._recorded(uid, name, later)

    def companions(self) -> list[tuple[str, str]]:
        """Return each Job that was created beside another that had not ended and was not going."""
        live: dict[str, Object] = {}
        found: list[tuple[str, str]] = []
        for event in self._events("Job"):
            name = event.object["metadata"]["name"]
            if event.type == "ADDED":
                found += [(name, other) for other, job in live.items() if _runs(job)]
            live[name] = event.object
            if event.type == "DELETED":
                del live[name]
        return found

    def records(self) -> dict[str, list[datetime]]:
        """Return what `lastScheduleTime` said, in order, of each CronJob by uid."""
        found: dict[str, list[datetime]] = defaultdict(list)
        for event in self._events("CronJob"):
            last = event.object.get("status", {}).get("lastScheduleTime")
            if last:
                found[event.object["metadata"]["uid"]].append(datetime.fromisoformat(last))
        return found

    def _recorded(self, uid: str, name: str, until: int) -> bool:
        second = int(name.rpartition("-")[2])
        for event in self._events("CronJob"):
            last = event.object.get("status", {}).get("lastScheduleTime")
            mine = event.object["metadata"]["uid"] == uid and int(event.version) < until
            if mine and last and datetime.fromisoformat(last).timestamp() >= second:
                return True
        return False

    def _events(self, kind: str, type_: str = "") -> list[Any]:
        events = self.server.events_since(0)
        return [e for e in events if e.object["kind"] == kind and type_ in ("", e.type)]


def _runs(job: Object) -> bool:
    going = "deletionTimestamp" in job["metadata"]
    return not going and not job.get("status", {}).get("conditions")


def _start(job: Object) -> Start:
    (owner,) = job["metadata"]["ownerReferences"]
    return owner["uid"], job["metadata"]["name"]
