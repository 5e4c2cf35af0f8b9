"""Ancestry: the resource of ours that an object descends from, or who holds the object instead."""

from __future__ import annotations

from itertools import islice
from shlex import quote
from typing import TYPE_CHECKING, Final

import typer

from hedgerow.cli.exits import Exit
from hedgerow.cli.program import program_name, registry, say, typed
from hedgerow.cli.targets import Place, found_kind, read
from hedgerow.cli.tree.resources import is_ours
from hedgerow.fields.managed import managers
from hedgerow.objects import controller_of, metadata
from hedgerow_schemas.base import View

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hedgerow.cli.tree.kinds import Family
    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import ApiResource, Object

MOST_SOURCES: Final = 3
"""The most sources of a copy that are named."""
DEEPEST: Final = 4
"""The most owners that are read: a Pod, its ReplicaSet, its Deployment, the resource."""


async def resource_of(
    cluster: Cluster, api: ApiResource, name: str, namespace: str, ours: Sequence[Family]
) -> tuple[Sequence[Family], str, str] | None:
    """Return the family and name of an object's resource, and the object as `Kind/name`.

    None if the object is such a resource itself. Raises Exit if it is neither, after it has said
    who holds the object, and KubeError.
    """
    place = namespace if api.namespaced else ""
    live = asked = await read(cluster, Place(api, place, name))
    if any(_same(family.api, live) and _is_resource(family, live) for family in ours):
        return None
    for _ in range(DEEPEST):
        owner = controller_of(live)
        group = owner.get("apiVersion", "").rpartition("/")[0]
        family = next(
            (f for f in ours if (f.api.group, f.api.kind) == (group, owner.get("kind"))), None
        )
        if family is not None and family.is_custom:
            return (family,), owner["name"], f"{api.kind}/{name}"
        if not owner:
            break
        above = await found_kind(cluster, ".".join(filter(None, (owner["kind"], group))))
        found = await cluster.read(above, owner["name"], place if above.namespaced else "")
        if found is None or metadata(found)["uid"] != owner.get("uid"):
            break
        live = found
    if sources := list(islice(_sources(asked), MOST_SOURCES)):
        shown = " and ".join(f"`{typed()} tree {source}`" for source in sources)
        say(f"{api.kind}/{name} is a copy of {program_name()}'s; its sources: see {shown}")
        raise typer.Exit(Exit.FAILED)
    holders = ", ".join(dict.fromkeys(one.manager for one in managers(asked))) or "nobody"
    say(
        f"no resource of {program_name()} controls {api.kind}/{name}; its fields are held by"
        f" {holders}: see `{program_name()} owners {api.kind.lower()}/{name}`"
    )
    raise typer.Exit(Exit.FAILED)


def _sources(live: Object) -> Iterator[str]:
    """Yield the resources from which an object is made, as commands take them.

    Of an object that none of our controllers writes, nothing is believed.
    """
    for controller in registry().controllers:
        copies = controller.copies
        if copies is None or not is_ours(live, controller.name, program_name()):
            continue
        if any(_same(kind.api, live) for kind in controller.owns):
            kind = copies.sources.resource.api.kind.lower()
            for namespace, name in copies.of(View(live)):
                yield f"{quote(f'{kind}/{name}')} -n {quote(namespace)}"


def _same(api: ApiResource, live: Object) -> bool:
    return (live.get("apiVersion"), live.get("kind")) == (api.group_version, api.kind)


def _is_resource(family: Family, live: Object) -> bool:
    return family.is_custom or is_ours(live, family.manager, program_name())
