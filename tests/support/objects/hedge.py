"""Hedge: a custom resource with every shape that a structural schema can give a field."""

from __future__ import annotations

from dataclasses import replace

from support.objects.cases import Field, case
from support.objects.definitions import definition, free, items, number, of, text

CUSTOM = replace(
    case(
        *("test.hedgerow.example/v1", "Hedge"),
        Field(("spec", "height"), 3),
        Field(("spec", "limit"), "1"),
        Field(("spec", "plants", {"name": "yew"}, "count"), 9),
        Field(("spec", "trail"), ["b"]),
        Field(("spec", "soil"), {"kind": "clay"}),
        Field(("spec", "notes", "one"), "2"),
        spec={
            "height": 2,
            "limit": "1000m",
            "plants": [{"name": "yew", "count": 3}, {"name": "box", "count": 1}],
            "colours": ["green", "red"],
            "trail": ["a", "b"],
            "soil": {"kind": "loam"},
            "notes": {"one": "1"},
        },
    ),
    name="custom resource",
)

PLANT = of("name", name=text(), count=number(), kept=number("boolean", default=True))
SOIL = of(kind=text(), depth=number(default=1)) | {"x-kubernetes-map-type": "atomic"}
SPEC = of(
    height=number(),
    limit=text(),
    plants=items(PLANT, "name"),
    colours=items(text(), kind="set"),
    trail=items(text()),
    soil=SOIL,
    notes=free(),
)
CONDITIONS = items(of("type", type=text(), status=text()), "type")
HEDGE = definition(
    "test.hedgerow.example", "Hedge", of(spec=SPEC, status=of(phase=text(), conditions=CONDITIONS))
)
