"""Owned: a Deployment that several field managers hold, and the view of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hedgerow_tools.fields.field_tree import owners
from hedgerow_tools.fields.selection import choose
from hedgerow_tools.owners.view import OwnersView, owners_view
from support.objects.judged import Object, item

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
IMAGE = '.spec.containers[name="main"].image'
CONTAINERS = {"f:spec": {"f:containers": {'k:{"name":"main"}': item("name", "image")}}}


def entry(who: str, tree: Object, time: str = "2026-01-01T11:55:00Z", **more: str) -> Object:
    manager, _, operation = who.partition("/")
    named = {"manager": manager, "operation": operation or "Apply", "apiVersion": "apps/v1"}
    return {**named, "time": time, "fieldsV1": tree, **more}


LIVE: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "web",
        "namespace": "shop",
        "uid": "child",
        "ownerReferences": [
            {
                "apiVersion": "app.demo.kakao.com/v1",
                "kind": "BlueGreen",
                "name": "demo",
                "uid": "owner",
                "controller": True,
            }
        ],
        "managedFields": [
            entry("hedgerow-bluegreen", CONTAINERS),
            entry("kubectl-set/Update", CONTAINERS, "2025-12-29T12:00:00Z"),
            entry("kubectl/Update", {"f:spec": {"f:replicas": {}}}, "", subresource="scale"),
            entry("old/Update", {"f:spec": {"f:lost": {}}}, apiVersion="apps/v1beta1"),
        ],
    },
    "spec": {
        "containers": [{"name": "main", "image": "app:1"}],
        "replicas": 3,
        "paused": False,
        "empty": {},
    },
}
OWNER: Object = {
    "apiVersion": "app.demo.kakao.com/v1",
    "kind": "BlueGreen",
    "metadata": {"name": "demo", "uid": "owner"},
    "status": {
        "contested": [
            {"object": "Deployment/web", "path": IMAGE, "manager": "kubectl-set"},
            {"object": "BlueGreen/demo", "path": ".status.routeTo", "manager": "x"},
        ]
    },
}


def told(live: Object = LIVE, marks: dict[str, str] | None = None, **chosen: Any) -> OwnersView:
    whole = owners(live, {IMAGE: "BlueGreen/demo"} if marks is None else marks)
    return owners_view(live, whole, choose(whole, **chosen))
