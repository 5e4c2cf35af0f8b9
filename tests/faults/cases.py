"""Cases: every fault that a scenario is run with, and how such a run is made and judged."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from faults import troubles
from faults.checks import OF_TROUBLE, both_at_work, broken, busiest
from faults.endings import warnings
from faults.machine import QUIET, Reference, Run, World, prepared
from faults.proxy import Reply, Trouble
from faults.scenario import USER, Object, Scenario, apply, collect, jobs
from faults.scenarios import CRON, EVERY_SECOND
from faults.strikes import STRIKES, strike
from faults.troubles import ANY_STEP, LONG_OUTAGE, OUTAGE, REFUSALS, Target
from hedgerow_testing.waiting import eventually

SILENT_PATIENCE = 240.0
"""A watch that says nothing is given up after 90 s."""
CLOCKS = {"an hour": 3600.0, "a year": 365 * 86400.0}
REFUSALS_TOTAL = "hedgerow_refusals_total"
RESTARTS_TOTAL = "hedgerow_watch_restarts_total"
OF_FORCE = frozenset({"FieldClaimed"})
"""The reason of the Event that tells of a forced write: without its answer there is none.

The record on the object says the same.
"""
AFTER_A_WRITE = frozenset({"FieldRestored"}) | OF_FORCE
"""Reasons of Events that tell of a write: a crash right after it leaves nothing to tell."""


@dataclass
class Outcome:
    """What became of a run."""

    passed: bool
    why: str = ""
    longest: float = 0.0
    """Seconds that the slowest step took."""
    busiest: int = 0
    came: bool = True
    """Whether the trouble came at all."""


@dataclass(frozen=True)
class Case:
    """One run to make: a fault, a scenario, and where in it."""

    fault: str
    scenario: str
    where: str
    make: Callable[[World], Outcome] = field(compare=False, repr=False)
    slow: bool = False
    """Whether it mostly waits, and so may run beside others."""

    @property
    def name(self) -> str:
        return f"{self.fault} | {self.scenario} | {self.where}"


References = Mapping[str, Reference]


def cases(references: References) -> Iterator[Case]:
    """Return all of them."""
    for known in references.values():
        yield from _of_watches(known)
        yield from _of_writes(known)
        yield from _of_refusals(known)
        yield from _of_staleness(known)
        yield from _of_remaking(known)
        yield from _of_ending(known)
        yield from _of_replicas(known)
        yield from _of_clocks(known)


# --- one trouble on one line --------------------------------------------------------------------


@dataclass(frozen=True)
class Spoilt:
    """A run with one trouble on the line of the only operator."""

    known: Reference
    trouble: Callable[[Run], Trouble]
    step: int
    """The step in which it comes."""
    said: Callable[[Run], list[str]] = lambda run: []
    """What is to be said of it, and is not."""
    patience: float = 90.0
    unheard: frozenset[str] = frozenset()

    def __call__(self, world: World) -> Outcome:
        last = self.known.last(self.step)
        with prepared(world, self.known.scenario) as run:
            run.reference, run.patience, run.unheard = self.known, self.patience, self.unheard
            trouble = run.line.trouble = self.trouble(run)
            run.operator.start()

            def act() -> list[str]:
                run.go(last)
                run.rest()
                return [*broken(run), *untold(run, last), *self.said(run)]

            return judged(run, act, lambda: bool(trouble.fired))


def judged(run: Run, act: Callable[[], list[str]], came: Callable[[], bool]) -> Outcome:
    try:
        lines = act()
    except AssertionError as error:
        lines = [str(error)]
    is_met = came()
    if not lines and not is_met:
        lines = ["the trouble did not come"]
    why = "; ".join(lines)
    if lines:
        _keep(run, why)
    return Outcome(not lines, why, run.longest, busiest(run), is_met)


def _keep(run: Run, why: str) -> None:
    """Keep what passed in a run that failed, beside its logs."""
    for operator in run.operators:
        path = operator.log.with_suffix(".record")
        lines = (
            f"{one.began:.3f} step {one.step} {one} {one.body.decode(errors='replace')[:2000]}"
            for one in list(operator.line.record)
        )
        path.write_text("\n".join([why, *lines]), "utf-8")


def untold(run: Run, last: int) -> list[str]:
    """Return the Warning Events that are missing, and those that are too many."""
    assert run.reference
    wanted, found = run.wanted(last), set(warnings(run.people, run.namespace))
    known = {reason for _, reason, _ in run.reference.told[last]} | OF_TROUBLE | run.heard_too
    return [
        *(f"no Event {e}" for e in sorted(wanted - found) if e[1] not in run.unheard),
        *(f"an Event {e}" for e in sorted(found - wanted) if e[1] not in known),
    ]


# --- writes -------------------------------------------------------------------------------------


def _of_writes(known: Reference) -> Iterator[Case]:
    """Crashes and lost answers, around every write."""
    timeout = Reply(504, troubles.status(504, "Timeout", "request did not complete in time"))

    def killing(run: Run) -> Callable[[], object]:
        return run.operator.kill

    made: dict[str, Callable[[Target], Callable[[Run], Trouble]]] = {
        "crash before": lambda at: lambda run: troubles.Before(at, killing(run), arrives=False),
        "crash after": lambda at: lambda run: troubles.After(at, killing(run)),
        "answer lost": lambda at: lambda run: troubles.After(at),
        "504 after it took effect": lambda at: lambda run: troubles.After(at, reply=timeout),
    }
    said: dict[str, Callable[[Run], list[str]]] = {
        "answer lost": lambda run: _uncounted(run, "<error>"),
        "504 after it took effect": lambda run: _uncounted(run, "504"),
    }
    for fault, trouble in made.items():
        for target in known.writes:
            unheard = AFTER_A_WRITE if fault.startswith("crash") else OF_FORCE
            hears = said.get(fault, lambda run: [])
            spoilt = Spoilt(known, trouble(target), target.step, hears, unheard=unheard)
            yield Case(fault, known.scenario.name, str(target), spoilt)


def _of_refusals(known: Reference) -> Iterator[Case]:
    """Every write refused once, and what it writes to refused for a while."""
    for code, reply in REFUSALS.items():
        lasts = LONG_OUTAGE if code in {"429", "503", "dropped"} else OUTAGE
        for target in known.writes:

            def refused(run: Run, target: Target = target, reply: Any = reply) -> Trouble:
                return troubles.Refused(target, reply)

            yield Case(
                f"{code} once",
                known.scenario.name,
                str(target),
                Spoilt(
                    known,
                    refused,
                    target.step,
                    lambda run, code=code: _uncounted(run, code),
                    unheard=_tried_once(target),
                ),
            )
        told: set[str] = set()
        for target in known.writes:
            if target.signature in told:
                continue
            told.add(target.signature)

            def spoilt(
                run: Run, target: Target = target, reply: Any = reply, lasts: float = lasts
            ) -> Trouble:
                first = replace(target, number=1, step=ANY_STEP)  # where time decides, any step
                return troubles.Refused(first, reply, lasts=lasts)

            yield Case(
                f"{code} for a while",
                known.scenario.name,
                target.signature,
                Spoilt(
                    known,
                    spoilt,
                    target.step,
                    lambda run, code=code, target=target: [
                        *_uncounted(run, code),
                        *_unsaid(run, code, target),
                    ],
                    unheard=_tried_once(target),
                ),
                slow=True,
            )


def _tried_once(target: Target) -> frozenset[str]:
    """Return the reason of the Event that is refused, if it is one: the status tells it anyway."""
    _, kind, *words = target.signature.split()
    return frozenset(words[:1] if kind == "Event" else ())


def _uncounted(run: Run, code: str) -> list[str]:
    """Return whether no metric says that there was such an answer; one that ended has none."""
    if len(run.operator.births) > 1:
        return []
    code = "<error>" if code == "dropped" else code
    series = run.operator.measured()
    wanted = f'code="{code}"'
    names = (name for name in series if name.startswith("hedgerow_api_requests_total"))
    counted = sum(series[name] for name in names if wanted in name)
    return [] if counted else [f"no metric counts {code}"]


def _unsaid(run: Run, code: str, target: Target) -> list[str]:
    """Return whether no line in the log says it; a 409 is usual, and counted at first."""
    series = run.operator.measured()
    counted = any(series[name] for name in series if name.startswith(REFUSALS_TOTAL))
    usual = code == "409" and (counted or target.step == ANY_STEP)
    said = usual or run.operator.complaints()
    return (
        [] if said or len(run.operator.births) > 1 else ["no line in the log says what was wrong"]
    )


# --- watches ------------------------------------------------------------------------------------


def _of_watches(known: Reference) -> Iterator[Case]:
    half = b'{"type":"MODIFIED","object":{"apiVersion":"v1","ki'
    garbage = b'{"type":"MODIFIED","object":"\xff\xfe"}\n'
    gone = b'{"type":"ERROR","object":%s}\n' % troubles.GONE
    kinds: dict[str, Callable[[str], Trouble]] = {
        "watch cut": troubles.Cut,
        "watch cut mid-line": lambda plural: troubles.Cut(plural, half),
        "watch silent": troubles.Half,
        "watch 410 as status": troubles.Expired,
        "watch 410 as event": lambda plural: troubles.Cut(plural, gone),
        "watch garbage": lambda plural: troubles.Cut(plural, garbage),
        "watch events twice": troubles.Twice,
        "watch events swapped": troubles.Swapped,
        "watch events late": troubles.Late,
    }
    owned, related = known.scenario.plurals, known.scenario.related
    for fault, trouble in kinds.items():
        is_restart = fault.split()[1] != "events"
        for plural in [*owned, *related] if is_restart else owned:
            slow = fault == "watch silent"

            def spoilt(run: Run, plural: str = plural, trouble: Any = trouble) -> Trouble:
                return trouble(plural)

            def said(run: Run, *, counts: bool = is_restart) -> list[str]:
                return _unrestarted(run) if counts else []

            last = len(known.scenario.steps) - 1
            yield Case(
                fault,
                known.scenario.name,
                plural,
                Spoilt(known, spoilt, last, said, SILENT_PATIENCE if slow else 90.0),
                slow,
            )


def _unrestarted(run: Run) -> list[str]:
    """Wait until a metric counts a watch that was opened anew; say so if none does."""

    def counted() -> bool:
        series = run.operator.measured()
        return any(series[name] for name in series if name.startswith(RESTARTS_TOTAL))

    try:
        eventually(counted, run.patience)
    except AssertionError:
        return ["no metric counts a watch that was opened anew"]
    return []


# --- stale reads --------------------------------------------------------------------------------


def _of_staleness(known: Reference) -> Iterator[Case]:
    resting = [n for n, step in enumerate(known.scenario.steps[:-1]) if n and not step.moving]
    for fault, restarts in (("stale after a restart", True), ("stale after a reconnect", False)):
        for number in resting:
            case = Older(known, number, restarts=restarts)
            where = known.scenario.steps[number].name
            yield Case(fault, known.scenario.name, f"after '{where}'", case)


@dataclass(frozen=True)
class Older:
    """A run in which the operator is shown what there was a step ago.

    No API server shows that to who asks as hedgerow does; what comes of it must be right all the
    same, but for an Event that tells of a write, and a check that is made once more.
    """

    known: Reference
    step: int
    restarts: bool

    def __call__(self, world: World) -> Outcome:
        last = self.known.last(self.step)
        with prepared(world, self.known.scenario) as run:
            run.reference, run.unheard = self.known, AFTER_A_WRITE
            # What it said is seen where it is gone, and what is not seen to be told is told again.
            run.heard_too = frozenset({"FieldRestored", "AnnotationIgnored"})
            # If it learns that a check's Job is gone before it learns of the change, it checks
            # what there was once more; a CronJob's starts are on record.
            run.made_again = frozenset({"BlueGreen"})
            trouble = run.line.trouble = troubles.Stale()
            versions = {-1: _version(run)}

            def between(run: Run, number: int) -> None:
                versions[number] = _version(run)
                if number != self.step:
                    return
                trouble.version = versions[number - 1]
                if self.restarts:
                    run.operator.stop()
                    run.operator.start()
                else:
                    trouble.expire()
                    world.proxy.cut(run.line)
                run.until(lambda: trouble.fired, "what there was is asked for")
                # What it does while it believes in that is done before anybody goes on.
                run.until(lambda: run.silent() >= QUIET, "it has caught up")

            run.between = between
            run.operator.start()

            def act() -> list[str]:
                run.go(last)
                run.rest()
                return [*broken(run), *untold(run, last)]

            return judged(run, act, lambda: bool(trouble.fired))


def _version(run: Run) -> str:
    return run.people.version()


# --- made anew, and ended -----------------------------------------------------------------------


def _of_remaking(known: Reference) -> Iterator[Case]:
    removed = {n for n, step in enumerate(known.scenario.steps) if step.name == "deleted"}
    wanted: dict[int, Remade] = {}
    for target in known.writes:
        if target.step not in {*removed, ANY_STEP} and known.scenario.anew:
            remade = wanted.setdefault(target.step, Remade(known, target.step))
            case = RemadeAt(remade, target)
            yield Case("deleted and made anew", known.scenario.name, str(target), case)


def make_anew(run: Run, identity: Object) -> None:
    """Have a resource deleted, what it owned collected, and the same made under its name."""
    live = run.people.get(identity)
    if live is None:
        return
    run.people.delete(identity)
    run.people.release(identity)
    collect(run.people, run.scenario.children)
    run.people.apply({**identity, **run.scenario.written(live)}, USER, force=True)


class Remade:
    """How a scenario goes when its resource is made anew after a step came to rest."""

    def __init__(self, known: Reference, step: int) -> None:
        self.known, self.step = known, step
        steps = known.scenario.steps
        self.last = known.last(step) if steps[step].moving else step
        self._lock = threading.Lock()
        self._ending: Object | None = None

    def ending(self, world: World) -> Object:
        """Return where it comes to."""
        with self._lock:
            if self._ending is None:
                self._ending = self._run(world)
            return self._ending

    def _run(self, world: World) -> Object:
        scenario = self.known.scenario
        with prepared(world, scenario) as run:
            run.operator.start()
            run.go(self.step)
            make_anew(run, scenario.resource)
            _finish(run, self)
            return run.ending()


@dataclass(frozen=True)
class RemadeAt:
    """A run in which the resource is made anew right before a write."""

    remade: Remade
    target: Target

    def __call__(self, world: World) -> Outcome:
        wanted = self.remade.ending(world)
        scenario = self.remade.known.scenario
        with prepared(world, scenario) as run:

            def remake() -> None:
                # A write of the step before may come as this one begins, before what it changes.
                eventually(lambda: run.acted >= min(self.target.step, self.remade.step), 30)
                make_anew(run, scenario.resource)

            trouble = run.line.trouble = troubles.Before(self.target, remake, arrives=True)
            run.operator.start()

            def act() -> list[str]:
                run.go(self.remade.step, over=lambda: bool(trouble.fired))
                if not trouble.fired:
                    return []
                _finish(run, self.remade, wanted)
                return broken(run)

            return judged(run, act, lambda: bool(trouble.fired))


def _finish(run: Run, remade: Remade, wanted: Object | None = None) -> None:
    """Take what steps are left, and come to rest."""
    steps = run.scenario.steps

    def collected() -> bool:
        return collect(run.people, run.scenario.children)

    def await_start(number: int) -> None:
        """Where schedules run on, wait for what the step shows: a later one stops them."""
        if steps[number].moving:
            seen = steps[number].seen
            run.until(run.after_news(lambda: collected() and seen(run.people)), "starts again")

    await_start(remade.step)
    for number in range(remade.step + 1, remade.last + 1):
        run.world.proxy.begin(run.line, number)
        steps[number].act(run.people)
        await_start(number)
    if wanted is None:
        run.until(lambda: collected() and run.silent() > 2.0, "no more writes")
    else:
        run.come_to(wanted, "made anew", lambda people: collected())
    run.rest(wanted)


def _of_ending(known: Reference) -> Iterator[Case]:
    for target in known.writes:
        # While schedules run on, so does their status: nothing here ends what is in a namespace.
        if target.step != ANY_STEP and not known.scenario.steps[target.step].moving:
            yield Case("namespace deleted", known.scenario.name, str(target), Ended(known, target))


@dataclass(frozen=True)
class Ended:
    """A run in which the namespace is deleted right before a write."""

    known: Reference
    target: Target

    def __call__(self, world: World) -> Outcome:
        with prepared(world, self.known.scenario) as run:
            trouble = troubles.Before(self.target, run.people.close_namespace, arrives=True)
            run.line.trouble = trouble
            run.operator.start()

            def act() -> list[str]:
                run.go(over=lambda: bool(trouble.fired))
                eventually(lambda: run.silent() > 3.0, 60, "no more writes")
                loud = [e for e in run.operator.complaints() if "orbidden" in str(e)]
                return [*broken(run), *(f"logged: {entry}" for entry in loud)]

            return judged(run, act, lambda: bool(trouble.fired))


# --- two replicas -------------------------------------------------------------------------------


def _of_replicas(known: Reference) -> Iterator[Case]:
    for fault in STRIKES:
        case = Replicas(known, fault)
        yield Case(f"two replicas, leader {fault}", known.scenario.name, "after a step", case)
    for code in REFUSALS:
        case = Replicas(known, "refused its Lease", code)
        name = "two replicas, leader refused its Lease"
        yield Case(name, known.scenario.name, f"{code} after a step", case)


@dataclass(frozen=True)
class Replicas:
    """A run with two replicas, in which something happens to the one that leads."""

    known: Reference
    fault: str
    code: str = ""

    def __call__(self, world: World) -> Outcome:
        with prepared(world, self.known.scenario, replicas=2) as run:
            run.reference = self.known
            if self.code:  # the leader may end while a write is on its way: nobody learns of it
                run.unheard = AFTER_A_WRITE
            for operator in run.operators:
                operator.line.trouble = troubles.Off(leases=self.code)
            timers: list[threading.Timer] = []

            def between(run: Run, number: int) -> None:
                if number == 1:
                    timers.extend(self._strike(run))

            run.between = between
            for operator in run.operators:
                operator.start()

            def act() -> list[str]:
                run.go()
                for timer in timers:
                    timer.join()
                run.rest()
                last = len(self.known.scenario.steps) - 1
                return [*broken(run), *both_at_work(run), *untold(run, last)]

            return judged(run, act, lambda: bool(timers))

    def _strike(self, run: Run) -> Iterator[threading.Timer]:
        leader = next(
            (one for one in run.operators if any(w.done for w in one.line.writes())),
            run.operator,
        )
        timer = threading.Timer(OUTAGE, strike(run.world, leader, self.fault))
        timer.start()
        yield timer


# --- clocks -------------------------------------------------------------------------------------


def _of_clocks(known: Reference) -> Iterator[Case]:
    for name, seconds in CLOCKS.items():
        for way, sign in (("ahead", 1), ("behind", -1)):
            fault = f"clock {name} {way}, and back"
            case: Callable[[World], Outcome] = Clock(known, sign * seconds)
            if known.scenario.controller == "cronjob":
                case = Starts(known.scenario, sign * seconds)
            yield Case(fault, known.scenario.name, "after a step", case)


@dataclass(frozen=True)
class Clock:
    """A run in which the operator's wall clock is wrong for two steps."""

    known: Reference
    seconds: float

    def __call__(self, world: World) -> Outcome:
        with prepared(world, self.known.scenario) as run:
            run.reference = self.known

            def between(run: Run, number: int) -> None:
                if number in {1, 3}:
                    wrong = self.seconds if number == 1 else 0.0
                    run.operator.clock.write_text(str(wrong), "utf-8")

            run.between = between
            run.operator.start()

            def act() -> list[str]:
                run.go()
                run.rest()
                last = len(self.known.scenario.steps) - 1
                return [*broken(run), *untold(run, last)]

            return judged(run, act, lambda: True)


@dataclass(frozen=True)
class Starts:
    """A run in which Jobs start while the wall clock is wrong: starts go on, each once.

    It has no reference: what is due by a clock ahead is started. Of the hour or year of starts that
    it has passed over, the newest is made, and what it leaves on record is put right. By a clock
    behind nothing is started, since the last start is still to come, and that is told.
    """

    scenario: Scenario
    seconds: float

    def __call__(self, world: World) -> Outcome:
        ahead = self.seconds > 0
        with prepared(world, self.scenario) as run:
            run.operator.start()

            def act() -> list[str]:
                template = {"spec": {"template": {"spec": _POD}}}
                apply(CRON, schedule=EVERY_SECOND, jobTemplate=template)(run.people)
                self._starts(run, "at first")
                run.operator.clock.write_text(str(self.seconds), "utf-8")
                if ahead:
                    self._starts(run, "by a wrong clock")
                else:
                    run.until(lambda: run.silent() > 2.0, "no start until its time")
                run.operator.clock.write_text("0", "utf-8")
                self._starts(run, "by a right clock again")
                run.people.edit(CRON, {"spec": {"suspend": True}}, "kubectl-edit")
                run.until(lambda: run.silent() > 2.0, "no more writes")
                run.rest()
                judged_by = self._unlike_one_missed_time if ahead else self._untold_behind
                return [*broken(run), *judged_by(run)]

            return judged(run, act, lambda: True)

    def _unlike_one_missed_time(self, run: Run) -> Iterator[str]:
        seconds = sorted(
            int(job["metadata"]["name"].rpartition("-")[2]) for job in jobs(run.people)
        )
        if max(later - one for one, later in pairwise(seconds)) < self.seconds - 60:
            yield f"starts that were missed are made up for: {seconds}"
        told = {reason for _, reason, _ in warnings(run.people, run.namespace)}
        yield from (
            f"no Event {one}" for one in ("TooManyMissedTimes", "RecordAhead") if one not in told
        )

    def _untold_behind(self, run: Run) -> Iterator[str]:
        told = {reason for _, reason, _ in warnings(run.people, run.namespace)}
        if told != {"ClockBehind"}:
            yield f"told {sorted(told)} instead of ClockBehind alone"

    def _starts(self, run: Run, when: str) -> None:
        before = {job["metadata"]["name"] for job in jobs(run.people)}
        began = time.monotonic()

        def more() -> bool:
            return len({job["metadata"]["name"] for job in jobs(run.people)} - before) >= 3

        run.until(run.after_news(more), f"three starts {when}", 60)
        run.longest = max(run.longest, time.monotonic() - began)


_POD = {"restartPolicy": "Never", "containers": [{"name": "hello", "image": "busybox"}]}
