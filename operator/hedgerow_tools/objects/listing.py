"""Objects: all objects of a namespace or a cluster, of every kind, by their metadata alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from hedgerow.cli.discovery import spelled
from hedgerow.cli.program import say
from hedgerow.kube.errors import (
    UNDECODABLE,
    Forbidden,
    Garbled,
    Gone,
    Invalid,
    KubeError,
    Missing,
    Throttled,
    Unavailable,
)
from hedgerow.objects import metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hedgerow.cli.discovery import ServedKinds
    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import ApiResource, Object

AT_ONCE = 8
"""The most kinds that are listed at the same time."""
MOST_NAMED = 5
"""The most kinds that a line names."""
OF_ONE_KIND = (Forbidden, Garbled, Gone, Invalid, Missing, Throttled, Unavailable)
"""What may be wrong with one kind while all others are listed."""


@dataclass(frozen=True, slots=True)
class Listed:
    """What was made of each object, with its kind; `unread` could not be read, each with why."""

    objects: tuple[tuple[ApiResource, Object], ...]
    unread: Mapping[str, str]


async def listed(
    cluster: Cluster,
    served: ServedKinds,
    reduce: Callable[[Object], Object | None],
    *,
    namespace: str = "",
    labels: str = "",
) -> Listed:
    """Return what `reduce` makes of the metadata of each object, where that is not None.

    The objects are those of a namespace, or without one of the whole cluster. An object that is
    served in several groups counts once. Raises KubeError if nothing can be listed at all.
    """
    kinds = [api for api in served.kinds if api.namespaced or not namespace]
    items: dict[ApiResource, list[Object]] = {}
    unread = dict.fromkeys(served.failed, "no answer about its kinds")
    failed: list[KubeError] = []
    limit = anyio.CapacityLimiter(AT_ONCE)

    def reduced(item: Object) -> Object:
        made = reduce(item)
        return {} if made is None else {"uid": metadata(item).get("uid"), "made": made}

    async def ask(api: ApiResource) -> None:
        async with limit:
            try:
                listing = await cluster.list(
                    api, namespace, labels=labels, reduce=reduced, partial=True
                )
            except OF_ONE_KIND as error:
                is_forbidden = isinstance(error, Forbidden)
                unread[spelled(api)] = "you may not list them" if is_forbidden else error.message
                failed.append(error)
            else:
                items[api] = [item for item in listing.items if item]
                for entry in listing.undecoded:
                    unread["/".join((api.kind, *filter(None, entry.key)))] = UNDECODABLE

    async with anyio.create_task_group() as tasks:
        for api in kinds:
            tasks.start_soon(ask, api)
    if failed and not items:  # such as a selector that the server cannot read
        raise failed[0]
    unique: dict[str, tuple[ApiResource, Object]] = {}
    for api in kinds:
        for item in items.get(api, ()):
            unique.setdefault(item["uid"], (api, item["made"]))
    return Listed(tuple(unique.values()), unread)


def say_unread(unread: Mapping[str, str]) -> None:
    """Print which kinds could not be read, those for the same reason in one line.

    Many are counted, as for somebody with few rights; JSON has them all.
    """
    reasons: dict[str, list[str]] = {}
    for kind, why in sorted(unread.items()):
        reasons.setdefault(why, []).append(kind.removesuffix("."))
    for why, kinds in reasons.items():
        named = f"{len(kinds)} kinds (-o json has them)" if kinds[MOST_NAMED:] else ", ".join(kinds)
        say(f"not looked at: {named}: {why}")
