"""Duplicate operators: an operator without leader election announces itself and sees the others."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

import anyio
import structlog

from hedgerow.kube.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    Missing,
    Stale,
)
from hedgerow.kube.retry import backoff
from hedgerow.objects import PROGRAM, Installation
from hedgerow.runtime.leaderelection.record import LEASES
from hedgerow.runtime.leaderelection.roster import Operator, Roster, name_of
from hedgerow.runtime.namespaces import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.kube.client import Cluster
    from hedgerow.runtime.clock import Clock
    from hedgerow.runtime.leaderelection.record import Timing
    from hedgerow_schemas.base import Object

FALLBACK = "default"
"""The namespace that every cluster has, used if the operator's own does not exist."""
LEAVE = 2.0
"""Seconds for removing ourselves from the roster."""
REQUEST = 5.0
"""Seconds for one request."""
_ATTEMPTS = 8
_JOINING = ("get", "create", "patch")
"""The rights to a roster that joining needs."""
_RACE = (Stale, AlreadyExists)
_UNWRITABLE = (Forbidden, Missing, Conflict, Invalid)

log = structlog.get_logger(__name__)


class AnotherOperator(Exception):  # noqa: N818 - named for the situation
    """Another operator of the same installation works on the same resources."""

    def __init__(self, operator: Operator, place: str) -> None:
        self.operator, self.place = operator, place
        super().__init__(f"{operator.identity} is at work")


class RosterEntry:
    """One operator's entry in the rosters of a cluster.

    The roster is in the operator's own namespace, or in `default` if that does not exist. An
    operator that may write to neither works without an entry.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        ours: Operator,
        *,
        namespace: str,
        timing: Timing,
        program: str = PROGRAM,
    ) -> None:
        self._cluster, self._clock, self._timing = cluster, clock, timing
        self._name = name_of(program)
        places = dict.fromkeys((namespace, FALLBACK))
        self._rosters = {place: Roster(ours, program) for place in places}
        self._manager = Installation(program=program).common_manager("presence")
        self._place = ""
        self._missing: set[str] = set()
        self._failures = 0
        self._told: set[str] = set()
        self._rights: dict[tuple[str, str], bool] = {}

    async def wait_until_alone(self) -> None:
        """Wait until no other operator is, or may be, at work on the same resources.

        An operator on the roster has the time in its entry to prove that it still works. Raises
        AnotherOperator if it does, and KubeError.
        """
        readable = dict(self._rosters)
        while True:
            for place, roster in tuple(readable.items()):
                if not await self._look(place, roster):
                    del readable[place]
            now = self._clock.elapsed()
            self._refuse(readable, now)
            if not any(roster.is_doubtful(now) for roster in readable.values()):
                return
            await anyio.sleep(self._timing.retry / 2 * (0.8 + 0.4 * self._clock.jitter()))

    async def join(self) -> None:
        """Add ourselves to the roster, if nobody else works on the same resources.

        If we may not write it, log that and go on. Raises AnotherOperator, KubeError.
        """
        await self._ask_for_rights()
        for _ in range(_ATTEMPTS):
            await self.wait_until_alone()
            try:
                await self._add_entry()
            except _RACE:
                continue
            return
        self._unrecorded("the record changes all the time")

    async def keep(self) -> NoReturn:
        """Renew our entry. Raises AnotherOperator if one started, as during a long sleep."""
        while True:
            await anyio.sleep(self._pause())
            try:
                await self._renew()
            except KubeError as error:
                self._failures += 1
                self._tell("presence not renewed", error=str(error))
            else:
                self._failures = 0

    async def leave(self) -> None:
        """Remove ourselves from the roster, within LEAVE seconds; raises nothing."""
        if not self._place:
            return
        with anyio.move_on_after(LEAVE, shield=True):
            for _ in range(_ATTEMPTS):
                try:
                    await self._remove_entry()
                except _RACE:
                    continue
                except KubeError as error:
                    log.debug("presence not taken back", error=str(error))
                break

    async def _look(self, place: str, roster: Roster) -> bool:
        """Read a roster; return False if we may not."""
        if not await self._may("get", place):
            return False
        try:
            found = await self._cluster.read(LEASES, self._name, place, timeout=REQUEST)
        except (Forbidden, Missing):
            return False
        roster.looked(found, self._clock.elapsed())
        return True

    async def _ask_for_rights(self) -> None:
        """Ask at the same time for all rights that joining needs, and for namespaces.

        A right that is not answered is asked for again once the answer is needed.
        """

        async def ask(verb: str, place: str) -> None:
            with suppress(KubeError):
                await self._may(verb, place)

        async with anyio.create_task_group() as tasks:
            for place in self._rosters:
                tasks.start_soon(self._find, place)
                for verb in _JOINING:
                    tasks.start_soon(ask, verb, place)

    async def _find(self, place: str) -> None:
        """Note that a namespace does not exist, as far as we may know.

        The API server takes 50 ms to refuse a write to one that does not.
        """
        if place == FALLBACK:
            return
        with suppress(KubeError):
            if await self._cluster.allowed("get", NAMESPACES, name=place):
                found = await self._cluster.read(NAMESPACES, place, timeout=REQUEST)
                self._missing = self._missing if found else {*self._missing, place}

    async def _may(self, verb: str, place: str) -> bool:
        """Return whether we have a right; the server is asked only once for each."""
        asked = verb, place
        if asked not in self._rights:
            self._rights[asked] = await self._cluster.allowed(verb, LEASES, place, name=self._name)
        return self._rights[asked]

    def _refuse(self, rosters: dict[str, Roster], now: float) -> None:
        for place, roster in rosters.items():
            operator = roster.operator_at_work(now)
            if operator is not None:
                raise AnotherOperator(operator, f"{place}/{self._name}")

    async def _add_entry(self) -> None:
        """Write to the first place that accepts it. Raises Stale, AlreadyExists, KubeError."""
        why = f"no right to apply {LEASES.plural} in {' or '.join(self._rosters)}"
        for place in self._rosters:
            if not all([await self._may(verb, place) for verb in _JOINING]):
                continue
            if place in self._missing:
                why = f"namespace {place} does not exist"
                continue
            try:
                await self._apply(place)
            except _UNWRITABLE as error:
                why = str(error)
                continue
            self._place = place
            return
        self._unrecorded(why)

    async def _renew(self) -> None:
        """Write our entry again; if somebody else has written, read the roster first."""
        place = self._place
        if not place:
            return
        roster = self._rosters[place]
        for _ in range(_ATTEMPTS):
            try:
                await self._apply(place)
            except _RACE:
                await self._look(place, roster)
                self._refuse({place: roster}, self._clock.elapsed())
                self._warn_of(roster.other_installations(self._clock.elapsed()))
            else:
                return

    async def _apply(self, place: str) -> None:
        roster = self._rosters[place]
        body = roster.joined(self._clock.elapsed(), self._clock.now())
        await self._write(place, body)

    async def _write(self, place: str, body: Object) -> None:
        meta = {**body["metadata"], "namespace": place}
        answer = await self._cluster.apply(
            LEASES, {**body, "metadata": meta}, manager=self._manager, timeout=REQUEST
        )
        self._rosters[place].looked(answer.object, self._clock.elapsed())

    async def _remove_entry(self) -> None:
        """Remove our entry; delete the roster if we were the last."""
        roster, now = self._rosters[self._place], self._clock.elapsed()
        try:
            if not roster.is_last(now) or not await self._delete(roster):
                await self._write(self._place, roster.left(now))
        except _RACE:
            await self._look(self._place, roster)
            raise

    async def _delete(self, roster: Roster) -> bool:
        """Delete a roster; return False if we may not."""
        if not roster.uid:
            return True
        if not await self._may("delete", self._place):
            return False
        try:
            await self._cluster.delete(
                LEASES,
                self._name,
                self._place,
                uid=roster.uid,
                version=roster.version,
                timeout=REQUEST,
            )
        except Forbidden:
            return False
        return True

    def _warn_of(self, guests: Iterable[Operator]) -> None:
        for guest in guests:
            self._tell(
                "another installation manages the same resources",
                identity=guest.identity,
                instance=guest.instance or "none",
                remedy="give one of them other namespaces or controllers; each leaves alone what"
                " the other manages",
            )

    def _unrecorded(self, why: str) -> None:
        self._tell("others cannot see that this operator is at work", error=why)

    def _tell(self, event: str, **fields: str) -> None:
        """Log an event once, however often it happens."""
        line = f"{event} {fields.get('identity', '')}"
        if line not in self._told:
            self._told.add(line)
            log.warning(event, **fields)

    def _pause(self) -> float:
        usual = max(self._timing.retry, self._timing.duration / 3)
        draw = self._clock.jitter()
        late = backoff(self._failures, draw) if self._failures else 0.0
        return max(usual * (0.8 + 0.2 * draw), late)
