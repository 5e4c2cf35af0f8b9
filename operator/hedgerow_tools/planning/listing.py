"""Plan list: forecasts as JSON for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.encoding import builtins
from hedgerow_tools.fields.forecast import worst
from hedgerow_tools.fields.identity import identity_of_ref
from hedgerow_tools.planning.terminal import settling, settling_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hedgerow_schemas.base import Object
    from hedgerow_tools.fields.diff import Line
    from hedgerow_tools.fields.forecast import Forecast, ObjectForecast


def listed(forecasts: Sequence[Forecast]) -> Object:
    """Return the forecasts for programs, with a verdict for each and for all."""
    return {"verdict": worst(forecasts), "resources": [_forecast(f) for f in forecasts]}


def _forecast(forecast: Forecast) -> Object:
    return {
        **builtins(identity_of_ref(forecast.ref)),
        "controller": forecast.controller or None,
        "fieldManager": forecast.field_manager,
        "verdict": forecast.verdict,
        "objects": [_object(found) for found in forecast.objects],
        "contested": [
            {**held.wire(), "remedies": settling(forecast, held)} for held in forecast.contested
        ],
        "together": settling_all(forecast),
        "claims": forecast.claims,
        "yields": forecast.yields,
        "refusals": [
            {"object": r.object, "message": "; ".join(r.causes), "causes": r.causes}
            for r in forecast.refusals
        ],
        "conditions": {"before": forecast.before, "after": forecast.after},
        "status": {"before": forecast.said_before, "after": forecast.said_after},
        "events": [{"regarding": about, **builtins(notice)} for about, notice in forecast.events],
        "later": [_object(found) for found in forecast.later],
        "looksAgainInSeconds": forecast.again_in and forecast.again_in.total_seconds(),
        "unchecked": forecast.unchecked,
        "unanswered": forecast.unanswered or None,
    }


def _object(found: ObjectForecast) -> Object:
    """Return one object; `dryRun` is false if the server was not asked, and `merged` says why."""
    return {
        **builtins(identity_of_ref(found.ref)),
        "action": found.action,
        "dryRun": not found.merged,
        "merged": found.merged or None,
        "forced": found.forced,
        "warnings": found.warnings,
        "fields": [_line(line) for line in found.lines],
    }


def _line(line: Line) -> Object:
    values: dict[str, Any] = {}
    if line.kind != "added":
        values["old"] = line.old
    if line.kind != "removed":
        values["new"] = line.new
    return {
        "path": line.path,
        "change": line.kind,
        **values,
        "holders": line.holders,
        "holdersAfter": line.after,
    }
