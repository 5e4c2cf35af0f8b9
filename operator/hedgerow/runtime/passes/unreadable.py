"""Unreadable: the problem that a resource reports of a kind that the API server does not show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hedgerow.kube.errors import Missing
from hedgerow.plan.conditions import Problem

if TYPE_CHECKING:
    from hedgerow.runtime.cache.caches import Source

OF_CHILDREN: Final = "none is written or deleted until then"
OF_OTHERS: Final = "nothing is written for this resource until then"


def problem(source: Source) -> Problem:
    """Return the problem of the resources that a refused source concerns: why, and what to do."""
    api, refused = source.api, source.store.refused
    is_child = source.relation is None and source.contributes_to is None
    effect = OF_CHILDREN if is_child else OF_OTHERS
    kind = f"{api.kind} ({api.group_version})"
    if isinstance(refused, Missing):
        return Problem(
            "NotServed",
            f"the API server does not serve {kind}: install its definition; {effect}",
        )
    where = f"in namespace {source.namespace}" if source.namespace else "in all namespaces"
    return Problem(
        "Forbidden",
        f"the operator may not list and watch {api.plural}, {kind}, {where}: grant it these"
        f" rights; {effect}",
    )
