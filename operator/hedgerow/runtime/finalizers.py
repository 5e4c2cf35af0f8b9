"""Finalizers: what carries one of ours does not outlast its resource on that account."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from hedgerow.core.finalizers import finalization
from hedgerow.core.meta import controller_of, is_going, metadata
from hedgerow.kube.errors import Conflict, Invalid, Missing, Stale

if TYPE_CHECKING:
    from hedgerow.core.contract import Controller, Key
    from hedgerow.runtime.applier import Applier
    from hedgerow.runtime.cache import Cache
    from hedgerow_schemas.base import CustomResource

log = structlog.get_logger(__name__)


async def take_off(
    controller: Controller[CustomResource], cache: Cache, applier: Applier, key: Key
) -> None:
    """Take our finalizers off the children of resources of that name that are gone or going.

    Orphaned ones, which have no owner any more, are found under their own name.
    Raises KubeError when the server cannot be reached or forbids it.
    """
    live = cache.resource(key)
    present = None if live is None or is_going(live) else metadata(live)["uid"]
    for kind, child in cache.finalized(key):
        if present is not None and controller_of(child).get("uid") == present:
            continue
        write = finalization(kind.api, child, applier.field_manager, controller.finalizers)
        if write is None:
            continue
        try:
            answer = (await applier.apply(write, child)).obj
        except (Missing, Stale):
            continue  # it is gone, or has changed, which the watch is about to tell
        except (Conflict, Invalid) as error:
            log.warning("finalizer stays", child=str(write.ref), error=str(error))
            continue
        cache.child_store(kind.api.kind, key[0]).absorb(answer)
