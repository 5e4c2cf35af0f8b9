"""Slices: parts of the namespaces, as ranges of the hash by which an API server divides them.

A namespace has a point, the first 24 bits of its FNV-1a hash; a resource, its children and its
Events have the same one. What belongs to no namespace has the point of "". Fewer bits would not
tell names apart that differ only at their end: `team-a` to `team-z` have the first 8 in common.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from hedgerow.shard import hashed, point_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["hashed", "point_of"]

COUNT: Final = 1 << 24
"""The number of points."""
Range = tuple[int, int]
"""The first point, and the one after the last."""

_FIELD: Final = "object.metadata.namespace"
_DIGITS: Final = 7
_WIDTH: Final = (1 << 64) // COUNT


class Slices(Struct, frozen=True):
    """A set of points; the ranges are sorted, and do not touch each other."""

    ranges: tuple[Range, ...] = ()

    @classmethod
    def of(cls, ranges: Iterable[Range]) -> Slices:
        """Return the points that are in any of these ranges."""
        merged: list[Range] = []
        for begin, end in sorted(ranges):
            if begin >= end:
                continue
            if merged and begin <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((begin, end))
        return cls(tuple(merged))

    @property
    def share(self) -> float:
        """Which part of all points these are."""
        return sum(end - begin for begin, end in self.ranges) / COUNT

    def __contains__(self, point: int) -> bool:
        """Return whether it has a point."""
        before = bisect_right(self.ranges, (point, COUNT))
        return before > 0 and point < self.ranges[before - 1][1]

    def __bool__(self) -> bool:
        """Return whether it has any point."""
        return bool(self.ranges)

    def __or__(self, other: Slices) -> Slices:
        """Return the points of both."""
        return Slices.of((*self.ranges, *other.ranges)) if self and other else self or other

    def __and__(self, other: Slices) -> Slices:
        """Return the points that both have."""
        return Slices(tuple(_common(self.ranges, other.ranges)))

    def __sub__(self, other: Slices) -> Slices:
        """Return the points that the other one lacks."""
        edges = (0, *(edge for each in other.ranges for edge in each), COUNT)
        gaps = zip(edges[::2], edges[1::2], strict=True)
        return self & Slices(tuple(gap for gap in gaps if gap[0] < gap[1]))


def _common(first: tuple[Range, ...], second: tuple[Range, ...]) -> Iterator[Range]:
    at, to = 0, 0
    while at < len(first) and to < len(second):
        begin, end = max(first[at][0], second[to][0]), min(first[at][1], second[to][1])
        if begin < end:
            yield begin, end
        if first[at][1] < second[to][1]:
            at += 1
        else:
            to += 1


ALL: Final = Slices(((0, COUNT),))
NONE: Final = Slices()


def selector(slices: Slices) -> str:
    """Return the `shardSelector` of a list or watch that has the objects of these slices alone.

    It is empty without slices, which means everything to a server.
    """
    return " || ".join(
        f"shardRange({_FIELD}, '{_bound(begin)}', '{_bound(end)}')" for begin, end in slices.ranges
    )


def _bound(number: int) -> str:
    return f"0x{number * _WIDTH:016x}"


def written(slices: Slices) -> str:
    """Return slices as a text: hexadecimal ranges with commas between them."""
    return ",".join(f"{begin:x}-{end:x}" for begin, end in slices.ranges)


def parse(text: str) -> Slices:
    """Return the slices that a text says; raises ValueError if it is none."""
    return Slices.of(_range(each) for each in text.split(",")) if text else NONE


def _range(text: str) -> Range:
    begin, hyphen, end = text.partition("-")
    if not hyphen or max(len(begin), len(end)) > _DIGITS:
        raise ValueError("not a range of points")
    found = int(begin, 16), int(end, 16)
    if not 0 <= found[0] < found[1] <= COUNT:
        raise ValueError("not a range of points")
    return found
