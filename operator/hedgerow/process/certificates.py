"""Certificates: which ones the servers of one operator process show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from hedgerow.kube.pod import in_pod
from hedgerow.runtime.clock import ClusterClock
from hedgerow.serving.admission.configuration import webhook_names
from hedgerow.serving.certificates.ca_bundles import Bundles
from hedgerow.serving.certificates.mounted import MountedCertificates
from hedgerow.serving.certificates.rotation import Rules
from hedgerow.serving.certificates.secret import SecretStore
from hedgerow.serving.certificates.self_signed import SelfSigned, SharedCertificates

if TYPE_CHECKING:
    from hedgerow.kube.cluster import Cluster
    from hedgerow.registry import Registry
    from hedgerow.runtime.clock import Clock
    from hedgerow.serving.certificates.served import Certificates
    from hedgerow.settings import Settings

OWN_CERTIFICATE = "`--certificate-directory` with one that its caBundle trusts"

log = structlog.get_logger(__name__)


def certificates(
    settings: Settings, registry: Registry, cluster: Cluster, clock: Clock
) -> Certificates:
    """Return the servers' certificates: mounted ones, shared ones, or those of this process.

    They go by the API server's clock: by a wrong one of ours, the shared certificate would be
    replaced by one that is not valid for the API server.
    """
    clock = ClusterClock(clock, cluster.server_time)
    if settings.certificate_directory:
        return MountedCertificates(clock, Path(settings.certificate_directory))
    installation = settings.installation
    base, namespace = installation.base, settings.system_namespace
    rules = Rules(server_names(base, namespace))
    if not (settings.leader_elect or (settings.webhooks and in_pod())):
        # No other replica shares them, and no webhook configuration points here. So write nothing
        # to the cluster, where it would stay after this process ends.
        if settings.webhooks:
            log.warning("no webhook configuration trusts this certificate", remedy=OWN_CERTIFICATE)
        return SelfSigned(clock, rules)
    manager = installation.field_manager("certificates")
    store = SecretStore(cluster, name=f"{base}-serving", namespace=namespace, manager=manager)
    webhooks = webhook_names(registry.chosen(settings.controllers), installation.domain)
    bundles = Bundles(
        cluster,
        name=base,
        manager=manager,
        webhooks=webhooks if settings.webhooks else frozenset(),
    )
    return SharedCertificates(clock, rules, store, bundles)


def server_names(base: str, namespace: str) -> tuple[str, ...]:
    """Return the DNS names by which clients reach the servers."""
    services = [f"{base}-{port}.{namespace}.svc" for port in ("webhook", "metrics")]
    return (*services, *(f"{name}.cluster.local" for name in services), "localhost")
