"""When an operator is taken to be quiet, by tables of what it does and when."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from hedgerow_testing.audit.judging.quiet import LONGEST_GAP, WORK, Pace, Quiet

PACE = Pace(settle=2, first=5, idle=20, limit=45)


class Case(NamedTuple):
    """What an operator does at which second, and when it is quiet; None: never."""

    quiet: float | None
    changes: tuple[float, ...] = ()
    made: tuple[float, ...] = ()
    works: tuple[float, ...] = ()
    asks: bool = False
    is_idle: bool = False
    seconds: float = 2


CASES = {
    "nothing": Case(2),
    "nothing ever": Case(20, is_idle=True),
    "a change": Case(3, changes=(1,)),
    "changes": Case(6, changes=(1, 2.5, 4)),
    "changes on and on": Case(None, changes=tuple(range(1, 60))),
    "the wish of a user": Case(31, changes=(1,), seconds=30),
    "objects with pauses": Case(
        64 + 16, made=(8, 16, 24, 32, 40, 48, 56, 64), is_idle=False, seconds=9
    ),
    "one object late": Case(2 * LONGEST_GAP + 18, made=(18,), seconds=19),
    "a certificate is made": Case(25, works=tuple(range(24))),
    "a loop without a pause": Case(WORK + 1, works=tuple(range(200))),
    "a loop that polls": Case(WORK + 1, works=tuple(range(200)), asks=True),
    "keys for one object after another": Case(
        170 + 2 * LONGEST_GAP, made=(60, 120, 170), works=tuple(range(180)), asks=True
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_an_operator_is_quiet_when_it_is_done(case: Case):
    wait = Quiet(PACE, 0, case.seconds)
    found = None
    for step in range(4 * 210):
        now = step / 4
        if wait.is_reached(now, is_idle=case.is_idle and not case.made):
            found = now
            break
        if wait.is_missed(now):
            break
        if now in case.made or now in case.changes:
            wait.change(now, is_made=now in case.made)
        if now in case.works:
            wait.work(now, asks=case.asks)

    assert found == case.quiet


def test_the_longest_pause_is_remembered():
    first = Quiet(PACE, 0, 5)
    first.change(4, is_made=True)

    later = first.next(100, 2)
    assert not later.is_reached(107)
    assert later.is_reached(108)


@pytest.mark.parametrize(
    ("asks", "made", "later"),
    [(True, 0, 2), (False, 0, WORK + 1), (True, 30, WORK + 1)],
    ids=["polls", "computes", "makes"],
)
def test_whoever_polls_is_waited_for_once(asks, made, later):
    wait = Quiet(PACE, 0, 2)
    wait.change(made, is_made=True)
    for second in range(int(WORK) + 2):
        wait.work(second, asks=asks)

    wait = wait.next(1000, 2)
    found = 1000
    while not wait.is_reached(found):
        wait.work(found, asks=asks)
        found += 1
    assert found == 1000 + later


def test_a_user_sets_how_long_is_quiet():
    assert Pace.of(2) == Pace()
    long = Pace.of(30)
    assert (long.settle, long.first, long.idle, long.limit, long.rest) == (30, 30, 30, 90, 60)
