"""Disputes: an object's contested fields with remedies, as lines below a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hedgerow.cli.notes import Note
from hedgerow.cli.program import program_name
from hedgerow.plan.conflict_reports import sentence
from hedgerow.texts import escaped, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow.cli.owners.selection import Dispute
    from hedgerow.plan.remedies import Remedy

FIRST: Final = 3
"""The most contested fields with remedies if the user did not ask for contested ones."""


@dataclass(frozen=True, slots=True)
class Disputes:
    """All contested fields of an object; `all_told`: show remedies for each of them."""

    all: tuple[Dispute, ...] = ()
    all_told: bool = False
    together: tuple[Remedy, ...] = ()
    """What settles several of them at once."""

    def of(self, path: str) -> Dispute | None:
        """Return the dispute at a printed path, or None."""
        return next((one for one in self.all if one.field.path == path), None)

    def lines(self) -> Iterator[Note]:
        """Yield the lines below a page; each command has a line of its own, for pasting."""
        shown = self.all if self.all_told else self.all[:FIRST]
        for dispute in shown:
            told = f"{dispute.field.path}: {sentence(dispute.field, program_name())}"
            yield Note(printable(told), alarm=True)
            for remedy in dispute.remedies:
                yield from _offered(remedy, f"  {remedy.effect}:")
        for remedy in self.together:
            yield from _offered(remedy, f"{remedy.effect}, in one command:")
        if len(self.all) > len(shown):
            yield Note(f"--contested shows {len(self.all) - len(shown)} more contested fields")


def _offered(remedy: Remedy, effect: str) -> Iterator[Note]:
    yield Note(effect)
    yield Note(f"  {escaped(remedy.command)}", is_command=True)


NO_DISPUTES: Final = Disputes()
