"""Policy: PodDisruptionBudget, as the model knows it."""

from __future__ import annotations

from typing import Final

from hedgerow_schemas.builtin import PodDisruptionBudget
from hedgerow_testing.memory.kind import META_CONDITION, ServedKind, Wrong
from hedgerow_testing.memory.podspec import INTEGER, SCALAR, SELECTOR, STRING
from hedgerow_testing.memory.schema import Keyed, Map, Object, Struct

COUNTS: Final = ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")


def _budget_wrong(new: Object, _old: Object | None) -> Wrong:
    given = {"minAvailable", "maxUnavailable"} & new.get("spec", {}).keys()
    return {"spec": "minAvailable and maxUnavailable exclude each other"} if len(given) > 1 else {}


POD_DISRUPTION_BUDGET: Final = ServedKind(
    PodDisruptionBudget.api,
    {
        "spec": Struct(
            {
                **dict.fromkeys(["minAvailable", "maxUnavailable"], SCALAR),
                "unhealthyPodEvictionPolicy": STRING,
                "selector": SELECTOR,
            }
        ),
        "status": Struct(
            {
                **dict.fromkeys((*COUNTS, "observedGeneration"), INTEGER),
                "disruptedPods": Map(SCALAR),
                "conditions": Keyed(("type",), META_CONDITION),
            },
            dict.fromkeys(COUNTS, 0),
        ),
    },
    status=True,
    generations=("spec",),
    empty={"spec": {}, "status": dict.fromkeys(COUNTS, 0)},
    derive=lambda body: {"spec": {}, **body},
    validate=_budget_wrong,
)
