"""Checks: what must hold in every run, whatever went wrong in it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from math import inf

from faults.machine import Operator, Run
from faults.people import RealPeople
from faults.proxy import Exchange
from faults.scenario import Object
from faults.signatures import signature
from hedgerow.controllers.scaler.record import recorded
from hedgerow.controllers.scaler.windows import BEFORE

MOST_PER_SECOND = 60
"""Requests in any second of an operator of one resource, once it has filled its caches."""
OF_TROUBLE = frozenset(
    {
        "Forbidden",
        "Refused",
        "Rejected",
        "StatusRefused",
        "TooManyMissedTimes",
    }
)
"""Reasons of Warning Events that tell of the trouble itself."""
START = 2.0
"""Seconds in which an operator that starts asks for its rights and fills its caches."""
APPLY = "application/apply-patch+yaml"


def broken(run: Run) -> list[str]:
    """Return what does not hold, a line each."""
    asked = [one for line in run.lines for one in line.record]
    return [
        *written_wrongly(asked),
        *_started_twice(asked, run.made_again),
        *_misrouted(run),
        *_spun(run),
        *told_twice(run.people, run.heard_too, run.scenario.told_again),
        *failed(run.operators),
    ]


def written_wrongly(asked: Collection[Exchange]) -> list[str]:
    """Return what is no safe write, and no safe read before one, a line each."""
    return [*_unlawful(asked), *_careless(asked)]


def busiest(run: Run) -> int:
    """Return the most requests of one operator in one second."""
    return max(map(_most_in_a_second, map(list, _begun(run))), default=0)


def _unlawful(asked: Iterable[Exchange]) -> Iterator[str]:
    """Every write is an apply under a manager of ours, or a delete by uid.

    Only a claim is forced: it records on the object what it takes, and from whom.
    """
    for one in asked:
        if not one.writes:
            continue
        if one.method == "DELETE":
            if not one.json().get("preconditions", {}).get("uid"):
                yield f"no uid: {one}"
        elif (
            one.method != "PATCH"
            or one.headers.get("content-type") != APPLY
            or ("force" in one.query and not _is_claim(one.json()))
            or not one.query.get("fieldManager", "").startswith("hedgerow")
        ):
            yield f"no unforced apply: {one}"
        elif _is_child(one) and not _is_guarded(one.json()):
            yield f"neither create-only nor of a uid: {one}"


def _careless(asked: Iterable[Exchange]) -> Iterator[str]:
    """No list is one that a server may give from a cache that lags behind."""
    for one in asked:
        version = one.query.get("resourceVersion", "")
        if one.method == "GET" and version and not one.watches:
            yield f"a list of a version: {one}"
        elif version and one.query.get("sendInitialEvents"):
            yield f"initial events of a version: {one}"


def _is_claim(body: Object) -> bool:
    record = recorded(body["metadata"].get("annotations", {}).get(BEFORE, ""))
    return record is not None and bool(record.taken_from)


def _is_child(one: Exchange) -> bool:
    return not (one.of_lease or one.path.endswith("/status") or "/events/" in one.path)


def _is_guarded(body: Object) -> bool:
    metadata = body["metadata"]
    return bool(metadata.get("uid") or metadata.get("resourceVersion"))


def _started_twice(asked: Iterable[Exchange], made_again: Collection[str]) -> list[str]:
    """No Job is created twice under one owner, unless it is of one of these kinds."""
    made = Counter(
        (one.path, owner["uid"])
        for one in asked
        if one.method == "PATCH" and "/jobs/" in one.path and one.done == 201
        for owner in one.json()["metadata"].get("ownerReferences", ())
        if owner.get("kind") not in made_again
    )
    return [f"{count} times made: {path}" for (path, _), count in made.items() if count > 1]


def _misrouted(run: Run) -> list[str]:
    """No Service selects a colour in a step before the one in which it does without trouble.

    So none selects one whose template has no passed check: the steps end the Jobs.
    """
    known = run.reference.writes if run.reference else ()
    first: dict[str, int] = {}
    for target in known:
        first.setdefault(target.signature, target.step)
    return [
        f"too early: {found} in step {one.step}"
        for line in run.lines
        for one in line.record
        if one.writes and " selecting " in (found := signature(one))
        if known and one.step < first.get(found, inf)
    ]


def _spun(run: Run) -> list[str]:
    most = busiest(run)
    return [f"{most} requests in one second"] if most > MOST_PER_SECOND else []


def _begun(run: Run) -> Iterator[Iterator[float]]:
    """Yield the times of each operator's requests but for those with which a life begins."""
    for operator in run.operators:
        record = list(operator.line.record)
        begins = operator.births
        yield (
            one.began
            for one in record
            if not any(birth <= one.began < birth + START for birth in begins)
        )


def _most_in_a_second(times: list[float]) -> int:
    most = first = 0
    for last, time in enumerate(times):
        while time - times[first] > 1.0:
            first += 1
        most = max(most, last - first + 1)
    return most


def told_twice(
    people: RealPeople, heard_too: Collection[str] = (), again: Collection[str] = ()
) -> list[str]:
    """No Event is there twice: same reason, same note, about the same object.

    What the server refuses is told again under another generation, and each use of force is told.
    An Event for a reason of `again` is there twice at most.
    """
    kind = {"apiVersion": "events.k8s.io/v1", "kind": "Event"}
    told = Counter(
        (event.get("reason"), event.get("note"), json.dumps(event.get("regarding"), sort_keys=True))
        for event in people.every(kind)
        if event.get("reason") not in {*OF_TROUBLE, *heard_too, "FieldClaimed"}
    )
    return [
        f"told {count} times: {what[:2]}"
        for what, count in told.items()
        if count > (2 if what[0] in again else 1)
    ]


def failed(operators: Iterable[Operator]) -> list[str]:
    """No pass ends in an exception, and nothing is logged as an error.

    That an operator ended is no error: a leader that lost its Lease does, and is started again.
    """
    return [
        f"logged: {entry.get('event')} {entry.get('exception', entry.get('error', ''))}"[:2000]
        for operator in operators
        for entry in operator.entries()
        if entry.get("level") in {"error", "critical"} and entry.get("event") != "ended"
    ]


def both_at_work(run: Run) -> list[str]:
    """Of several replicas only the one that has the Lease writes; return what breaks that."""
    asked = sorted(
        (one for line in run.lines for one in line.record if one.writes and one.done),
        key=lambda one: one.ended or one.began,
    )
    holder, found = 0, list[str]()
    for one in asked:
        if one.of_lease:
            if one.done < 300 and one.json().get("spec", {}).get("holderIdentity"):
                holder = one.port
        elif one.port != holder:
            found.append(f"not by the leader: {signature(one)}")
    return found
