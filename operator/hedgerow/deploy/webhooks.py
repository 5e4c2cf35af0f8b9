"""Webhooks: the webhook configuration, which tells the API server what to ask us about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hedgerow.objects import DOMAIN, PROGRAM
from hedgerow.serving.admission.configuration import VALIDATING, path_of, webhook_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hedgerow.contract import Controller
    from hedgerow_schemas.base import ApiResource, Object

PORT: Final = 443
TIMEOUT: Final = 5
"""The most seconds that a user's request waits for us."""


def configuration(
    controllers: Sequence[Controller[Any]],
    *,
    name: str,
    namespace: str,
    service: str = f"{PROGRAM}-webhook",
    domain: str = DOMAIN,
) -> Object | None:
    """Return the ValidatingWebhookConfiguration of these controllers; None if none is asked.

    Built-in resources have none: if we were down, nobody could write them. `caBundle` is left out:
    the code that makes the certificates applies it as a field manager of its own.
    """
    apis = [controller.resource.api for controller in controllers if controller.is_custom]
    if not apis:
        return None
    place = {"name": service, "namespace": namespace, "port": PORT}
    return {
        "apiVersion": VALIDATING.group_version,
        "kind": VALIDATING.kind,
        "metadata": {"name": name},
        "webhooks": [_webhook(api, place, domain) for api in apis],
    }


def _webhook(api: ApiResource, place: Object, domain: str) -> Object:
    """Return one webhook: for the resource itself, and never for an object being deleted."""
    return {
        "name": webhook_name(api, domain),
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {**place, "path": path_of(api)}},
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        # If the operator is down, users must still be able to delete objects, with finalizers too.
        "matchConditions": [
            {
                "name": "is-not-being-deleted",
                "expression": "!has(object.metadata.deletionTimestamp)",
            }
        ],
        "rules": [
            {
                "apiGroups": [api.group],
                "apiVersions": [api.version],
                "operations": ["CREATE", "UPDATE"],
                "resources": [api.plural],
                "scope": "Namespaced" if api.namespaced else "Cluster",
            }
        ],
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT,
    }
