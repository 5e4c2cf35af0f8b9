"""Run: one scenario with what goes wrong in it, from an empty namespace to its end.

It is the same on both backends. Each says how to begin a step, how to wait for news, and how long
it takes (`Pace`): a real API server has no minutes to wait, the cluster in memory has a clock that
jumps.
"""

from __future__ import annotations

import contextlib
import threading
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import anyio

from faults.endings import difference, ending, warnings
from faults.exchange import ANY_STEP, Line, Target, Trouble
from faults.scenario import Object, People, Scenario, Step, collect

T = TypeVar("T")
Told = tuple[str, str, str]


class Wrong(AssertionError):
    """A run does not hold what it must."""


@dataclass(frozen=True)
class Pace:
    """What stands for what, in seconds.

    `quiet` and `last_quiet` are the seconds without a write after which nothing more is expected:
    between steps, and at the end; then garbage may be collected. `patience` is how long a step may
    take, `silent` where a watch or an API server says nothing. A write goes wrong for an `outage`,
    for a `long_outage` where it is repeated for some time before anything is said; both stand for
    minutes. An API server is away for a `short` or a `long` time. `lag` is how much later than a
    list its watch comes, `late` how much later an event, `held` how long it waits for another one.
    """

    quiet: float
    last_quiet: float
    collected: float
    patience: float
    silent: float
    outage: float
    long_outage: float
    short: float
    long: float
    lag: float
    late: float
    held: float


class Operator(Protocol):
    """One replica, through all its lives.

    `kill` ends its life at once, `terminate` asks it to stop: another one begins as time passes.
    `restart` ends its life and begins another. `entries` is what it has logged in all its lives,
    `complaints` what of that is a warning or worse, and `measured` are the series of this life.
    """

    line: Line
    births: list[float]

    def start(self) -> object: ...
    def kill(self) -> object: ...
    def terminate(self) -> object: ...
    def restart(self) -> object: ...
    def freeze(self) -> object: ...
    def thaw(self) -> object: ...
    def set_clock(self, seconds: float) -> object: ...
    def entries(self) -> list[Object]: ...
    def complaints(self) -> list[Object]: ...
    def measured(self) -> dict[str, float]: ...


class Everybody(People, Protocol):
    """People, and what only an administrator does.

    `version` is what the store has come to, or `back` so many changes before. `release` takes all
    finalizers off an object. A namespace that is closed stays until somebody empties it.
    """

    def version(self, back: int = 0) -> str: ...
    def release(self, target: Object) -> None: ...
    def close_namespace(self) -> None: ...


@dataclass
class Reference:
    """How a scenario goes without any trouble."""

    scenario: Scenario
    endings: tuple[Object, ...]
    told: tuple[tuple[Told, ...], ...]
    writes: tuple[Target, ...]
    busiest: int = 0
    """The most requests in a minute."""
    versions: Counter[str] = field(default_factory=Counter[str])
    """How many versions of objects there were, by kind, if that is known."""
    _once: dict[Hashable, Any] = field(default_factory=dict[Hashable, Any])
    _locks: dict[Hashable, Any] = field(default_factory=lambda: defaultdict(threading.Lock))

    def once(self, what: Hashable, make: Callable[[], T]) -> T:
        """Return what something comes to that is run once."""
        with self._locks[what]:
            if what not in self._once:
                self._once[what] = make()
            return self._once[what]

    def last(self, step: int) -> int:
        """Return the step with which a run may end whose trouble came in a step."""
        steps = self.scenario.steps
        ends = (n for n in range(step + 1, len(steps)) if not steps[n].moving)
        return next(ends, len(steps) - 1)


class Run(ABC):
    """One run, while it lasts and after it."""

    def __init__(
        self,
        scenario: Scenario,
        namespace: str,
        people: Everybody,
        operators: list[Any],
        pace: Pace,
    ) -> None:
        self.scenario, self.namespace, self.people = scenario, namespace, people
        self.operators, self.pace = operators, pace
        self.reference: Reference | None = None
        self.patience = pace.patience
        self.is_patient = True
        """Whether people wait until all is well again before they take another step."""
        self.endings: list[Object] = []
        self.told: list[tuple[Told, ...]] = []
        self.longest = 0.0
        self.acted = -1
        """The last step of which the change was made."""
        self.unheard: set[str] = set()
        """Reasons of Events that this run need not tell."""
        self.heard_too: set[str] = set()
        """Reasons of Events that it may tell besides, or twice."""
        self.clocks_right = True
        self.made_again: set[str] = set()
        """Kinds of owners whose Jobs it may create twice."""
        self.between: list[Callable[[int], Awaitable[object]]] = []
        """What is done after a step."""
        self._over: Callable[[], bool] = bool

    # --- what a backend does ------------------------------------------------------------------

    @abstractmethod
    def begin(self, number: int) -> None:
        """Tell the lines, and the trouble on them, that a step begins."""

    @abstractmethod
    def strike(self, act: Callable[[], object]) -> None:
        """Do something on the loop that carries the requests."""

    @abstractmethod
    def cut(self, line: Line) -> None:
        """Cut all connections of a line."""

    @abstractmethod
    async def news(self) -> None:
        """Wait until there may be something to see; start operators again that have ended."""

    @abstractmethod
    async def nap(self, seconds: float) -> None:
        """Wait, no longer than that; start operators again that have ended."""

    @abstractmethod
    def later(self, seconds: float, act: Callable[[], object]) -> None:
        """Do something after a while."""

    @abstractmethod
    async def later_done(self) -> None:
        """Wait until all of that is done."""

    @abstractmethod
    def take_away(self, components: Sequence[str], seconds: float) -> None:
        """Have processes of the API server be gone for a while, from now on."""

    @abstractmethod
    def take_backup(self) -> None:
        """Keep what there is."""

    @abstractmethod
    def restore_backup(self) -> None:
        """Have the API server begin anew with what was kept."""

    def make_namespace_anew(self) -> None:
        """Have the namespace end, and the resource made in another one of the same name."""
        raise NotImplementedError

    def observed(self) -> Iterable[str]:
        """Return what does not hold by all that only this backend sees, a line each."""
        return ()

    def versions(self) -> Counter[str]:
        """Count the versions of objects that there were, by kind, if that is known."""
        return Counter()

    def keep(self, why: str) -> None:  # noqa: B027 - memory keeps nothing
        """Keep what passed in a run that failed."""

    # --- how it goes --------------------------------------------------------------------------

    @property
    def operator(self) -> Any:
        return self.operators[0]

    @property
    def lines(self) -> list[Line]:
        return [operator.line for operator in self.operators]

    def disturb(self, trouble: Trouble) -> None:
        """Have trouble on every line."""
        for line in self.lines:
            line.trouble = trouble

    def start(self) -> None:
        """Start all operators."""
        for operator in self.operators:
            operator.start()

    async def go(self, last: int | None = None, over: Callable[[], bool] = lambda: False) -> None:
        """Take every step, and after each come to where the reference came, until it is `over`."""
        self._over = over
        for number, step in enumerate(self.scenario.steps):
            self.begin(number)
            try:
                await self.take(number, step)
            except Exception:
                if not over():
                    raise
            if over():
                break
            for act in self.between:
                await act(number)
            if number == last:
                break
        self._over = bool

    async def take(self, number: int, step: Step) -> None:
        """Take a step, and wait until it is answered."""
        began = anyio.current_time()
        step.act(self.people)
        self.acted = number
        await self._settle(number, step)
        self.longest = max(self.longest, anyio.current_time() - began)

    async def _settle(self, number: int, step: Step) -> None:
        known = self.reference
        if known and self.is_patient and not step.moving:
            await self.come_to(known.endings[number], step.name, step.seen)
            await self._hear(number)
        else:
            await self.until(lambda: step.seen(self.people), step.name, self.patience)
            if not step.moving:
                await self.quiet(self.pace.quiet, step.name)
        if known:
            self.endings.append(known.endings[number])
            return
        if not step.moving:
            await self.until(lambda: step.seen(self.people), step.name)
            await self.until(lambda: step.told(self.people), f"what is told after '{step.name}'")
        self.endings.append({} if step.moving else self.ending())
        self.told.append(() if step.moving else tuple(warnings(self.people, self.namespace)))

    async def come_to(
        self, wanted: Object, what: str, seen: Callable[[Everybody], object] = lambda people: True
    ) -> None:
        """Wait for an ending."""

        def arrived() -> bool:
            return bool(seen(self.people)) and self.ending() == wanted

        try:
            await self.until(arrived, what, self.patience)
        except Wrong as error:
            lines = difference(wanted, self.ending()) or ["what is to be seen is not"]
            raise Wrong("; ".join([f"after '{what}'", *lines[:6]])) from error

    async def _hear(self, last: int) -> None:
        """Wait until every Event is told that was told in the reference by then."""
        wanted = {event for event in self.wanted(last) if event[1] not in self.unheard}
        if not wanted:
            return

        def told() -> bool:
            return wanted <= set(warnings(self.people, self.namespace))

        with contextlib.suppress(Wrong):  # what is missing is told of later
            await self.until(told, "every Event", self.patience)

    def wanted(self, last: int) -> set[Told]:
        """Return the Events that the reference told by then."""
        assert self.reference
        return set(self.reference.told[last])

    def ending(self) -> Object:
        """Return what there is now."""
        return ending(self.people, self.scenario, self.namespace)

    async def until(
        self,
        fact: Callable[[], Any],
        what: str,
        within: float | None = None,
    ) -> None:
        """Wait for a fact while operators that end are started again."""
        within = self.pace.patience if within is None else within
        deadline = anyio.current_time() + within
        while not (fact() or self._over()):
            if anyio.current_time() >= deadline:
                raise Wrong(f"not within {within:g} s: {what}")
            await self.news()

    async def quiet(self, seconds: float, what: str = "no more writes") -> None:
        """Wait until nothing was written for a while."""
        begins = anyio.current_time()
        while (left := seconds - min(self.silent(), anyio.current_time() - begins)) > 1e-3:
            if self._over():
                return
            if anyio.current_time() > begins + self.pace.patience:
                raise Wrong(f"not within {self.pace.patience:g} s: {what}")
            await self.nap(left)

    def silent(self) -> float:
        """Return the seconds since the last write."""
        return anyio.current_time() - max(line.last_write() for line in self.lines)

    async def rest(self, wanted: Object | None = None) -> None:
        """Nothing is written any more, and all stays as it is."""
        await self.quiet(self.pace.last_quiet)
        wanted = wanted or (self.endings[-1] if self.reference else None)
        if wanted is None:
            return

        def stayed() -> bool:
            # What was made for an owner that was about to go is collected, as it would be.
            collect(self.people, self.scenario.children)
            return self.ending() == wanted

        try:
            await self.until(stayed, "rest", self.pace.collected)
        except Wrong as error:
            lines = difference(wanted, self.ending())
            raise Wrong("; ".join(["at rest", *lines[:6]])) from error

    def writes(self) -> tuple[Target, ...]:
        """Return the writes so far."""
        counts: Counter[tuple[str, int]] = Counter()
        found: list[Target] = []
        for asked in self.operator.line.writes(leases=True):
            name, step = asked.signature, ANY_STEP if asked.of_lease else asked.step
            counts[name, step] += 1
            found.append(Target(name, counts[name, step], step))
        return tuple(found)


class World(Protocol):
    """A backend: it makes runs."""

    pace: Pace
    name: str
    """`real` or `memory`: what catalogue and cases know it by."""
    renewals: int
    """Writes of a Lease that trouble is made of, in each scenario."""

    def play(
        self,
        scenario: Scenario,
        main: Callable[[Any], Awaitable[T]],
        *,
        replicas: int = 1,
        elected: bool = True,
    ) -> T:
        """Prepare a run, have `main` make it, and return what that returns."""
        ...
