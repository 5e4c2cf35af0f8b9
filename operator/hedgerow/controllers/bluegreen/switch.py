"""Switch: the next selection of a BlueGreen's Service, by a table of transitions.

Only the present observation decides, so after a crash a switch goes on where it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hedgerow_schemas.bluegreen import Phase, SwitchPhase

SelectedColour = Literal["Blue", "Green", "Both"]
CheckVerdict = Literal["Running", "Passed", "Failed"]

BOTH: Final = "Both"


def other(phase: Phase) -> Phase:
    """Return the colour that is not this one."""
    return "Green" if phase == "Blue" else "Blue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The facts that a decision depends on.

    `selected` is what the live Service selects, `former` the colour that it selected alone last,
    `chosen` is spec.routeTo. The other fields are about the chosen colour's present template,
    unless they say otherwise.
    """

    selected: SelectedColour | None
    former: Phase | None
    chosen: Phase
    has_spec: bool = True
    available: bool = True
    """It is rolled out as declared, and available."""
    waits: bool = False
    """The switch waits until the chosen colour is available."""
    gated: bool = False
    checks: CheckVerdict = "Passed"
    held: bool = False
    served: bool = False
    """It was routed before, and nothing of it has changed."""
    overlap: bool = False
    overlapped: bool = False
    """It is among the Service's endpoints, and has been for overlapSeconds."""
    baking: bool = False
    """It is selected alone, and has been for less than bakeSeconds."""
    lost: bool = False
    """While it was watched, it was unavailable for too long."""
    rejected: bool = False
    """The status records that the traffic was taken from it again."""
    way_back: bool = False
    """The other colour is available, and its template was routed before."""
    in_use: bool = False
    """There is a Service, whatever it selects, or the status names a colour that was routed."""
    other_up: bool = False
    """The other colour is available."""

    @property
    def alone(self) -> bool:
        """Whether the Service selects the chosen colour, and no other."""
        return self.selected == self.chosen

    @property
    def stay(self) -> Phase | None:
        """The colour that has the traffic until the chosen one gets it; None if there is none."""
        if self.selected == BOTH and self.former is None:
            return other(self.chosen) if self.other_up else None
        if self.selected == BOTH:
            return self.former
        return self.selected or self.former

    @property
    def is_first(self) -> bool:
        """Whether there is nothing that the chosen colour would take the traffic from."""
        return self.stay is None and not self.in_use


@dataclass(frozen=True, slots=True)
class Step:
    """Where a switch stands, and what the Service is to select; None: there is to be none yet."""

    phase: SwitchPhase
    select: SelectedColour | None


@dataclass(frozen=True, slots=True)
class Transition:
    """One row: its step is taken if `when` holds, and that of no row above it.

    `condition` says the same as `when`, for people; `target` is a key of `SELECTS`.
    """

    phase: SwitchPhase
    condition: str
    target: str
    when: Callable[[Situation], bool]


STAYS: Final = "the former colour"
CHOSEN: Final = "the chosen colour"
OTHER: Final = "the other colour"
BOTH_COLOURS: Final = "both"
SELECTS: Final[Mapping[str, Callable[[Situation], SelectedColour | None]]] = {
    STAYS: lambda seen: seen.stay,
    CHOSEN: lambda seen: seen.chosen,
    OTHER: lambda seen: other(seen.chosen),
    BOTH_COLOURS: lambda _seen: BOTH,
}

TRANSITIONS: Final = (
    Transition(
        "RollingBack",
        "The chosen colour is selected, was unavailable for longer than bakeUnavailableSeconds"
        " within bakeSeconds, and the other one can serve: status.rejected names the template.",
        CHOSEN,
        lambda seen: seen.alone and seen.lost and seen.way_back and not seen.rejected,
    ),
    Transition(
        "RollingBack",
        "The chosen colour is selected, status.rejected names its template, and the other one can"
        " serve.",
        OTHER,
        lambda seen: seen.alone and seen.rejected and seen.way_back,
    ),
    Transition(
        "Baking",
        "The chosen colour is selected, for less than bakeSeconds.",
        CHOSEN,
        lambda seen: seen.alone and seen.baking,
    ),
    Transition("Routed", "The chosen colour is selected.", CHOSEN, lambda seen: seen.alone),
    Transition(
        "Switching",
        "Both are selected, or the Service is gone or selects something else, and the chosen colour"
        " is the former one: the choice was reversed.",
        CHOSEN,
        lambda seen: seen.former == seen.chosen and seen.selected in (BOTH, None),
    ),
    Transition(
        "RolledBack",
        "status.rejected names the chosen colour's template: it is not tried again.",
        STAYS,
        lambda seen: seen.rejected,
    ),
    Transition(
        "Switching",
        "There is no Service, the status names no colour that was routed, the other colour is not"
        " available either, and no check is asked for.",
        CHOSEN,
        lambda seen: seen.is_first and not (seen.other_up or seen.gated),
    ),
    Transition(
        "WaitingForAvailability",
        "The chosen colour is not available, and the switch waits for that: promotion is not"
        " Immediate, or switch is Overlap.",
        STAYS,
        lambda seen: not seen.has_spec or (seen.waits and not seen.available),
    ),
    Transition(
        "CheckFailed",
        "A check of this very template has failed.",
        STAYS,
        lambda seen: seen.gated and not seen.served and seen.checks == "Failed",
    ),
    Transition(
        "Checking",
        "Not all checks of this very template have passed yet.",
        STAYS,
        lambda seen: seen.gated and not seen.served and seen.checks == "Running",
    ),
    Transition(
        "Held",
        "hold is set, promoted does not name this very template, and there is a Service, or the"
        " status names a colour that was routed.",
        STAYS,
        lambda seen: seen.held and not (seen.served or seen.is_first),
    ),
    Transition(
        "Overlapping",
        "switch is Overlap, and the other colour is selected.",
        BOTH_COLOURS,
        lambda seen: seen.overlap and seen.selected == other(seen.chosen),
    ),
    Transition(
        "Overlapping",
        "switch is Overlap, and both are selected, but the chosen colour has not been among the"
        " endpoints for overlapSeconds.",
        BOTH_COLOURS,
        lambda seen: seen.overlap and seen.selected == BOTH and not seen.overlapped,
    ),
    Transition("Switching", "In all other cases.", CHOSEN, lambda _seen: True),
)
"""The rows in their order: the first one that holds decides."""


def decide(seen: Situation) -> Step:
    """Return the step of the first transition that holds."""
    row = next(row for row in TRANSITIONS if row.when(seen))
    return Step(row.phase, SELECTS[row.target](seen))
