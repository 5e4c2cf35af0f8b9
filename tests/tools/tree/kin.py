"""Kin: a BlueGreen with its children and theirs, as a cluster would show them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from hedgerow.controllers.bluegreen.controller import CONTROLLER as BLUEGREEN
from hedgerow_schemas.builtin import ConfigMap, Deployment, Service
from hedgerow_schemas.job import Job
from hedgerow_tools.tree.members.resources import ObjectIndex, RootKind, TreeNode, resource_tree
from plan import one_child

Object = dict[str, Any]
NOON = "2026-01-01T12:00:00Z"
OURS = "app.demo.kakao.com/v1"
CONTROLLER = replace(BLUEGREEN, owns=(Deployment, Service, Job, ConfigMap))
DEPLOYMENT: Object = {"apiVersion": "apps/v1", "kind": "Deployment"}
SET: Object = {"apiVersion": "apps/v1", "kind": "ReplicaSet"}
POD: Object = {"apiVersion": "v1", "kind": "Pod"}
SERVICE: Object = {"apiVersion": "v1", "kind": "Service"}
JOB: Object = {"apiVersion": "batch/v1", "kind": "Job"}
CONFIG_MAP: Object = {"apiVersion": "v1", "kind": "ConfigMap"}


def entry(manager: str, operation: str = "Update", time: str = NOON, **more: Any) -> Object:
    fields = {"f:spec": {"f:replicas": {}}}
    return {"manager": manager, "operation": operation, "time": time, "fieldsV1": fields, **more}


def owned(kind: Object, name: str, by: str, **body: Any) -> Object:
    """An object whose controller has the uid `by`; its own is its kind and name."""
    kind_of, _, called = by.partition(" ")
    version = {
        "Deployment": "apps/v1",
        "ReplicaSet": "apps/v1",
        "Job": "batch/v1",
        "Service": "v1",
    }.get(kind_of)
    owner = (OURS, "BlueGreen", "demo") if by == "r" else (version, kind_of, called)
    reference = dict(zip(("apiVersion", "kind", "name"), owner, strict=True))
    reference = {"apiVersion": "v1", "kind": "Any", "name": "any"} if not owner[0] else reference
    reference |= {"uid": by, "controller": True}
    meta = {
        "name": name,
        "namespace": "ns",
        "uid": f"{kind['kind']} {name}",
        "ownerReferences": [reference],
        "managedFields": [entry("hedgerow-bluegreen", "Apply")],
    }
    return {**kind, "metadata": meta, **body}


def counts(number: int = 1) -> Object:
    names = ("replicas", "updatedReplicas", "availableReplicas", "readyReplicas")
    return dict.fromkeys(names, number)


def pod(name: str, by: str, *, ready: bool = True) -> Object:
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    return owned(POD, name, by, status={"phase": "Running", "conditions": [condition]})


def objects() -> list[Object]:
    return [
        owned(SERVICE, "demo", "r", spec={"clusterIP": "10.0.0.1"}),
        pod("web-1-a", "ReplicaSet web-1"),
        owned(SET, "web-1", "Deployment web", spec={"replicas": 1}, status=counts()),
        owned(DEPLOYMENT, "web", "r", spec={"replicas": 1}, status=counts()),
    ]


def resource(
    message: str = "all is well", reason: str = "Serving", ready: str = "True", **status: Any
) -> Object:
    condition = {"type": "Ready", "status": ready, "reason": reason, "message": message}
    status = {"conditions": [{**condition, "lastTransitionTime": NOON}], **status}
    meta = {"name": "demo", "namespace": "ns", "uid": "r"}
    return {"apiVersion": OURS, "kind": "BlueGreen", "metadata": meta, "status": status}


def contested(
    ref: str, path: str = ".spec.replicas", manager: str = "kubectl", since: str = NOON
) -> Object:
    how = {"operation": "Update", "subresource": "scale"}
    held = {"object": ref, "path": path, "manager": manager, **how}
    return {**held, "since": since} if since else held


def tree(*more: Object, unread: Collection[str] = (), of: Object | None = None) -> TreeNode:
    return resource_tree(
        RootKind.of(CONTROLLER),
        of or resource(),
        ObjectIndex([*objects(), *more], frozenset(unread)),
    )


def foreign(owner: str = "", *, going: bool = False) -> Object:
    """A ConfigMap `settings` that is not ours."""
    reference = {"kind": "BlueGreen", "name": owner, "uid": "another", "controller": True}
    meta: Object = {"name": "settings", "namespace": "ns", "uid": "f"}
    meta["managedFields"] = [entry("kubectl-create")]
    meta |= {"ownerReferences": [reference]} if owner else {}
    meta |= {"deletionTimestamp": NOON} if going else {}
    return {**CONFIG_MAP, "metadata": meta}


def unmet(name_conflict: Object) -> Object:
    """The resource as it is after the planner met an object that has a child's name."""
    (problem,) = one_child.planned(one_child.plan_input(name_conflict=name_conflict)).problems
    return resource(problem.message, problem.reason, "False")
