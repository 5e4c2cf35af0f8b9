"""Closing: a kind whose definition refuses new objects while it is being removed.

Whether there are objects of a kind is asked before its definition is deleted, which deletes them
too. Between the two anybody may create one; so the definition is made to refuse that first.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from hedgerow.kube.errors import Stale
from hedgerow.kube.retry import backoff
from hedgerow_schemas.base import View
from hedgerow_schemas.crd import CRD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow.kube.cluster import Cluster
    from hedgerow.kube.retry import Timing
    from hedgerow_schemas.base import Object

SETTLE: Final = 3.0
"""Seconds until every API server of a cluster goes by the changed definition."""
APPLY_SECONDS: Final = 30.0
"""Seconds for one apply: a described definition is three quarters of a megabyte."""
ATTEMPTS: Final = 5
"""How often a delete is tried of a definition that has just changed."""
_RULES: Final = "x-kubernetes-validations"
_RULE: Final[Object] = {
    # A change of an object that is there stays possible: its finalizers may have to go.
    "rule": "oldSelf.hasValue()",
    "optionalOldSelf": True,
    "message": "this kind is being uninstalled, so nothing of it can be created; `hedgerow install`"
    " makes that possible again",
}


def is_closed(definition: Object) -> bool:
    """Return whether every version of a definition refuses new objects."""
    schemas = list(_schemas(definition))
    return bool(schemas) and all(_RULE in schema.get(_RULES, ()) for schema in schemas)


async def close(cluster: Cluster, definition: Object, manager: str) -> None:
    """Have a live definition refuse new objects.

    It is applied as it was read. Raises Conflict where another manager holds its versions, and
    KubeError.
    """
    closed = _declared(definition)
    for schema in _schemas(closed):
        rules: list[Any] = schema.get(_RULES, [])
        schema[_RULES] = [*(rule for rule in rules if rule != _RULE), _RULE]
    await _applied(cluster, closed, manager)


async def reopen(cluster: Cluster, definition: Object, manager: str) -> None:
    """Have a definition take objects again; raises KubeError."""
    opened = _declared(definition)
    for schema in _schemas(opened):
        rules: list[Any] = [rule for rule in schema.get(_RULES, []) if rule != _RULE]
        schema.pop(_RULES, None)
        if rules:
            schema[_RULES] = rules
    await _applied(cluster, opened, manager)


async def delete_closed(cluster: Cluster, name: str, uid: str, timing: Timing) -> bool:
    """Delete a definition that has stayed closed; False, and nothing deleted, where it was opened.

    The version is part of the delete, so nobody opens it between the look and the delete. Raises
    Stale for one that changes all the time, and KubeError.
    """
    for attempt in range(1, ATTEMPTS):
        with suppress(Stale):
            return await _delete_as_it_is(cluster, name, uid)
        await timing.sleep(backoff(attempt, timing.draw()))
    return await _delete_as_it_is(cluster, name, uid)


async def _delete_as_it_is(cluster: Cluster, name: str, uid: str) -> bool:
    live = await cluster.read(CRD, name)
    if live is None or View(live).uid != uid:
        return True
    if not is_closed(live):
        return False
    await cluster.delete(CRD, name, uid=uid, version=live["metadata"]["resourceVersion"])
    return True


async def _applied(cluster: Cluster, definition: Object, manager: str) -> None:
    await cluster.apply(CRD, definition, manager=manager, timeout=APPLY_SECONDS)


def _declared(definition: Object) -> Object:
    """Return all of a live definition that an apply can declare, so that it gives nothing up."""
    meta = definition["metadata"]
    kept = {key: meta[key] for key in ("name", "uid", "labels", "annotations") if key in meta}
    versions = [
        {**version, "schema": {"openAPIV3Schema": {**version["schema"]["openAPIV3Schema"]}}}
        for version in definition["spec"]["versions"]
    ]
    return {"metadata": kept, "spec": {**definition["spec"], "versions": versions}}


def _schemas(definition: Object) -> Iterator[Object]:
    for version in View(definition).items("spec", "versions"):
        yield version["schema"]["openAPIV3Schema"]
