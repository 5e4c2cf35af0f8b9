"""Installations: which installation of hedgerow an object belongs to, by the marks it carries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.core.managed import managers
from hedgerow.core.meta import CONTROLLER_LABEL, Installation, metadata

if TYPE_CHECKING:
    from hedgerow_schemas.base import Object


def installation_of(live: Object, controller: str) -> Installation:
    """Tell which installation's controller has the object: by its label, else by who applied it.

    Without either it is the one without an instance.
    """
    labels: dict[str, str] = metadata(live).get("labels") or {}
    instance, _, name = labels.get(CONTROLLER_LABEL, "").rpartition(".")
    if name == controller:
        return Installation(instance)
    appliers = {one.manager for one in managers(live) if one.operation == "Apply"}
    start, end = "hedgerow-", f"-{controller}"
    named = sorted(
        name for name in appliers if name.startswith(start) and name.endswith(end) and name != end
    )
    if f"hedgerow{end}" in appliers or len(named) != 1:
        return Installation()
    return Installation(named[0][len(start) : -len(end)])
