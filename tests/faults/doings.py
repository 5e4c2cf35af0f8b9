"""Doings: what a fault does to a run, where in a scenario it can, and how such a run is made.

Each is data and little more: requests, watches, processes, clocks and the API server are upset
through `Run` and the troubles on its lines, whichever backend these are of.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import anyio

from faults.endings import warnings
from faults.exchange import ANY_STEP, Exchange, Reply, Several, Target, Trouble
from faults.run import Operator, Reference, Run, World, Wrong
from faults.scenario import USER, Object, Scenario, apply, collect, jobs
from faults.scenarios import CRON, EVERY_SECOND
from faults.troubles import Off, OnWrite, Stale
from faults.verdict import (
    ATTEMPTS,
    both_at_work,
    broken,
    busiest,
    uncounted,
    unrestarted,
    unsaid,
    untold,
)
from hedgerow_testing.waiting import eventually

OF_FORCE = frozenset({"FieldClaimed"})
"""The reason of the Event that tells of a forced write: without its answer there is none.

The record on the object says the same.
"""
AFTER_A_WRITE = frozenset({"FieldRestored"}) | OF_FORCE
"""Reasons of Events that tell of a write: a crash right after it leaves nothing to tell."""
CARRIED_OUT_LATER = 8.0
"""Seconds after its answer was lost that a request is carried out."""
CLOCK_WRONG = 120.0
"""Seconds that a clock is wrong that becomes so at a write."""


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
class Place:
    """Where in a scenario: at a write, with watches of a kind, or after a step."""

    text: str
    target: Target | None = None
    plural: str = ""
    step: int = 1

    def __str__(self) -> str:
        return self.text

    @property
    def within(self) -> int:
        """The step in which it is."""
        return self.target.step if self.target else self.step


async def _nothing() -> list[str]:
    return []


@dataclass
class Armed:
    """A fault that is about to come in a run."""

    came: Callable[[], object]
    said: Callable[[], Awaitable[list[str]]] = _nothing
    """What is to be said of it, and is not."""


def at_writes(known: Reference) -> Iterator[Place]:
    """Return a place for each write."""
    return (Place(str(target), target) for target in known.writes)


class Doing:
    """What a fault does."""

    replicas: ClassVar[int] = 1

    def places(self, known: Reference, *, fine: bool) -> Iterable[Place]:
        """Return where it can come in a scenario; `fine`: at each write as well as after a step."""
        return at_writes(known) if fine else [Place("after a step")]

    def arm(self, run: Run, place: Place) -> Armed:
        """Have it come in a run."""
        raise NotImplementedError

    def play(self, world: World, known: Reference, place: Place) -> Outcome:
        """Make the run in which it comes at a place."""
        return played(world, known, [(self, place)])


def played(
    world: World,
    known: Reference,
    parts: Sequence[tuple[Doing, Place]],
    *,
    replicas: int = 1,
    elected: bool = True,
) -> Outcome:
    """Make a run in which some faults come, and judge it."""
    replicas = max([replicas, *(doing.replicas for doing, _ in parts)])

    async def main(run: Run) -> Outcome:
        run.reference = known
        armed = [doing.arm(run, place) for doing, place in parts]
        last = max(known.last(place.within) for _, place in parts)
        run.start()

        async def act() -> list[str]:
            await run.go(last)
            await run.later_done()
            await run.rest()
            lines = [*broken(run), *(both_at_work(run) if replicas > 1 and elected else ())]
            if len(parts) == 1:  # of several, one may keep what the other leads to from being told
                lines += [*untold(run, last), *await armed[0].said()]
            return lines

        # What one fault upsets, another one may not meet any more.
        return await judged(run, act, lambda: len(parts) > 1 or all(each.came() for each in armed))

    return world.play(known.scenario, main, replicas=replicas, elected=elected)


async def judged(
    run: Run, act: Callable[[], Awaitable[list[str]]], came: Callable[[], object]
) -> Outcome:
    """Make a run that is prepared, and say what became of it."""
    try:
        lines = await act()
    except AssertionError as error:
        lines = [str(error)]
    is_met = bool(came())
    if not lines and not is_met:
        lines = ["the trouble did not come"]
    why = "; ".join(lines)
    if lines:
        run.keep(why)
    return Outcome(not lines, why, run.longest, busiest(run), is_met)


def calm(world: World, scenario: Scenario) -> Reference:
    """Run a scenario without any trouble, and return how that goes. Raises Wrong."""

    async def main(run: Run) -> Reference:
        run.start()
        await run.go()
        await run.rest()
        if lines := broken(run):
            raise Wrong("; ".join(lines))
        writes = tuple(t for t in run.writes() if _is_wanted(world, scenario, t))
        endings, told = tuple(run.endings), tuple(run.told)
        return Reference(scenario, endings, told, writes, busiest(run, 60.0), run.versions())

    return world.play(scenario, main)


def _is_wanted(world: World, scenario: Scenario, target: Target) -> bool:
    """Return whether a write comes in every run, while a Lease or a schedule goes on with time."""
    if target.step == ANY_STEP:
        return target.number <= world.renewals
    return not scenario.steps[target.step].moving or target.number == 1


# --- one write ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answers(Doing):
    """A write is answered otherwise, once or as long as it `lasts`, or its operator is killed.

    `code` is what the metrics are to count.
    """

    answer: Reply | Exception | None = None
    code: str = ""
    arrives: bool = True
    later: bool = False
    kills: str = ""
    """Whether that is before or after it arrives."""
    lasts: str = ""
    """The name of a time in `Pace`."""

    def places(self, known: Reference, *, fine: bool) -> Iterable[Place]:
        if fine or not self.lasts:
            return at_writes(known)
        first: dict[str, Target] = {}
        for target in known.writes:
            first.setdefault(target.signature, target)
        return [Place(name, target) for name, target in first.items()]

    def arm(self, run: Run, place: Place) -> Armed:
        target = place.target
        assert target
        named = target
        if place.text == target.signature:  # where time decides, any step
            named = replace(target, number=1, step=ANY_STEP)
        trouble = OnWrite(
            named,
            act=self._kill(run) if self.kills else None,
            after=self.kills == "after",
            arrives=self.arrives,
            later=CARRIED_OUT_LATER if self.later else 0.0,
            answer=self.answer,
            lasts=getattr(run.pace, self.lasts) if self.lasts else 0.0,
        )
        disturb(run, trouble)
        run.unheard |= AFTER_A_WRITE if self.kills else OF_FORCE if self.arrives else set()
        _, kind, *words = target.signature.split()
        if kind == "Event" and not self.kills:  # each is tried once; the status tells it anyway
            run.unheard |= set(words[:1])

        async def said() -> list[str]:
            operator, lines = run.operator, list[str]()
            if self.code:
                lines += uncounted(operator, self.code)
            if self.lasts and not (self.code == "409" and target.step == ANY_STEP):
                lines += unsaid(operator, usual=self.code == "409")
            if trouble.fired > ATTEMPTS:
                lines.append(f"{target.signature} was sent {trouble.fired} times")
            return lines

        return Armed(lambda: trouble.fired, said)

    def _kill(self, run: Run) -> Callable[[Exchange], object]:
        return lambda asked: by_client(run, asked).kill()


def by_client(run: Run, asked: Exchange) -> Any:
    """Return the operator that asks."""
    return next(one for one in run.operators if one.line.client == asked.client)


def disturb(run: Run, trouble: Trouble) -> None:
    """Have trouble on every line, besides what there is."""
    for line in run.lines:
        line.trouble = Several(line.trouble, trouble)


# --- watches, and what is read ------------------------------------------------------------------


@dataclass(frozen=True)
class Watches(Doing):
    """The watches of a kind are upset, as some steps begin or at a write."""

    make: Callable[[Run, str, Target | None], Trouble] = field(compare=False)
    restarts: bool = True
    """Whether they are opened anew for it."""
    silent: bool = False

    def places(self, known: Reference, *, fine: bool) -> Iterable[Place]:
        scenario = known.scenario
        for plural in (*scenario.plurals, *(scenario.related if self.restarts or fine else ())):
            if not fine:
                yield Place(plural, plural=plural, step=len(scenario.steps) - 1)
            for place in at_writes(known) if fine else ():
                yield replace(place, text=f"{plural} at {place}", plural=plural)

    def arm(self, run: Run, place: Place) -> Armed:
        trouble = self.make(run, place.plural, place.target)
        disturb(run, trouble)
        run.is_patient = place.target is None
        if self.silent:
            run.patience = run.pace.silent

        async def said() -> list[str]:
            return await unrestarted(run) if self.restarts and trouble.fired else []

        # Late in a run nothing may come on a watch any more.
        return Armed(lambda: trouble.fired or place.target, said)


@dataclass(frozen=True)
class Reads(Doing):
    """The operator is shown what there was a step ago.

    No API server shows that to who asks as hedgerow does; what comes of it must be right all the
    same, but for an Event that tells of a write, and a check that is made once more.
    """

    restarts: bool

    def places(self, known: Reference, *, fine: bool) -> Iterable[Place]:
        for number, step in enumerate(known.scenario.steps[:-1]):
            if number and not step.moving:
                yield Place(f"after '{step.name}'", step=number)

    def arm(self, run: Run, place: Place) -> Armed:
        run.unheard |= AFTER_A_WRITE
        # What it said is seen where it is gone, and what is not seen to be told is told again.
        run.heard_too |= {"FieldRestored", "AnnotationIgnored"}
        # If it learns that a check's Job is gone before it learns of the change, it checks
        # what there was once more; a CronJob's starts are on record.
        run.made_again |= {"BlueGreen"}
        versions = {-1: run.people.version()}
        trouble = Stale("", None, lambda: versions[place.step - 1], run.pace.lag)
        disturb(run, trouble)

        async def between(number: int) -> None:
            versions[number] = run.people.version()
            if number != place.step:
                return
            if self.restarts:
                trouble.show()
                run.operator.restart()
            else:
                run.strike(lambda: trouble.strike(run.operator.line))
            await run.until(lambda: trouble.fired, "what there was is asked for")
            # What it does while it believes in that is done before anybody goes on.
            await run.quiet(run.pace.quiet, "it has caught up")

        run.between.append(between)
        return Armed(lambda: trouble.fired)


# --- made anew, and ended -----------------------------------------------------------------------


def make_anew(run: Run) -> None:
    """Have the resource deleted, what it owned collected, and the same made under its name."""
    identity = run.scenario.resource
    live = run.people.get(identity)
    if live is None:
        return
    run.people.delete(identity)
    run.people.release(identity)
    collect(run.people, run.scenario.children)
    run.people.apply({**identity, **run.scenario.written(live)}, USER, force=True)


@dataclass(frozen=True)
class Remakes(Doing):
    """The resource is made anew at a write; `namespace`: with all that is in its namespace.

    It ends as if that had happened once the step had come to rest.
    """

    after: bool = False
    namespace: bool = False

    def places(self, known: Reference, *, fine: bool) -> Iterable[Place]:
        removed = {n for n, step in enumerate(known.scenario.steps) if step.name == "deleted"}
        for place in at_writes(known) if known.scenario.anew else ():
            if place.within not in {*removed, ANY_STEP}:
                yield place

    def play(self, world: World, known: Reference, place: Place) -> Outcome:
        what = (self.namespace, place.within)
        wanted = known.once(what, lambda: self._wanted(world, known, place))

        async def main(run: Run) -> Outcome:
            def remake(_asked: Exchange) -> None:
                # A write of the step before may come as this one begins, before what it changes.
                eventually(lambda: run.acted >= place.within, 30)
                self._remake(run)

            assert place.target
            trouble = OnWrite(place.target, act=remake, after=self.after)
            disturb(run, trouble)
            run.start()

            async def act() -> list[str]:
                await run.go(place.within, over=lambda: bool(trouble.fired))
                if not trouble.fired:
                    return []
                await _finish(run, known, place.within, wanted)
                return broken(run)

            return await judged(run, act, lambda: trouble.fired)

        return world.play(known.scenario, main)

    def _wanted(self, world: World, known: Reference, place: Place) -> Object:
        async def main(run: Run) -> Object:
            run.start()
            await run.go(place.within)
            self._remake(run)
            await _finish(run, known, place.within)
            return run.ending()

        return world.play(known.scenario, main)

    def _remake(self, run: Run) -> None:
        if self.namespace:
            run.make_namespace_anew()
        else:
            make_anew(run)


async def _finish(run: Run, known: Reference, step: int, wanted: Object | None = None) -> None:
    """Take what steps are left, and come to rest."""
    steps = known.scenario.steps

    def collected() -> bool:
        return collect(run.people, run.scenario.children)

    own = f"{run.scenario.resource['kind']}/"
    rests = known.endings[known.last(step) if steps[step].moving else step]
    tells = any(obj.get("status") for name, obj in rests.items() if name.startswith(own))

    def has_told() -> bool:
        """Return whether a slow operator has seen what was made anew: silence alone may precede."""
        live = run.people.get(run.scenario.resource) or {}
        return not tells or bool(live.get("status"))

    async def await_start(number: int) -> None:
        """Where schedules run on, wait for what the step shows: a later one stops them."""
        if steps[number].moving:
            seen = steps[number].seen
            await run.until(lambda: collected() and seen(run.people), "starts again")

    await await_start(step)
    for number in range(step + 1, known.last(step) + 1 if steps[step].moving else 0):
        run.begin(number)
        steps[number].act(run.people)
        await await_start(number)
    if wanted is None:
        await run.until(
            lambda: collected() and has_told() and run.silent() > 2 * run.pace.quiet,
            "no more writes",
        )
    else:
        await run.come_to(wanted, "made anew", lambda people: collected())
    await run.rest(wanted)


class Ends(Doing):
    """The namespace is deleted right before a write."""

    def places(self, known: Reference, *, fine: bool) -> Iterable[Place]:
        for place in at_writes(known):
            # While schedules run on, so does their status: nothing ends what is in a namespace.
            if place.within != ANY_STEP and not known.scenario.steps[place.within].moving:
                yield place

    def play(self, world: World, known: Reference, place: Place) -> Outcome:
        async def main(run: Run) -> Outcome:
            assert place.target
            trouble = OnWrite(place.target, act=lambda _asked: run.people.close_namespace())
            disturb(run, trouble)
            run.start()

            async def act() -> list[str]:
                await run.go(over=lambda: bool(trouble.fired))
                await run.quiet(3 * run.pace.quiet)
                loud = [e for e in run.operator.complaints() if "orbidden" in str(e)]
                return [*broken(run), *(f"logged: {entry}" for entry in loud)]

            return await judged(run, act, lambda: trouble.fired)

        return world.play(known.scenario, main)


# --- processes ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Strikes(Doing):
    """Of two replicas, something happens to the one that leads."""

    what: str
    answer: Reply | Exception | None = None
    """What its Lease is answered."""
    code: str = ""

    replicas: ClassVar[int] = 2

    def places(self, known: Reference, *, fine: bool) -> Iterable[Place]:
        if not fine:
            return [Place(f"{self.code} after a step".lstrip(), step=len(known.scenario.steps) - 1)]
        return (place for place in at_writes(known) if place.within != ANY_STEP)

    def arm(self, run: Run, place: Place) -> Armed:
        # The leader may end while a write is on its way: nobody learns of it.
        run.unheard |= AFTER_A_WRITE if self.answer or place.target else set()
        offs = {line.client: Off(self.answer) for line in run.lines}
        for line in run.lines:
            line.trouble = Several(line.trouble, offs[line.client])
        struck: list[str] = []

        def hit(operator: Any) -> None:
            struck.append(self.what)
            off = offs[operator.line.client]
            run.later(run.pace.outage, strike(run, operator, self.what, off))

        if place.target:
            disturb(run, OnWrite(place.target, act=lambda asked: hit(by_client(run, asked))))
            return Armed(lambda: struck)

        async def between(number: int) -> None:
            if number == 1:
                leads = (o for o in run.operators if any(w.done for w in o.line.writes()))
                hit(next(leads, run.operator))

        run.between.append(between)
        return Armed(lambda: struck)


def strike(run: Run, operator: Operator, what: str, off: Off) -> Callable[[], object]:
    """Have something happen to a replica on whose line `off` is; return what ends it."""
    match what:
        case "killed":
            operator.kill()
            return list
        case "asked to stop":
            operator.terminate()
            return list
        case "frozen":
            operator.freeze()
            return operator.thaw
        case _:
            off.is_off, off.is_silent = True, what == "silent"
    if what == "cut off":
        run.cut(operator.line)

    def end() -> None:
        off.is_off = False
        if what == "silent":
            run.cut(operator.line)

    return end


# --- clocks -------------------------------------------------------------------------------------

WRONG_DURING = (1, 3)
"""The steps after which clocks are wrong, and right again."""


@dataclass(frozen=True)
class Clocks(Doing):
    """The operator's wall clock is wrong for two steps, or for some time from a write on."""

    seconds: float

    def places(self, known: Reference, *, fine: bool) -> Iterable[Place]:
        scenario = known.scenario
        whole = Place("after a step", step=len(scenario.steps) - 1)
        # What depends on the time comes to something else where it is wrong for long.
        by_time = scenario.by_clock or scenario.controller == "cronjob"
        return [whole] if by_time or not fine else at_writes(known)

    def arm(self, run: Run, place: Place) -> Armed:
        run.clocks_right = False
        if place.target:
            trouble = OnWrite(place.target, act=lambda _asked: self._set(run, CLOCK_WRONG))
            disturb(run, trouble)
            return Armed(lambda: trouble.fired)

        async def between(number: int) -> None:
            if number in WRONG_DURING:
                run.operator.set_clock(self.seconds if number == WRONG_DURING[0] else 0.0)

        run.between.append(between)
        return Armed(lambda: True)

    def _set(self, run: Run, lasts: float) -> None:
        for operator in run.operators:
            operator.set_clock(self.seconds)
            run.later(lasts, partial(operator.set_clock, 0.0))

    def play(self, world: World, known: Reference, place: Place) -> Outcome:
        if known.scenario.controller == "cronjob":
            return world.play(known.scenario, Starts(self.seconds).make)
        return super().play(world, known, place)


@dataclass(frozen=True)
class Starts:
    """A run in which Jobs start while the wall clock is wrong: starts go on, each once.

    It has no reference: what is due by a clock ahead is started. Of the hour or year of starts that
    it has passed over, the newest is made, and what it leaves on record is put right. By a clock
    behind nothing is started, since the last start is still to come, and that is told.
    """

    seconds: float

    async def make(self, run: Run) -> Outcome:
        run.clocks_right = False
        run.start()
        return await judged(run, partial(self._act, run), lambda: True)

    async def _act(self, run: Run) -> list[str]:
        ahead = self.seconds > 0
        template = {"spec": {"template": {"spec": _POD}}}
        apply(CRON, schedule=EVERY_SECOND, jobTemplate=template)(run.people)
        await self._starts(run, "at first")
        run.operator.set_clock(self.seconds)
        if ahead:
            await self._starts(run, "by a wrong clock")
        else:
            await run.quiet(2 * run.pace.quiet, "no start until its time")
        run.operator.set_clock(0.0)
        await self._starts(run, "by a right clock again")
        run.people.edit(CRON, {"spec": {"suspend": True}}, "kubectl-edit")
        await run.quiet(2 * run.pace.quiet)
        await run.rest()
        judged_by = self._unlike_one_missed_time if ahead else self._untold_behind
        return [*broken(run), *judged_by(run)]

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

    async def _starts(self, run: Run, when: str) -> None:
        before = {job["metadata"]["name"] for job in jobs(run.people)}
        began = anyio.current_time()

        def more() -> bool:
            return len({job["metadata"]["name"] for job in jobs(run.people)} - before) >= 3

        await run.until(more, f"three starts {when}", 60)
        run.longest = max(run.longest, anyio.current_time() - began)


_POD = {"restartPolicy": "Never", "containers": [{"name": "hello", "image": "busybox"}]}


# --- the API server -----------------------------------------------------------------------------


def resting_step(known: Reference) -> int:
    """Return the first step that comes to rest, and after which the next one does."""
    steps = known.scenario.steps
    resting = (n for n in range(1, len(steps)) if not (steps[n].moving or steps[n + 1].moving))
    return next(resting)


@dataclass(frozen=True)
class Away(Doing):
    """The API server is taken away for some time.

    `components` are the processes that are killed; with none it is only cut off, and remembers all.
    `lasts` is the name of a time in `Pace`.
    """

    components: tuple[str, ...]
    lasts: str

    def places(self, known: Reference, *, fine: bool) -> Iterable[Place]:
        whole = Place("after a step", step=len(known.scenario.steps) - 1)
        return at_writes(known) if fine else [whole]

    def arm(self, run: Run, place: Place) -> Armed:
        run.patience = run.pace.silent
        seconds = getattr(run.pace, self.lasts)
        if place.target:
            run.unheard |= AFTER_A_WRITE
            run.is_patient = False
            trouble = OnWrite(place.target, act=lambda _: run.take_away(self.components, seconds))
            disturb(run, trouble)
            return Armed(lambda: trouble.fired)
        known = run.reference
        assert known
        number = resting_step(known)
        # Each Event that the next step leads to is tried once.
        told = {*known.told[number + 1]} - {*known.told[number]}
        run.unheard |= {reason for _, reason, _ in told}

        async def between(at: int) -> None:
            if at == number:
                run.take_away(self.components, seconds)

        run.between.append(between)
        return Armed(lambda: True)


class Restored(Doing):
    """The store goes back to what it held before a step, which is then taken again."""

    def places(self, known: Reference, *, fine: bool) -> Iterable[Place]:
        return [Place("after a step", step=len(known.scenario.steps) - 1)]

    def arm(self, run: Run, place: Place) -> Armed:
        known = run.reference
        assert known
        run.patience = run.pace.silent
        run.heard_too |= {"FieldRestored"}  # what it says on an object is undone
        number = resting_step(known)

        async def between(at: int) -> None:
            if at == number:
                run.take_backup()
                # What this step does is undone, unseen by any watch, and done again after it.
                await run.take(number + 1, known.scenario.steps[number + 1])
                run.restore_backup()

        run.between.append(between)
        return Armed(lambda: True)
