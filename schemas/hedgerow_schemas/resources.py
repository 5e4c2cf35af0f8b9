"""Resources: every custom resource that hedgerow installs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.cronjob import CronJob
from hedgerow_schemas.editor import OBJECT_META
from hedgerow_schemas.memcached import Memcached
from hedgerow_schemas.structural import upstream_types

if TYPE_CHECKING:
    from hedgerow_schemas.base import CustomResource

RESOURCES: tuple[type[CustomResource], ...] = (BlueGreen, Memcached, CronJob)


def needed_types() -> frozenset[str]:
    """Name the types of Kubernetes that the resources' schemas are made with."""
    used = {name for resource in RESOURCES for name in upstream_types(resource)}
    return frozenset(used | {OBJECT_META})
