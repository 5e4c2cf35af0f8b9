"""Flips: a BlueGreen in each of several namespaces, all of which change their colour all the time.

They tell for how long a namespace was not served, and what was written there twice.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate, groupby
from operator import attrgetter
from typing import Self

from e2e.load import COLOURS, Answers, Writer
from e2e.node.images import PAUSE_IMAGE
from e2e.node.node import Node
from e2e.pods import RESTRICTED, container, user
from hedgerow.runtime.clock import SystemClock
from hedgerow_testing.api import Api, Object, Reply
from hedgerow_testing.audit_log import AuditEntry
from hedgerow_testing.waiting import eventually
from support.cluster.bluegreens import bluegreen

PLACES = tuple(f"{letter}-shared" for letter in "abcdefghijkl")
"""Namespaces of every shard, of two as of three."""
_SOON = 120.0


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the BlueGreen in a place, and when the API server had taken it."""

    place: str
    generation: int
    at: datetime


class Flips(Writer):
    """While entered each change is applied as soon as the one before was answered."""

    def __init__(self, node: Node, api: Api) -> None:
        self.changes: list[Change] = []
        self.answers = Answers()
        self._own = api
        super().__init__(node, self._flip)

    def __enter__(self) -> Self:
        """Begin with BlueGreens that are all served."""
        for place in PLACES:
            metadata = {"name": place, "labels": RESTRICTED}
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
            self._own.apply(namespace, "test").must()
        for turn in range(len(PLACES)):
            self._flip(self._own, turn)
        self.carried_out()
        super().__enter__()
        return self

    def go_on(self, rounds: int = 3) -> None:
        """Wait until each BlueGreen was changed so many more times."""
        enough = len(self.changes) + rounds * len(PLACES)
        eventually(lambda: len(self.changes) >= enough, _SOON, "changes")

    def carried_out(self) -> None:
        """Wait until every BlueGreen is as it was last changed."""
        last = {each.place: each.generation for each in self.changes}
        for place, generation in last.items():
            eventually(lambda p=place, g=generation: self._seen(p) >= g, _SOON, f"the last {place}")

    def _seen(self, place: str) -> int:
        return _observed(self._own.get(coloured(place, 0)).must())

    def _flip(self, api: Api, turn: int) -> None:
        number, index = divmod(turn, len(PLACES))
        taken: list[Reply] = []

        def ask() -> Reply:
            taken.append(api.apply(coloured(PLACES[index], number), "user"))
            return taken[-1]

        if not self.answers.take(ask):
            return
        live = taken[-1].body
        change = Change(PLACES[index], live["metadata"]["generation"], SystemClock().now())
        if _observed(live) < change.generation:  # it was not of this colour before
            self.changes.append(change)


def _observed(live: Object) -> int:
    return live.get("status", {}).get("observedGeneration", 0)


def coloured(place: str, number: int) -> Object:
    """Return a BlueGreen whose pods fit on no node: nothing but its Service moves."""
    nowhere = {"example.com/nowhere": "true"}
    pods = user(container(PAUSE_IMAGE), restartPolicy="Always", nodeSelector=nowhere)
    return bluegreen(place, "demo", COLOURS[number % 2], blueSpec=pods, greenSpec=pods)


def waits(changes: Iterable[Change], entries: Iterable[AuditEntry]) -> dict[str, float]:
    """Return for how many seconds at most a change waited in each place until it was carried out.

    It was when a status says so. Raises AssertionError if one never was.
    """
    told: dict[str, list[tuple[datetime, int]]] = defaultdict(list)
    for entry in entries:
        about: AuditEntry = entry.get("objectRef") or {}
        if (about.get("resource"), about.get("subresource")) == ("bluegreens", "status"):
            status = entry["requestObject"].get("status", {})
            if entry["responseStatus"]["code"] < 300 and "observedGeneration" in status:
                ended = datetime.fromisoformat(entry["stageTimestamp"])
                told[about["namespace"]].append((ended, status["observedGeneration"]))
    longest: dict[str, float] = {}
    for place, made in groupby(sorted(changes, key=attrgetter("place")), attrgetter("place")):
        seen = sorted(told[place])
        reached = list(accumulate((generation for _, generation in seen), max))
        for change in made:
            index = bisect_left(reached, change.generation)
            assert index < len(reached), f"never carried out: {change}"
            wait = (seen[index][0] - change.at).total_seconds()
            longest[place] = max(longest.get(place, 0.0), wait)
    return longest


def twice(entries: Iterable[AuditEntry]) -> list[str]:
    """Return the writes that said of an object once more what the one before had said of it."""
    last: dict[tuple[str, ...], Object] = {}
    found: list[str] = []
    for entry in sorted(entries, key=lambda entry: entry["stageTimestamp"]):
        about: AuditEntry = entry.get("objectRef") or {}
        done = entry["verb"] == "patch" and entry["responseStatus"]["code"] < 300
        if not done or about.get("resource") == "leases" or "dryRun=" in entry["requestURI"]:
            continue
        keys = ("namespace", "resource", "name", "subresource")
        which = tuple(about.get(key, "") for key in keys)
        said = _said(entry["requestObject"])
        if last.get(which) == said:
            found.append(f"{entry['stageTimestamp']} {entry['userAgent']}: {'/'.join(which)}")
        last[which] = said
    return found


def _said(body: Object) -> Object:
    """Return what an apply declares, without the state that it has seen."""
    seen = ("uid", "resourceVersion")
    metadata = {key: value for key, value in body["metadata"].items() if key not in seen}
    return {**body, "metadata": metadata}
