"""Hand-over: a picture of how a slice passes from one replica to another, by their Leases."""

from __future__ import annotations

from typing import NamedTuple

from pictures.drawing import arrow, box, picture, text

_TITLE = "How a slice passes from one replica to another"
_FORMER, _LEASES, _NEXT = 130, 360, 590
_TOP, _STEP = 116, 54
_BAR = 12


class Step(NamedTuple):
    """What is written to a Lease or seen there; `by` and `to` are lanes, `to` none if written."""

    by: int
    words: str
    lane: str = ""
    """What the replica does at that moment."""
    seen: bool = False


STEPS = (
    Step(_LEASES, "the leader: assignment 8 gives the slice to B"),
    Step(_FORMER, "A: adopted 8, has the slice"),
    Step(_NEXT, "B: adopted 8, not filled", "fills its caches"),
    Step(_NEXT, "B: filled"),
    Step(_FORMER, "", "ends its passes", seen=True),
    Step(_FORMER, "A: adopted 8, has it no more"),
    Step(_NEXT, "", "begins", seen=True),
    Step(_NEXT, "B: adopted 8, has the slice"),
)


def draw() -> str:
    """Return the steps of a hand-over, from above to below."""
    told = (
        "The leader writes an assignment. Replica A goes on while replica B fills its caches and"
        " says so. Then A begins no new pass, ends those that run, and says that it has the slice"
        " no more. Only then B looks at what A wrote last, and begins. At no moment do both write."
    )
    end = _TOP + _STEP * len(STEPS)
    drained, begun = _at(5), _at(6)
    parts = [
        text(20, 34, "A slice passes from A to B", "ink b l"),
        text(20, 58, "Whoever has a coloured bar writes. At no moment do both.", "ink"),
        *(
            text(x, _TOP - 24, name, "ink b", "middle")
            for x, name in ((_FORMER, "replica A"), (_LEASES, "Leases"), (_NEXT, "replica B"))
        ),
        *(
            f'<path class="line line-frame" d="M{x} {_TOP - 12}V{end}"/>'
            for x in (_FORMER, _LEASES, _NEXT)
        ),
        box(_FORMER - _BAR / 2, _TOP - 12, _BAR, drained - _TOP + 12, "ours-tint", "ours"),
        box(_NEXT - _BAR / 2, begun, _BAR, end - begun, "theirs-tint", "theirs"),
    ]
    for number, step in enumerate(STEPS):
        parts += _step(_at(number), step)
    notes = (
        "In the gap B hears of A's last word, and looks once at what A wrote last: below a second.",
        "If A is dead or cut off, it says no last word: B waits until A's Lease has run out by",
        "B's own clock. A stops writing five seconds before that, by its own.",
    )
    parts += [text(20, end + 34 + 20 * row, note, "ink s") for row, note in enumerate(notes)]
    return picture((720, end + 92), _TITLE, told, parts)


def _at(number: int) -> int:
    return _TOP + _STEP * number + 18


def _step(y: int, step: Step) -> list[str]:
    found: list[str] = []
    if step.lane:
        inward = step.by == _NEXT
        x = step.by + (_BAR + 2) * (1 if inward else -1)
        found.append(text(x, y + 20, step.lane, "ink s", "start" if inward else "end"))
    if step.by == _LEASES:
        return [*found, *_told(y, step.words)]
    near = step.by + (_BAR if step.by < _LEASES else -_BAR)
    edge = _LEASES - 6 if step.by < _LEASES else _LEASES + 6
    begin, to = (edge, near) if step.seen else (near, edge)
    found.append(arrow(f"M{begin} {y}H{to}", "faint" if step.seen else _kind(step.by)))
    return [*found, *(_told(y, step.words) if step.words else ())]


def _kind(by: int) -> str:
    return "ours" if by == _FORMER else "theirs"


def _told(y: int, words: str) -> list[str]:
    width = 8 * len(words) + 16
    return [
        box(_LEASES - width / 2, y + 6, width, 24, "plain-tint", "faint"),
        text(_LEASES, y + 23, words, "ink s", "middle"),
    ]
