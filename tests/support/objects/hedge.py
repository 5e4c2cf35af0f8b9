"""Hedge: a custom resource with every shape that a structural schema can give a field."""

from __future__ import annotations

from typing import Any

from support.objects.cases import LABELS, Case, Field, Object

CUSTOM = Case(
    "custom resource",
    {
        "apiVersion": "test.hedgerow.example/v1",
        "kind": "Hedge",
        "metadata": {"labels": LABELS},
        "spec": {
            "height": 2,
            "limit": "1000m",
            "plants": [{"name": "yew", "count": 3}, {"name": "box", "count": 1}],
            "colours": ["green", "red"],
            "trail": ["a", "b"],
            "soil": {"kind": "loam"},
            "notes": {"one": "1"},
        },
    },
    (
        Field(("spec", "height"), 3),
        Field(("spec", "limit"), "1"),
        Field(("spec", "plants", {"name": "yew"}, "count"), 9),
        Field(("spec", "trail"), ["b"]),
        Field(("spec", "soil"), {"kind": "clay"}),
        Field(("spec", "notes", "one"), "2"),
    ),
)


def _text(**more: Any) -> Object:
    return {"type": "string", **more}


HEDGE = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "hedges.test.hedgerow.example"},
    "spec": {
        "group": "test.hedgerow.example",
        "names": {"kind": "Hedge", "plural": "hedges"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "height": {"type": "integer"},
                                    "limit": _text(),
                                    "plants": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {
                                                "name": _text(),
                                                "count": {"type": "integer"},
                                                "kept": {"type": "boolean", "default": True},
                                            },
                                        },
                                    },
                                    "colours": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "set",
                                        "items": _text(),
                                    },
                                    "trail": {"type": "array", "items": _text()},
                                    "soil": {
                                        "type": "object",
                                        "x-kubernetes-map-type": "atomic",
                                        "properties": {
                                            "kind": _text(),
                                            "depth": {"type": "integer", "default": 1},
                                        },
                                    },
                                    "notes": {
                                        "type": "object",
                                        "additionalProperties": _text(),
                                    },
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {
                                    "phase": _text(),
                                    "conditions": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["type"],
                                        "items": {
                                            "type": "object",
                                            "required": ["type"],
                                            "properties": {"type": _text(), "status": _text()},
                                        },
                                    },
                                },
                            },
                        },
                    }
                },
            }
        ],
    },
}
