"""Configuration: the names and paths in the webhook configuration, by which we are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hedgerow.objects import DOMAIN
from hedgerow_schemas.base import ApiResource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.contract import Controller

VALIDATING: Final = ApiResource(
    "admissionregistration.k8s.io/v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    namespaced=False,
)


def webhook_name(api: ApiResource, domain: str = DOMAIN) -> str:
    """Return the name of a resource's webhook, in a program's domain."""
    return f"{api.kind.lower()}.{domain}"


def webhook_names(controllers: Iterable[Controller[Any]], domain: str = DOMAIN) -> frozenset[str]:
    """Return the names of all webhooks."""
    return frozenset(
        webhook_name(controller.resource.api, domain)
        for controller in controllers
        if controller.is_custom
    )


def path_of(api: ApiResource) -> str:
    """Return the URL path of a resource's webhook, in kubebuilder's form."""
    return f"/validate-{api.group.replace('.', '-')}-{api.version}-{api.kind.lower()}"
