"""Reviews: what an API server asks before it stores a resource."""

from __future__ import annotations

from typing import Any, cast

from hedgerow.contract import Controller
from hedgerow.controllers.cronjob import controller as cronjob
from hedgerow_schemas.base import Resource

Object = dict[str, Any]
CRONJOB = cast("Controller[Resource]", cronjob.CONTROLLER)


def review(
    new: Object | None = None,
    old: Object | None = None,
    controller: Controller[Resource] = CRONJOB,
    **more: Any,
) -> Object:
    """Return the AdmissionReview of an object that is created, or updated if there is an old one.

    What else is given is of its request.
    """
    api = controller.resource.api
    request = {
        "uid": "705ab4f5",
        "kind": {"group": api.group, "version": api.version, "kind": api.kind},
        "resource": {"group": api.group, "version": api.version, "resource": api.plural},
        "operation": "UPDATE" if old else "CREATE",
        "object": new,
        "oldObject": old,
        **more,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
