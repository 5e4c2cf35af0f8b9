"""Scaled: StatefulSet and HorizontalPodAutoscaler, as far as the scaler meets them."""

from __future__ import annotations

from typing import Final

from hedgerow_schemas.builtin import HorizontalPodAutoscaler, StatefulSet
from hedgerow_testing.memory.kind import ServedKind, Wrong
from hedgerow_testing.memory.podspec import ANY
from hedgerow_testing.memory.schema import Atomic, Object, Struct


def _autoscaler_wrong(new: Object, _old: Object | None) -> Wrong:
    spec = new.get("spec", {})
    least = spec.get("minReplicas", 1)
    if least < 1:
        return {"spec.minReplicas": "must be greater than or equal to 1"}
    if least > spec.get("maxReplicas", 0):
        return {"spec.maxReplicas": "must be greater than or equal to `minReplicas`"}
    return {}


STATEFUL_SET: Final = ServedKind(
    StatefulSet.api,
    {
        "spec": Struct(
            {
                **dict.fromkeys(("replicas", "serviceName", "template"), ANY),
                "selector": Atomic(),
            },
            {"replicas": 1},
        ),
    },
    generations=("spec",),
    empty={"spec": {"selector": None}},
)
HORIZONTAL_POD_AUTOSCALER: Final = ServedKind(
    HorizontalPodAutoscaler.api,
    {
        "spec": Struct(
            {
                "scaleTargetRef": Struct(dict.fromkeys(("apiVersion", "kind", "name"), ANY)),
                "minReplicas": ANY,
                "maxReplicas": ANY,
            },
            {"minReplicas": 1},
        ),
    },
    empty={"spec": {}},
    validate=_autoscaler_wrong,
)
