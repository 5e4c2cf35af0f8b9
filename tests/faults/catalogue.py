"""Catalogue: every fault, by the name of its row, what it does, and which backend cannot do it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from faults.doings import (
    Answers,
    Away,
    Clocks,
    Doing,
    Ends,
    Outcome,
    Place,
    Reads,
    Remakes,
    Restored,
    Strikes,
    Watches,
)
from faults.exchange import Drop, Reply, Silence, Target, Trouble
from faults.run import Reference, World
from faults.troubles import GONE, Cut, Expired, Half, Late, Stale, Swapped, Twice, status

API_SERVER, ETCD = "kube-apiserver", "etcd"


def _refused(code: int, reason: str, message: str, **headers: str) -> Reply:
    return Reply(code, status(code, reason, message), headers)


REFUSALS: dict[str, Reply | Exception] = {
    "409": _refused(409, "Conflict", "the object has been modified; try again"),
    "422": _refused(422, "Invalid", "denied for now by the machine of faults"),
    "429": _refused(429, "TooManyRequests", "please try again later", **{"retry-after": "1"}),
    "500": _refused(500, "InternalError", "an error on the server has occurred"),
    "503": _refused(503, "ServiceUnavailable", "the server is currently unable"),
    "dropped": Drop(),
}
"""How a request is refused that does not arrive."""
IN_MEMORY: dict[str, tuple[Reply | Exception, str]] = {
    "401": (_refused(401, "Unauthorized", "Unauthorized"), "an hour is enough; 422 is like it"),
    "403": (_refused(403, "Forbidden", "you may not"), "an hour is enough; 422 is like it"),
    "connection refused": (Drop(refused=True), "who reads a request has taken its connection"),
    "no answer": (Silence(), "a request waits half a minute for its answer"),
}
"""Those that only memory has, and why."""
TIMEOUT = _refused(504, "Timeout", "request did not complete in time")
_HALF = b'{"type":"MODIFIED","object":{"apiVersion":"v1","ki'
_GARBAGE = b'{"type":"MODIFIED","object":"\xff\xfe"}\n'
_GONE = b'{"type":"ERROR","object":%s}\n' % GONE
_HOUR, _YEAR = 3600.0, 365 * 86400.0


@dataclass(frozen=True)
class Fault:
    """One fault: what it does, and the backend that alone can do it, with the reason."""

    name: str
    doing: Doing
    only: str = ""
    why: str = ""
    slow: bool = False
    """Whether it mostly waits, and so may run beside others."""

    def on(self, backend: str) -> bool:
        return self.only in {"", backend}


def _memory(name: str, doing: Doing, why: str) -> Fault:
    return Fault(name, doing, "memory", why)


def _watch(make: Callable[[str, Target | None], Trouble], **how: bool) -> Watches:
    return Watches(lambda _run, plural, at: make(plural, at), **how)


def _watches() -> Iterator[Fault]:
    yield Fault("watch cut", _watch(Cut))
    yield Fault("watch cut mid-line", _watch(lambda plural, at: Cut(plural, at, _HALF)))
    yield Fault("watch silent", _watch(Half, silent=True), slow=True)
    yield Fault("watch 410 as status", _watch(Expired))
    yield Fault("watch 410 as event", _watch(lambda plural, at: Cut(plural, at, _GONE)))
    yield Fault("watch garbage", _watch(lambda plural, at: Cut(plural, at, _GARBAGE)))
    yield Fault("watch events twice", _watch(Twice, restarts=False))
    held = Watches(lambda run, plural, at: Swapped(plural, at, run.pace.held), restarts=False)
    yield Fault("watch events swapped", held)
    late = Watches(lambda run, plural, at: Late(plural, at, run.pace.late), restarts=False)
    yield Fault("watch events late", late)
    yield _memory(
        "watch silent for a while",
        Watches(lambda run, plural, at: Half(plural, at, run.pace.outage), silent=True),
        "each watch that is opened meanwhile is given up after 90 s",
    )
    yield _memory(
        "watch stale",
        Watches(
            lambda run, plural, at: Stale(plural, at, lambda: run.people.version(4), run.pace.lag)
        ),
        "only here one knows which versions there were before a write",
    )


def _writes() -> Iterator[Fault]:
    yield Fault("crash before", Answers(Drop(), arrives=False, kills="before"))
    yield Fault("crash after", Answers(Drop(), kills="after"))
    yield Fault("answer lost", Answers(Drop(), "<error>"))
    yield Fault("504 after it took effect", Answers(TIMEOUT, "504"))
    for code, answer in REFUSALS.items():
        counted = code if isinstance(answer, Reply) else "<error>"
        lasts = "long_outage" if code in {"429", "503", "dropped"} else "outage"
        yield Fault(f"{code} once", Answers(answer, counted, arrives=False))
        for_a_while = Answers(answer, counted, arrives=False, lasts=lasts)
        yield Fault(f"{code} for a while", for_a_while, slow=True)
    for code, (answer, why) in IN_MEMORY.items():
        counted = code if isinstance(answer, Reply) else "<error>"
        yield _memory(f"{code} once", Answers(answer, counted, arrives=False), why)
        for_a_while = Answers(answer, counted, arrives=False, lasts="outage")
        yield _memory(f"{code} for a while", for_a_while, why)
    why = "a request waits half a minute for its answer"
    yield _memory("never answered", Answers(Silence(), "<error>"), why)
    yield _memory("504, and carried out later", Answers(TIMEOUT, "504", later=True), why)


def _processes() -> Iterator[Fault]:
    yield Fault("stale after a restart", Reads(restarts=True))
    yield Fault("stale after a reconnect", Reads(restarts=False))
    yield Fault("deleted and made anew", Remakes())
    yield _memory("deleted and made anew after it", Remakes(after=True), "an hour is enough")
    yield Fault("namespace deleted", Ends())
    for after in (False, True):
        yield _memory(
            f"namespace made anew{' after it' if after else ''}",
            Remakes(namespace=True, after=after),
            "nobody empties a namespace there",
        )
    for what in ("killed", "frozen", "cut off", "silent"):
        only, why = ("real", "its processes share one thread") if what == "frozen" else ("", "")
        yield Fault(f"two replicas, leader {what}", Strikes(what), only, why)
    for code, answer in REFUSALS.items():
        yield Fault("two replicas, leader refused its Lease", Strikes("refused", answer, code))
    why = "tests/e2e ask a real one to stop"
    yield _memory("two replicas, leader asked to stop", Strikes("asked to stop"), why)
    for name, seconds in (("an hour", _HOUR), ("a year", _YEAR)):
        for way, sign in (("ahead", 1), ("behind", -1)):
            yield Fault(f"clock {name} {way}, and back", Clocks(sign * seconds))


def _servers() -> Iterator[Fault]:
    why = "its store is part of its API server"
    yield Fault("API server killed for 5 s", Away((API_SERVER,), "short"))
    yield Fault("etcd killed for 5 s", Away((ETCD,), "short"), "real", why)
    both = Away((API_SERVER, ETCD), "short")
    yield Fault("API server and etcd killed for 5 s", both, "real", why)
    yield Fault("API server and etcd killed for long", Away((API_SERVER, ETCD), "long"))
    why = "there, 'leader cut off' is like it"
    yield _memory("API server out of reach for 5 s", Away((), "short"), why)
    yield _memory("API server out of reach for long", Away((), "long"), why)
    yield Fault("etcd restored from a snapshot", Restored())


FAULTS = (*_watches(), *_writes(), *_processes(), *_servers())
"""In the order of the table."""
TOGETHER = (Away, Restored)
"""What happens to a real API server, and so to all scenarios at once."""


@dataclass(frozen=True)
class Case:
    """One run to make: a fault, a scenario, and where in it."""

    fault: str
    scenario: str
    where: str
    make: Callable[[World], Outcome] = field(compare=False, repr=False)
    slow: bool = False

    @property
    def name(self) -> str:
        return f"{self.fault} | {self.scenario} | {self.where}"


def case(fault: Fault, known: Reference, place: Place) -> Case:
    """Return the run of a fault at a place."""

    def make(world: World) -> Outcome:
        return fault.doing.play(world, known, place)

    return Case(fault.name, known.scenario.name, str(place), make, fault.slow)


def cases(references: Mapping[str, Reference], backend: str) -> Iterator[Case]:
    """Return every run of a backend, those left out that take all scenarios at once."""
    fine = backend == "memory"
    for known in references.values():
        for fault in FAULTS:
            if fault.on(backend) and (fine or not isinstance(fault.doing, TOGETHER)):
                for place in fault.doing.places(known, fine=fine):
                    yield case(fault, known, place)


def together(references: Mapping[str, Reference]) -> Iterator[list[Case]]:
    """Return the runs on a real API server that are made together, since it is taken away."""
    for fault in FAULTS:
        if fault.on("real") and isinstance(fault.doing, TOGETHER):
            yield [
                case(fault, known, place)
                for known in references.values()
                for place in fault.doing.places(known, fine=False)
            ]
