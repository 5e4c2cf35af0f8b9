"""Validation: contradictions in the spec of a BlueGreen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow import FieldError
from hedgerow.controllers.bluegreen.scene import is_gated, overlap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow_schemas.bluegreen import BlueGreen


def errors(bg: BlueGreen) -> Iterator[FieldError]:
    """Yield the contradictions in a spec; CEL rules of the definition refuse the same."""
    spec = bg.spec
    if (chosen := spec.route_to) not in dict(spec.phases()):
        detail = f"routeTo is {chosen}, so there must be a {chosen.lower()}Spec to route to"
        yield FieldError(f"spec.{chosen.lower()}Spec", None, detail, "FieldValueRequired")
    if is_gated(bg) and not spec.checks:
        detail = "promotion is WhenChecked, so there must be checks"
        yield FieldError("spec.checks", None, detail, "FieldValueRequired")
    if spec.checks and spec.promotion == "WhenAvailable":
        detail = "checks go with promotion WhenChecked, or with Immediate, which runs none"
        yield FieldError("spec.promotion", spec.promotion, detail)
    if spec.bake_seconds is not None and spec.promotion == "Immediate":
        detail = "bakeSeconds needs promotion WhenAvailable or WhenChecked"
        yield FieldError("spec.bakeSeconds", spec.bake_seconds, detail)
    if (
        spec.switch == "Overlap"
        and spec.bake_seconds
        and overlap(bg).total_seconds() > spec.bake_seconds
    ):
        detail = "the overlap must not be longer than bakeSeconds"
        yield FieldError("spec.overlapSeconds", spec.overlap_seconds, detail)
