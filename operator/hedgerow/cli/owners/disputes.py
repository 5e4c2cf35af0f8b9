"""Disputes: what is contested of an object, and what settles it, as lines under a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hedgerow.fields.redaction import printable
from hedgerow.plan.conflicts import sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow.cli.owners.selection import Dispute

FIRST: Final = 3
"""Contested fields of which it is told what settles them when nobody asks for contested ones."""


@dataclass(frozen=True, slots=True)
class Disputes:
    """All that is contested of an object; `all_told`: each with what settles it."""

    all: tuple[Dispute, ...] = ()
    all_told: bool = False

    def of(self, path: str) -> Dispute | None:
        """Return what is contested at a place, as its path is printed, or None."""
        return next((one for one in self.all if one.field.path == path), None)

    def lines(self) -> Iterator[str]:
        """Return what is to be told below a page; a command has a line of its own, to be pasted."""
        shown = self.all if self.all_told else self.all[:FIRST]
        for dispute in shown:
            yield printable(f"{dispute.field.path}: {sentence(dispute.field)}")
            for remedy in dispute.remedies:
                yield f"  {remedy.effect}:"
                yield f"  {remedy.command}"
        if len(self.all) > len(shown):
            yield f"{len(self.all) - len(shown)} more are told with --contested"


NO_DISPUTES: Final = Disputes()
