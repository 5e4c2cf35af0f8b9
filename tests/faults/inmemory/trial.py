"""Trial: a scenario with faults, beside the same one without, and whether all was well."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import pairwise
from typing import Any

import anyio

from faults.inmemory import more, routing
from faults.inmemory.injector import ANSWERS, LOSSES, MINUTES, REFUSALS, Fault, Injector
from faults.inmemory.machine import Machine
from faults.inmemory.story import Ending, Teller, everything, is_write
from faults.scenario import Scenario
from faults.scenarios import CUSTOM
from hedgerow.controllers.cronjob.starts import SCHEDULED_AT
from hedgerow.kube.wire import APPLY
from support.server.apiserver import Exchange

AFTER = 60.0
"""Seconds that a new life has for taking the Lease and writing something that nobody asked for."""
MORE = 200
"""Requests in a minute that faults may cost beyond those of the fault-free run."""
ATTEMPTS = 80
"""How often a request may be sent that is refused for minutes, all its retries together."""
OFTEN = 4
"""Refusals in a row of one request that the log has to tell of."""
BY_NAME = {scenario.name: scenario for scenario in (*CUSTOM, *more.SCENARIOS, *more.LONGER)}


@dataclass
class Trial:
    """What happened."""

    scenario: Scenario
    faults: tuple[Fault, ...]
    machine: Machine
    injector: Injector
    ending: Ending
    restarted_at: int = 0
    """How many writes there had been before the last life began."""
    counted: frozenset[str] = frozenset()
    """The labels of the metrics that count something."""

    def __str__(self) -> str:
        return f"{self.scenario.name}: {'; '.join(map(str, self.faults)) or 'no faults'}"


def tried(scenario: Scenario, *faults: Fault, replicas: int = 1, **settings: Any) -> Trial:
    """Play a scenario with faults."""
    machine = Machine(controllers=(scenario.controller,), replicas=replicas, **settings)
    injector = Injector(machine, faults)

    async def main() -> Trial:
        teller = Teller(machine, scenario)
        seen = 0

        def begun() -> None:
            nonlocal seen
            seen = len(injector.met)

        teller.begun = begun
        teller.upset = lambda: injector.patient and len(injector.met) > seen
        trial = Trial(scenario, faults, machine, injector, teller.ending)
        await teller.play()
        if trial.ending.wrong:
            return trial
        trial.restarted_at = len(trial.ending.writes)
        trial.counted = _counts(machine) if injector.refused else frozenset()
        for process in machine.processes:
            process.terminate()
        await anyio.sleep(AFTER)
        return trial

    return machine.run(main)


@cache
def calm(name: str, replicas: int = 1) -> Trial:
    """Play a scenario without faults, once."""
    return tried(BY_NAME[name], replicas=replicas)


def wrong(trial: Trial) -> list[str]:
    """Return everything that must not be; of a story that came to no end only where it stopped."""
    if trial.ending.wrong:
        return [*trial.ending.wrong, *_does_not_fail(trial)]
    return [problem for look in LOOKS for problem in look(trial)]


def _ends_as_without(trial: Trial) -> Iterator[str]:
    """It ends where the fault-free run ends, and so does every step that comes to rest."""
    ending, expected = trial.ending, calm(trial.scenario.name).ending
    moving = [step.moving or not trial.injector.patient for step in trial.scenario.steps] + [False]
    for number, (found, wanted) in enumerate(zip(ending.rests, expected.rests, strict=True)):
        if not moving[number] and found != wanted:
            yield f"step {number} ends otherwise: {difference(found, wanted)}"
            return


def _stays(trial: Trial) -> Iterator[str]:
    """Nothing is written once all has come to rest, by a new life neither."""
    later = trial.ending.writes[trial.restarted_at :]
    if later:
        yield f"a new life writes: {', '.join(map(str, later[:3]))}"
    if everything(trial.machine.api.store.all()) != trial.ending.rests[-1]:
        yield "it does not stay as it was"


def _writes_well(trial: Trial) -> Iterator[str]:
    """Every write is an unforced apply under a manager of ours, or a delete of a uid."""
    for exchange in trial.machine.api.exchanges:
        request = exchange.request
        match exchange.verb:
            case "apply":
                good = (
                    (request.method, request.content_type) == ("PATCH", APPLY)
                    and exchange.manager.startswith("hedgerow-")
                    and not exchange.force
                    and _knows_what(exchange)
                )
            case "delete":
                good = bool(exchange.body.get("preconditions", {}).get("uid"))
            case "review":
                good = True
            case _:
                good = request.method == "GET"
        if not good:
            yield f"not a write of ours: {exchange}"


def _knows_what(exchange: Exchange) -> bool:
    """Whether an apply says which object it means: a new one, or the one of a uid."""
    metadata = exchange.body["metadata"]
    return bool(metadata.get("uid")) or metadata.get("resourceVersion") == "1"


def _hits_what_it_means(trial: Trial) -> Iterator[str]:
    """No write takes effect on an object that it did not mean."""
    for exchange in trial.machine.api.exchanges:
        if exchange.writes and exchange.effect and exchange.before is not None:
            live = exchange.before["metadata"]["uid"]
            meant = exchange.body.get("preconditions", exchange.body.get("metadata", {})).get("uid")
            if meant != live:
                yield f"{exchange} hit another object"


def _starts_once(trial: Trial) -> Iterator[str]:
    """Each start of a CronJob is made at most once, and not before its time."""
    made = Counter[str]()
    for entry in trial.machine.api.store.log:
        if entry.type == "ADDED" and entry.key[1] == "Job":
            metadata = entry.object["metadata"]
            start = metadata["annotations"].get(SCHEDULED_AT)
            if start is None:
                continue  # it is not a CronJob's
            made[f"{metadata['ownerReferences'][0]['uid']} {start}"] += 1
            if start > metadata["creationTimestamp"] and not _clocks_jump(trial):
                yield f"the start of {start} was made at {metadata['creationTimestamp']}"
    yield from (f"the start {start} was made {n} times" for start, n in made.items() if n > 1)


def _misses_none(trial: Trial) -> Iterator[str]:
    """No start is lost while an operator is there to make it."""
    if trial.scenario.name != "cronjob-on-time":
        return
    starts = sorted(
        datetime.fromisoformat(job["metadata"]["annotations"][SCHEDULED_AT]).timestamp()
        for key, job in trial.machine.api.store.all().items()
        if key[1] == "Job"
    )
    if any(later - start != more.EVERY for start, later in pairwise(starts)):
        yield f"a start was lost: {starts}"
    if any(start % more.EVERY for start in starts):
        yield f"a start was made that the schedule does not have: {starts}"


def _clocks_jump(trial: Trial) -> bool:
    return any(fault.what.startswith("clock") for fault in trial.faults)


def _writes_no_more(trial: Trial) -> Iterator[str]:
    """What was told already is no reason to write."""
    twice = trial.faults and all(fault.what == "told twice" for fault in trial.faults)
    if twice and not _moves(trial.scenario):
        most = len(calm(trial.scenario.name).ending.writes)
        if len(trial.ending.writes) > most:
            yield f"{len(trial.ending.writes)} writes instead of {most}"


def _moves(scenario: Scenario) -> bool:
    return any(step.moving for step in scenario.steps)


def _routes_what_passed(trial: Trial) -> Iterator[str]:
    """No Service selects a colour whose template has no passed check."""
    yield from routing.unchecked(trial.machine.api.store.log)


def _is_bounded(trial: Trial) -> Iterator[str]:
    """Requests in any minute are few."""
    most = busiest(trial)
    bound = busiest(calm(trial.scenario.name)) + MORE
    if most > bound:
        yield f"{most} requests in a minute, more than {bound}"


def _does_not_insist(trial: Trial) -> Iterator[str]:
    """A request that is refused again and again is sent more and more seldom."""
    for request, times in trial.injector.refused.items():
        if times > ATTEMPTS:
            yield f"{request} was sent {times} times within {MINUTES:g} s"


def _warns(trial: Trial) -> Iterator[str]:
    """Every Warning that is told without faults is told with any one of them.

    With several it may not be: what waits in the memory of a life that ends is lost. So is what
    tells of a write, if nobody is there right after it.
    """
    if len(trial.faults) > 1:
        return
    gone = any(what in fault.what for fault in trial.faults for what in ("crash", "API server"))
    lacking = _warnings(calm(trial.scenario.name)) - _warnings(trial)
    lacking -= {"FieldRestored"} if gone else set()
    # Each Event is tried once.
    lacking -= {
        exchange.body["reason"]
        for fault, exchange in trial.injector.met
        if exchange.api.kind == "Event" and fault.what in (*REFUSALS, *LOSSES)
    }
    if lacking:
        yield f"never told: {', '.join(sorted(lacking))}"


def _warnings(trial: Trial) -> set[str]:
    return {
        obj["reason"]
        for key, obj in trial.machine.api.store.all().items()
        if key[1] == "Event" and obj["type"] == "Warning"
    }


def busiest(trial: Trial) -> int:
    """Count the requests of the busiest minute."""
    window: deque[float] = deque()
    most = 0
    for exchange in trial.machine.api.exchanges:
        window.append(exchange.sent)
        while window[0] < exchange.sent - 60:
            window.popleft()
        most = max(most, len(window))
    return most


def _is_told(trial: Trial) -> Iterator[str]:
    """What went wrong is said by a metric; what goes on, by a line of the log."""
    for fault, exchange in trial.injector.met:
        if fault.what in ANSWERS:
            code = ANSWERS[fault.what][0]
            if str(code) not in trial.counted:
                yield f"no metric counts the {code}"
            if trial.injector.refused[str(exchange)] >= OFTEN and not _said(trial, exchange):
                yield f"nothing in the log says that {exchange} is {fault.what}"


def _counts(machine: Machine) -> frozenset[str]:
    """Return the labels under which the metrics of any life count something."""
    lives = [meters for process in machine.processes for meters in process.meters]
    return frozenset(
        label
        for meters in lives
        for family in meters.registry.collect()
        for sample in family.samples
        if sample.value
        for label in sample.labels.values()
    )


def _said(trial: Trial, exchange: Exchange) -> bool:
    return any(
        exchange.name in str(entry) and entry["level"] in {"warning", "error"}
        for entry in trial.machine.logs
    )


def _does_not_fail(trial: Trial) -> Iterator[str]:
    """No pass fails for a reason of its own, and no life ends for one."""
    for entry in trial.machine.logs:
        if entry["event"] == "pass failed":
            yield f"a pass failed: {entry}"
    for process in trial.machine.processes:
        for error in process.ends:
            if not _expected(error):
                yield f"a life ended with {error!r}"


def _expected(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(map(_expected, error.exceptions))
    return type(error).__name__ in {"LeadershipLost", "Unreachable", "Unavailable", "Throttled"}


def _writes_alone(trial: Trial) -> Iterator[str]:
    """Whoever writes holds the Lease at that moment, if there is an election."""
    if not all(process.settings.leader_elect for process in trial.machine.processes):
        return
    holder, known = "", dict[str, str]()
    for exchange in trial.machine.api.exchanges:
        if exchange.api.kind == "Lease" and exchange.effect and exchange.after:
            holder = exchange.after["spec"].get("holderIdentity", "")
            if holder:
                known[exchange.client] = holder
        elif is_write(exchange) and exchange.effect and known.get(exchange.client) != holder:
            yield f"{exchange.client} wrote {exchange} while another held the Lease"


LOOKS = (
    _does_not_fail,
    _writes_well,
    _hits_what_it_means,
    _starts_once,
    _misses_none,
    _routes_what_passed,
    _ends_as_without,
    _stays,
    _writes_no_more,
    _is_bounded,
    _does_not_insist,
    _warns,
    _is_told,
    _writes_alone,
)


def difference(found: str, wanted: str) -> str:
    at = next((n for n, (a, b) in enumerate(zip(found, wanted, strict=False)) if a != b), 0)
    return f"…{found[max(0, at - 60) : at + 60]}… instead of …{wanted[max(0, at - 60) : at + 60]}…"
