"""Preflight: reports what is missing in the cluster, while the operator waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from hedgerow.kube.errors import Forbidden, KubeError, Missing
from hedgerow.kube.reviews import own_rights
from hedgerow.runtime.leaderelection.record import LEASES
from hedgerow.runtime.namespaces import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hedgerow.contract import Controller
    from hedgerow.kube.cluster import Cluster
    from hedgerow.kube.reviews import Rights
    from hedgerow.registry import Registry
    from hedgerow.settings import Settings
    from hedgerow_schemas.base import ApiResource, Resource

READS = ("list", "watch")
WRITES = ("get", "create", "patch", "delete")
CLAIMS = ("get", "patch")

log = structlog.get_logger(__name__)


async def look(cluster: Cluster, settings: Settings, registry: Registry) -> None:
    """Do what `log_missing` does; log a warning if the API server gives no usable answer."""
    try:
        await log_missing(cluster, settings, registry)
    except KubeError as error:
        log.warning("cannot find out what is missing in the cluster", error=str(error))
    except Exception as error:
        # It runs beside the work, which must not end by it.
        log.exception("cannot find out what is missing in the cluster", error=repr(error))


async def log_missing(cluster: Cluster, settings: Settings, registry: Registry) -> None:
    """Log a warning, with the remedy, for each thing that is not there or not permitted.

    These are the namespaces, kinds and permissions that the settings need. Raises KubeError.
    """
    controllers = registry.chosen(settings.controllers)
    for name in settings.namespaces:
        await _namespace(cluster, name)
    for controller in controllers:
        await _served(cluster, controller.resource.api, settings.program)
    for namespace in settings.namespaces or ("",):
        rights = await own_rights(cluster, namespace)
        for controller in controllers:
            await _permitted(cluster, _needed(controller), namespace, rights)
    if settings.shards:
        rights = await own_rights(cluster, settings.system_namespace)
        needed = [(LEASES, (*READS, *WRITES))]
        await _permitted(cluster, needed, settings.system_namespace, rights)
    for controller in controllers:
        for where in sorted(_places(controller)):
            rights = await own_rights(cluster, where)
            await _permitted(cluster, _needed(controller, where), where, rights)


async def _namespace(cluster: Cluster, name: str) -> None:
    try:
        missing = await cluster.read(NAMESPACES, name) is None
    except Forbidden:
        # With rights only inside the namespace, we may not read the Namespace object itself.
        return
    if missing:
        remedy = f"`kubectl create namespace {name}`, or another --namespace"
        log.warning("namespace does not exist", namespace=name, remedy=remedy)


async def _served(cluster: Cluster, api: ApiResource, program: str) -> None:
    try:
        await cluster.resource(api.group_version, api.kind)
    except Missing:
        resource = f"{api.plural}.{api.group}"
        remedy = f"`{program} install`"
        log.warning("custom resource not installed", resource=resource, remedy=remedy)


async def _permitted(
    cluster: Cluster,
    needed: Iterable[tuple[ApiResource, tuple[str, ...]]],
    namespace: str,
    rights: Rights,
) -> None:
    for api, verbs in needed:
        lacking = [verb for verb in verbs if not rights.allow(verb, api)]
        if rights.incomplete:
            lacking = [verb for verb in lacking if not await cluster.allowed(verb, api, namespace)]
        if lacking:
            log.warning(
                "permission missing",
                resource=".".join(filter(None, (api.plural, api.group))),
                verbs=",".join(lacking),
                namespace=namespace or "all",
                remedy="bind a role that grants them" + ("" if namespace else ", or --namespace"),
            )


def _places(controller: Controller[Resource]) -> set[str]:
    """Return the namespaces to which some of a controller's watches are limited."""
    found = {controller.built_in.namespace, *(one.namespace for one in controller.relates)}
    return found - {""}


def _needed(
    controller: Controller[Resource], where: str = ""
) -> Iterator[tuple[ApiResource, tuple[str, ...]]]:
    """Yield what a controller needs in a namespace of its own, or else wherever it works."""
    own = [(controller.resource, controller.built_in.namespace)]
    for kind, place in (*own, *((one.kind, one.namespace) for one in controller.relates)):
        if place == where:
            yield kind.api, READS
    is_written = not controller.is_custom and controller.copies is None
    if is_written and controller.built_in.namespace == where:
        yield controller.resource.api, CLAIMS
    if where:
        return
    for kind in controller.owns:
        yield kind.api, (*READS, *WRITES)
    for claimable in controller.claims:
        yield claimable.kind.api, (*READS, *CLAIMS)
