"""Assignment: which member shall serve which slices, and how the next one is made of the last.

The points are cut where the weight is. A change moves only what has no member, and what a member
has above its share, so that a new member gets its share and nothing else moves.
"""

from __future__ import annotations

from bisect import bisect_left
from heapq import heapify, heapreplace
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta, Struct, ValidationError, convert

from hedgerow.encoding import decode, to_json
from hedgerow.objects import digest
from hedgerow.shards.slices import COUNT, Slices

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hedgerow.shards.slices import Range

MOST_MEMBERS: Final = 100
MOST_PARTS: Final = 1024
"""The most parts that are read, and twice as many as are written."""
LONGEST: Final = 64 * 1024
"""Characters: a longer text is nothing that hedgerow wrote."""
LAST_EPOCH: Final = 10**15
TOLERANCE: Final = 0.08
"""The part of its fair share that a new assignment may give a member too much or too little."""
_GRID: Final = COUNT // 256
"""Where nothing is known to cut at, the points are cut into 256 slices."""
_UNKNOWN: Final = 0.01
"""The part of all weight that is spread over all points, for namespaces that nobody told of."""
_HEAVY: Final = 0.5
"""Pieces with this part of a fair share go first."""

Weights = tuple[tuple[int, float], ...]
"""Points and what weighs there, up to the next point."""


class Assignment(Struct, frozen=True):
    """Which member serves which points: parts that begin at a point and belong to a member."""

    epoch: Annotated[int, Meta(ge=1, le=LAST_EPOCH)]
    nonce: Annotated[str, Meta(max_length=64)]
    members: Annotated[tuple[Annotated[str, Meta(max_length=253)], ...], Meta(max_length=100)]
    parts: Annotated[
        tuple[tuple[Annotated[int, Meta(ge=0, lt=COUNT)], Annotated[int, Meta(ge=0)]], ...],
        Meta(min_length=1, max_length=MOST_PARTS),
    ]

    @property
    def token(self) -> str:
        """What a member says to have adopted exactly this one."""
        return f"{self.epoch}.{digest(self.epoch, self.nonce, self.members, self.parts)}"

    def of(self, member: str) -> Slices:
        """Return the slices of a member; none if it has none."""
        return Slices.of(part for part, name in self.owned() if name == member)

    def owned(self) -> Iterable[tuple[Range, str]]:
        """Return the parts, each with the name of its member."""
        ends = (*(begin for begin, _ in self.parts[1:]), COUNT)
        return (
            ((begin, end), self.members[index])
            for (begin, index), end in zip(self.parts, ends, strict=True)
        )


def text(assignment: Assignment) -> str:
    """Return an assignment as JSON."""
    return to_json(
        {
            "epoch": assignment.epoch,
            "nonce": assignment.nonce,
            "members": assignment.members,
            "parts": assignment.parts,
        }
    ).decode()


def read(written: str) -> Assignment | None:
    """Return the assignment that a text says; None if it says none, whoever wrote it."""
    try:
        if len(written) > LONGEST:
            return None
        found = convert(decode(written.encode()), Assignment)
    except (ValueError, ValidationError):
        return None
    begins = [begin for begin, _ in found.parts]
    whole = begins[0] == 0 and all(one < other for one, other in pairwise(begins))
    named = all(index < len(found.members) for _, index in found.parts)
    distinct = len({*found.members}) == len(found.members)
    return found if whole and named and distinct else None


class _Piece(Struct):
    """Points that are not cut, what they weigh, and who has them."""

    begin: int
    end: int
    weight: float
    owner: str | None


def next_parts(
    prior: Mapping[str, Slices],
    members: Sequence[str],
    weights: Weights = (),
    preferred: frozenset[str] = frozenset(),
) -> tuple[tuple[int, int], ...]:
    """Return the parts of the next assignment to these members, which are sorted.

    `prior` is who had what. Those `preferred` may get more of what is free than a fair share, up to
    the tolerance: they are there to stay.
    """
    pieces = _pieces(prior, members, weights)
    loads = _loads(pieces, members)
    fair = sum(loads.values()) + sum(each.weight for each in pieces if each.owner is None)
    fair /= len(members)
    if not all(_is_fair(load, fair) for load in loads.values()):
        _release(pieces, loads, fair)
    _give(pieces, loads, fair, preferred)
    parts = _merged(pieces, {name: index for index, name in enumerate(members)})
    if len(parts) <= MOST_PARTS // 2:
        return parts
    for each in pieces:  # too scattered: begin anew, with one range for each
        each.owner = None
    _give(pieces, dict.fromkeys(members, 0.0), fair, frozenset())
    return _merged(pieces, {name: index for index, name in enumerate(members)})


def heaviest(prior: Mapping[str, Slices], weights: Weights) -> float:
    """Return what the heaviest member has, as a part of what it can have at best.

    A piece that weighs more than a fair share cannot be divided.
    """
    members = sorted(prior)
    pieces = _pieces(prior, members, weights)
    fair = sum(each.weight for each in pieces) / max(1, len(members))
    least = max(fair, *(each.weight for each in pieces))
    return max(_loads(pieces, members).values(), default=0.0) / least


def _is_fair(load: float, fair: float) -> bool:
    return abs(load - fair) <= TOLERANCE * fair


def _pieces(prior: Mapping[str, Slices], members: Sequence[str], weights: Weights) -> list[_Piece]:
    """Return the points in pieces: cut at the edges of owners, at each weight, at the grid."""
    owned = sorted(
        (*each, name) for name in {*members} & prior.keys() for each in prior[name].ranges
    )
    edges = {edge for begin, end, _ in owned for edge in (begin, end)}
    edges.update(point for point, _ in weights)
    cuts = sorted(edges | {*range(0, COUNT, _GRID)} | {COUNT})
    base = max(_UNKNOWN * sum(weight for _, weight in weights), 1e-6) / COUNT
    pieces = [_Piece(begin, end, base * (end - begin), None) for begin, end in pairwise(cuts)]
    for begin, end, name in owned:
        for piece in pieces[bisect_left(cuts, begin) : bisect_left(cuts, end)]:
            piece.owner = piece.owner or name
    for point, weight in weights:
        pieces[bisect_left(cuts, point)].weight += weight
    return pieces


def _loads(pieces: Iterable[_Piece], members: Iterable[str]) -> dict[str, float]:
    found = dict.fromkeys(members, 0.0)
    for each in pieces:
        if each.owner is not None:
            found[each.owner] += each.weight
    return found


def _release(pieces: Sequence[_Piece], loads: dict[str, float], fair: float) -> None:
    """Take from each member what it has above its fair share, beginning at its end."""
    fits = {*loads}
    for each in reversed(pieces):
        if each.owner is None or each.owner not in fits:
            continue
        if loads[each.owner] - each.weight >= fair:
            loads[each.owner] -= each.weight
            each.owner = None
        elif each.weight <= _HEAVY * fair:
            fits.remove(each.owner)  # else all that weighs next to nothing would move too


def _give(
    pieces: Sequence[_Piece], loads: dict[str, float], fair: float, preferred: frozenset[str]
) -> None:
    """Give each free piece to a member: neighbours to one, until it has enough."""
    free = [each for each in pieces if each.owner is None]
    heavy = sorted((each for each in free if each.weight > _HEAVY * fair), key=_weight)
    for each in reversed(heavy):
        each.owner = min(loads, key=lambda name: loads[name])
        loads[each.owner] += each.weight
    light = iter([each for each in free if each.owner is None])
    piece = next(light, None)
    for name in sorted(loads, key=lambda name: (name not in preferred, loads[name], name)):
        most = fair * (1 + TOLERANCE) if name in preferred else fair
        while piece is not None and loads[name] + piece.weight <= most:
            piece.owner = name
            loads[name] += piece.weight
            piece = next(light, None)
    least = [(load, name) for name, load in loads.items()]
    heapify(least)
    while piece is not None:
        load, piece.owner = least[0]
        heapreplace(least, (load + piece.weight, piece.owner))
        piece = next(light, None)


def _weight(piece: _Piece) -> float:
    return piece.weight


def _merged(pieces: Iterable[_Piece], index: Mapping[str, int]) -> tuple[tuple[int, int], ...]:
    parts: list[tuple[int, int]] = []
    for each in pieces:
        owner = index[each.owner or ""]
        if not parts or parts[-1][1] != owner:
            parts.append((each.begin, owner))
    return tuple(parts)


def groups(weights: Mapping[int, float], slices: Slices, most: int = 64) -> Weights:
    """Return what weighs at which points in at most about so many groups of neighbours.

    A group ends where a range of `slices` ends; what is heavy is a group of its own.
    """
    known = sorted((point, weight) for point, weight in weights.items() if point in slices)
    limit = sum(weight for _, weight in known) / max(1, most)
    ends = [end for _, end in slices.ranges]
    found: list[tuple[int, float]] = []
    until = -1
    for point, weight in known:
        if point < until and found[-1][1] + weight <= limit:
            found[-1] = (found[-1][0], found[-1][1] + weight)
        else:
            found.append((point, weight))
            until = ends[bisect_left(ends, point + 1)]
    return tuple(found)
