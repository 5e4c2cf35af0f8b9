"""Member: which slices a replica begins, drains and holds, decided from what it has seen; pure.

No two write for one slice:

1. A replica begins a slice only if it was assigned it, and has seen that every other replica that
   may write has adopted the same assignment and does not hold the slice.
2. What a replica has said of an assignment stays true, so it may be seen late: assignments are
   adopted in the order of their epochs, each at most once. Who has adopted this one and does not
   hold the slice can begin it only by a later assignment.
3. By that later assignment rule 1 makes it wait until we have said of it that we do not hold the
   slice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from hedgerow.shards.members import LONGEST_NAME, MOST_HEIRS, MOST_WATCHES, HandedOver, MemberStatus
from hedgerow.shards.slices import ALL, NONE, Slices, parse, written

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hedgerow.shards.assignment import Assignment, Weights
    from hedgerow.shards.members import Members, Versions


class QuietSlices(Struct, frozen=True):
    """Slices in which nobody has written since an instant."""

    slices: Slices
    since: float
    """By `Clock.elapsed`."""
    last: Mapping[str, int] = {}
    """If the former member told it: by watch, the last resourceVersion in these slices."""

    def without(self, slices: Slices) -> QuietSlices:
        """Return the same of fewer slices."""
        return replace(self, slices=self.slices - slices)


class Orders(Struct, frozen=True):
    """What the runners must do now: open the gate for some slices, close it for others."""

    begin: Slices = NONE
    quiet: tuple[QuietSlices, ...] = ()
    """What is known of the last writes in what is to begin."""
    drain: tuple[Slices, ...] = ()
    """One for each member that takes over."""

    def __bool__(self) -> bool:
        """Return whether there is anything to do."""
        return bool(self.begin or self.drain)


class Member:
    """One replica's part of the protocol."""

    def __init__(self, members: Members, revision: str = "") -> None:
        self._members, self._revision = members, revision
        self._adopted: Assignment | None = None
        self.token = ""
        """The token of the assignment that it has adopted; empty without one."""
        self._cached = NONE
        self.assigned = NONE
        self.begun = NONE
        """The slices whose gate is open."""
        self.draining = NONE
        """The slices whose gate is closed, while passes over them still run."""
        self.leaving = False
        self._gave: dict[str, tuple[Slices, Versions]] = {}
        self._quiet: list[QuietSlices] = []
        self._believes = True

    @property
    def wanted(self) -> Slices:
        """The slices that caches must hold."""
        return self.begun | self.draining | self._attainable()

    @property
    def sharers(self) -> int:
        """How many replicas share the work, by the assignment that it has adopted; at least 1."""
        return max(1, len(self._adopted.members)) if self._adopted else 1

    @property
    def is_settled(self) -> bool:
        """Whether it takes part in the assignment, and serves exactly what that says."""
        adopted = self._adopted
        takes_part = adopted is not None and self._members.own in adopted.members
        return takes_part and self.begun == self.assigned and not self.draining

    @property
    def is_serving(self) -> bool:
        """Whether it may have writes on their way."""
        return bool(self.begun or self.draining)

    @property
    def is_done(self) -> bool:
        """Whether it serves nothing and has nothing to serve soon, and so may leave."""
        return not self.wanted

    def cached(self, slices: Slices) -> None:
        """Take in which slices the caches hold."""
        self._cached = slices

    def drained(self, slices: Slices, last: Mapping[str, int] | None = None) -> None:
        """Take in that no pass over these slices runs, and no write is unanswered.

        `last` are the versions of what was written there last, by watch, if they are known.
        """
        self.draining -= slices
        if self._adopted is not None and last is not None and self._believes:
            self._give(self._adopted, slices, last)
        self._drop()

    def _give(self, adopted: Assignment, slices: Slices, last: Mapping[str, int]) -> None:
        """Tell the heirs of slices what was written last, as far as there is room in a Lease."""
        for heir in adopted.members:
            part, (had, known) = adopted.of(heir) & slices, self._gave.get(heir, (NONE, {}))
            names = {*last, *known}
            has_room = had or len(self._gave) < MOST_HEIRS
            are_short = len(names) <= MOST_WATCHES and all(len(n) <= LONGEST_NAME for n in names)
            if part and has_room and are_short and heir != self._members.own:
                latest = {name: max(last.get(name, 0), known.get(name, 0)) for name in names}
                self._gave[heir] = (had | part, latest)

    def _forget_given(self) -> None:
        """Forget what we told members of slices that they have begun."""
        holds = self._members.holds() if self._gave else {}
        given = self._gave.items()
        self._gave = {heir: gave for heir, gave in given if gave[0] - holds.get(heir, NONE)}

    def rewound(self) -> None:
        """Neither believe nor tell a version any more: the store was restored."""
        self._believes = False

    def status(self, load: Weights = ()) -> MemberStatus:
        """Return what its Lease must say now; `load` is what weighs where."""
        return MemberStatus(
            token=self.token,
            epoch=self._adopted.epoch if self._adopted else 0,
            ready=self._members.ready,
            filled=self._all_adopted() and not self._attainable() - self._cached,
            leaving=self.leaving,
            revision=self._revision,
            load=load,
            holds=written(self._held()),
            gave=tuple(
                HandedOver(heir, written(slices), last)
                for heir, (slices, last) in self._gave.items()
            ),
        )

    def end(self) -> None:
        """Take in that all passes have ended and none will follow."""
        self.assigned = self.begun = self.draining = NONE

    def step(self, now: float) -> Orders:
        """Adopt the assignment that was seen, and return what the runners must do now."""
        self._adopt(now)
        drain = tuple(self._to_hand_over())
        for part in drain:
            self.draining |= part  # first, for others read both meanwhile
            self.begun -= part
        free = self._free()
        self._note_quiet(free, now)
        begin = free & self._cached - self.draining
        self.begun |= begin
        self._drop()
        self._forget_given()
        quiet = (*self._quiet, *self._handed_to_us(now)) if begin else ()
        parts = (each.without(ALL - begin) for each in quiet)
        return Orders(begin, tuple(each for each in parts if each.slices), drain)

    def _drop(self) -> None:
        """Forget what caches need not hold any more: wanted again, it must be filled again."""
        self._cached &= self.wanted

    def _attainable(self) -> Slices:
        """Return what is assigned to us and worth to be listed now.

        That is what a living member holds, which goes on meanwhile, and what nobody holds any more.
        What a silent member holds is listed once that is certainly gone, and so with all that it
        wrote.
        """
        waiting = self.assigned - self.begun
        if not waiting:
            return self.assigned
        holders = (
            other
            for other in self._members.others()
            if other.status is None or not self._members.has_stopped_sending(other)
        )
        held = Slices.of(part for each in holders for part in each.holds.ranges)
        return (self.assigned & self.begun) | (waiting & held) | self._free()

    def _all_adopted(self) -> bool:
        """Return whether all who may write have adopted the assignment that we have adopted."""
        token = self.token
        return bool(token) and all(o.token == token for o in self._members.participants())

    def _held(self) -> Slices:
        return self.begun | self.draining

    def _adopt(self, now: float) -> None:
        current = self._members.current()
        if current is None or not self._is_next(current):
            return
        # The last first: readiness is asked for on another thread.
        self.assigned, self._gave, self._quiet = current.of(self._members.own), {}, []
        self._adopted, self.token = current, current.token
        self._members.expect(current.members, now)

    def _is_next(self, one: Assignment) -> bool:
        return self._adopted is None or one.epoch > self._adopted.epoch

    def _to_hand_over(self) -> list[Slices]:
        """Return what each other member is ready to take over, so that it can begin at once.

        One that leaves is given nothing: it would have to hand that over in turn.
        """
        lost = self.begun - self.assigned
        if not lost or self._adopted is None or not self._all_adopted():
            return []
        ready = [
            lost & self._adopted.of(other.name)
            for other in self._members.participants()
            if other.status and other.status.filled and not other.status.leaving
        ]
        return [each for each in ready if each]

    def _free(self) -> Slices:
        """Return what is assigned to us and not begun, and what no other participant holds.

        Nobody else begins it before we do.
        """
        free = self.assigned - self.begun
        if not free or not self._members.takes_part() or not self._all_adopted():
            return NONE
        for other in self._members.participants():
            free -= other.holds
        return free

    def _note_quiet(self, free: Slices, now: float) -> None:
        """Keep since when nobody has written for what we have not begun yet."""
        left = (each.without(ALL - free) for each in self._quiet)
        self._quiet = [each for each in left if each.slices]
        for each in self._quiet:
            free -= each.slices
        if free:
            self._quiet.append(QuietSlices(free, now))

    def _handed_to_us(self, now: float) -> Iterator[QuietSlices]:
        """Yield what those told who handed slices over to us, by the same assignment."""
        for other in self._members.known.values() if self._believes else ():
            for gave in other.status.gave if other.status and other.token == self.token else ():
                if gave.to == self._members.own:
                    yield QuietSlices(parse(gave.slices), now, gave.last)
