"""Verdict: what must hold in every run on either backend, whatever went wrong in it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from math import inf
from typing import Any

from faults.endings import warnings
from faults.exchange import Exchange
from faults.run import Operator, Run
from faults.scenario import Object, People
from hedgerow.controllers.cronjob.starts import SCHEDULED_AT
from hedgerow.controllers.scaler.record import recorded
from hedgerow.controllers.scaler.windows import BEFORE

MOST_PER_SECOND = 60
"""Requests in any second of an operator of one resource, once it has filled its caches."""
MORE_PER_MINUTE = 200
"""Requests in a minute that faults may cost beyond those of the run without any."""
ATTEMPTS = 80
"""How often a write may be sent that is refused for minutes, all its retries together."""
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
        *(_started_early(run) if run.clocks_right else ()),
        *_misrouted(run),
        *_spun(run),
        *told_twice(run.people, run.heard_too, run.scenario.told_again),
        *failed(run.operators),
        *run.observed(),
    ]


def untold(run: Run, last: int) -> list[str]:
    """Return the Warning Events that are missing, and those that are too many."""
    assert run.reference
    wanted, found = run.wanted(last), set(warnings(run.people, run.namespace))
    known = {reason for _, reason, _ in run.reference.told[last]} | OF_TROUBLE | run.heard_too
    return [
        *(f"no Event {e}" for e in sorted(wanted - found) if e[1] not in run.unheard),
        *(f"an Event {e}" for e in sorted(found - wanted) if e[1] not in known),
    ]


# --- requests -----------------------------------------------------------------------------------


def written_wrongly(asked: Collection[Exchange]) -> list[str]:
    """Return what is no safe write, and no safe read before one, a line each."""
    return [*_unlawful(asked), *_careless(asked)]


def _unlawful(asked: Iterable[Exchange]) -> Iterator[str]:
    """Every write is an apply under a manager of ours, or a delete by uid.

    Only a claim is forced: it records on the object what it takes, and from whom.
    """
    for one in asked:
        if not one.writes:
            continue
        if one.method == "DELETE":
            if not one.sent.get("preconditions", {}).get("uid"):
                yield f"no uid: {one}"
        elif (
            one.method != "PATCH"
            or one.headers.get("content-type") != APPLY
            or (one.query.get("force") == "true" and not _is_claim(one.sent))
            or not one.query.get("fieldManager", "").startswith("hedgerow")
        ):
            yield f"no unforced apply: {one}"
        elif not _is_guarded(one.sent):
            yield f"neither create-only nor of a uid: {one}"


def _careless(asked: Iterable[Exchange]) -> Iterator[str]:
    """Nothing is read from a cache that lags behind."""
    for one in asked:
        version = one.query.get("resourceVersion", "")
        if one.method == "GET" and version and not one.watches:
            yield f"a list of a version: {one}"
        elif version and one.query.get("sendInitialEvents"):
            yield f"initial events of a version: {one}"


def _is_claim(body: Object) -> bool:
    record = recorded(body["metadata"].get("annotations", {}).get(BEFORE, ""))
    return record is not None and bool(record.taken_from)


def _is_guarded(body: Object) -> bool:
    metadata = body["metadata"]
    return bool(metadata.get("uid") or metadata.get("resourceVersion"))


def _started_twice(asked: Iterable[Exchange], made_again: Collection[str]) -> list[str]:
    """No Job is created twice under one owner, unless it is of one of these kinds."""
    made = Counter(
        (one.path, owner["uid"])
        for one in _jobs_made(asked)
        for owner in one.sent["metadata"].get("ownerReferences", ())
        if owner.get("kind") not in made_again
    )
    return [f"{count} times made: {path}" for (path, _), count in made.items() if count > 1]


def _started_early(run: Run) -> list[str]:
    """No start of a CronJob is made before its time, by the clock of the API server."""
    made = [one.answered["metadata"] for line in run.lines for one in _jobs_made(line.record)]
    starts = [(each.get("annotations", {}).get(SCHEDULED_AT, ""), each) for each in made]
    return [
        f"the start of {start} was made at {each['creationTimestamp']}"
        for start, each in starts
        if start > each["creationTimestamp"]
    ]


def _jobs_made(asked: Iterable[Exchange]) -> Iterator[Exchange]:
    for one in asked:
        if one.method == "PATCH" and "/jobs/" in one.path and one.done == 201:
            yield one


def _misrouted(run: Run) -> list[str]:
    """No Service selects a colour in a step before the one in which it does without trouble.

    So none selects one whose template has no passed check: the steps end the Jobs.
    """
    known = run.reference.writes if run.reference else ()
    first: dict[str, int] = {}
    for target in known:
        first.setdefault(target.signature, target.step)
    return [
        f"too early: {one.signature} in step {one.step}"
        for line in run.lines
        for one in line.record
        if known and one.writes and " selecting " in one.signature
        if one.step < first.get(one.signature, inf)
    ]


def both_at_work(run: Run) -> list[str]:
    """Of several replicas only the one that has the Lease writes; return what breaks that."""
    asked = sorted(
        (one for line in run.lines for one in line.record if one.writes and one.done),
        key=lambda one: one.ended or one.began,
    )
    holder, found = "", list[str]()
    for one in asked:
        if one.of_lease:
            if one.done < 300 and one.sent.get("spec", {}).get("holderIdentity"):
                holder = one.client
        elif one.client != holder:
            found.append(f"not by the leader: {one.signature}")
    return found


# --- how many -----------------------------------------------------------------------------------


def busiest(run: Run, window: float = 1.0) -> int:
    """Return the most requests of one operator in so many seconds, starts of lives left out."""
    return max((_most_in(window, times) for times in map(list, _begun(run))), default=0)


def _spun(run: Run) -> Iterator[str]:
    if (most := busiest(run)) > MOST_PER_SECOND:
        yield f"{most} requests in one second"
    usual = run.reference.busiest if run.reference else inf
    if (most := busiest(run, 60.0)) > usual + MORE_PER_MINUTE:
        yield f"{most} requests in one minute, and {usual} without trouble"


def _begun(run: Run) -> Iterator[Iterator[float]]:
    """Yield the times of each operator's requests but for those with which a life begins."""
    for operator in run.operators:
        begins = operator.births
        yield (
            one.began
            for one in list(operator.line.record)
            if not any(birth <= one.began < birth + START for birth in begins)
        )


def _most_in(window: float, times: Sequence[float]) -> int:
    most = first = 0
    for last, time in enumerate(times):
        while time - times[first] > window:
            first += 1
        most = max(most, last - first + 1)
    return most


# --- what is told -------------------------------------------------------------------------------


def told_twice(
    people: People, heard_too: Collection[str] = (), again: Collection[str] = ()
) -> list[str]:
    """No Warning is there twice: same reason, same note, about the same object.

    What the server refuses is told again under another generation, and each use of force is told.
    An Event for a reason of `again` is there twice at most.
    """
    kind = {"apiVersion": "events.k8s.io/v1", "kind": "Event"}
    told = Counter(
        (event.get("reason"), event.get("note"), json.dumps(event.get("regarding"), sort_keys=True))
        for event in people.every(kind)
        if event.get("type") == "Warning"
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


def uncounted(operator: Any, code: str) -> list[str]:
    """Return whether no metric says that there was such an answer; one that ended has none."""
    if len(operator.births) > 1:
        return []
    wanted, total = f'code="{code}"', "hedgerow_api_requests_total"
    series = operator.measured().items()
    counted = sum(value for name, value in series if name.startswith(total) and wanted in name)
    return [] if counted else [f"no metric counts {code}"]


def unsaid(operator: Any, *, usual: bool) -> list[str]:
    """Return whether no line in the log says that something is wrong; a 409 is `usual` at first."""
    series = operator.measured()
    counted = any(series[name] for name in series if name.startswith("hedgerow_refusals_total"))
    said = (usual and counted) or operator.complaints() or len(operator.births) > 1
    return [] if said else ["no line in the log says what was wrong"]


async def unrestarted(run: Run) -> list[str]:
    """Wait until a metric counts a watch that was opened anew; say so if none does."""

    def counted() -> bool:
        name = "hedgerow_watch_restarts_total"
        series = (operator.measured().items() for operator in run.operators)
        return any(value for each in series for key, value in each if key.startswith(name))

    try:
        await run.until(counted, "a metric", run.patience)
    except AssertionError:
        return ["no metric counts a watch that was opened anew"]
    return []
