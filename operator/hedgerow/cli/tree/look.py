"""Tree look: the objects of the trees, read once or kept up to date."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import anyio

from hedgerow.cli.program import program_name
from hedgerow.cli.tree.resources import ObjectIndex, is_ours, reduced, resource_tree
from hedgerow.kube.errors import Forbidden, Missing
from hedgerow.kube.watch import Bookmark, Snapshot, reflect
from hedgerow.objects import metadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hedgerow.cli.tree.kinds import Family
    from hedgerow.cli.tree.resources import TreeNode
    from hedgerow.kube.cluster import Cluster
    from hedgerow.kube.errors import KubeError
    from hedgerow.kube.watch import Changed
    from hedgerow_schemas.base import ApiResource, Object

Key = tuple[str, str]


class WatchedTrees:
    """The objects of some kinds, in one namespace or (if empty) in all; only `name` if given.

    `asked` is an object below that resource, as `Kind/name`, which is marked.

    Before `read`, `families` are all requested ones.
    """

    def __init__(
        self,
        cluster: Cluster,
        families: Sequence[Family],
        namespace: str,
        name: str = "",
        asked: str = "",
    ) -> None:
        self.families = tuple(families)
        self._problems: dict[ApiResource, KubeError] = {}
        self._cluster = cluster
        self._namespace = namespace
        self._name = name
        self._asked = asked
        self._objects: dict[ApiResource, dict[Key, Object]] = {}
        self._news = anyio.Event()

    def trees(self) -> tuple[TreeNode, ...]:
        """Return the trees, sorted by namespace."""
        found = [obj for kind in self._objects.values() for obj in kind.values()]
        index = ObjectIndex(found, {api.kind for api in self._problems if api not in self._objects})
        roots = [
            resource_tree(
                resource,
                family.owned,
                index,
                program_name(),
                custom=family.is_custom,
                asked=self._asked,
            )
            for family in self.families
            for resource in self._resources(family)
        ]
        return tuple(sorted(roots, key=lambda root: root.namespace))

    def unread(self) -> dict[str, str]:
        """Return the kinds that could not be read, or are no longer followed, with the reason."""
        words = {True: "may be out of date", False: "is left out"}
        return {
            api.kind: f"{words[api in self._objects]}: {error}"
            for api, error in self._problems.items()
        }

    async def read(self) -> None:
        """Read once; afterwards `families` has only those that could be read.

        Raises Missing if none of our kinds is served, Forbidden if none may be read, KubeError.
        Kinds that Kubernetes has built in are served anyway: they count only if there are resources
        of ours, and nobody misses one that may not be read.
        """
        unserved: list[KubeError] = []
        async with anyio.create_task_group() as group:
            for family in self.families:
                group.start_soon(self._list, family.api, self._name, unserved)
        refused = [self._problems[f.api] for f in self.families if f.api in self._problems]
        asked = self.families
        self.families = tuple(f for f in asked if f.api in self._objects)
        counted = [f for f in self.families if f.is_custom or any(self._resources(f))]
        if (refused or unserved) and not counted:
            raise next(iter((*refused, *unserved)))
        for family in asked:
            if not family.is_custom:
                self._problems.pop(family.api, None)
        async with anyio.create_task_group() as group:
            for api in _descendants(f for f in self.families if any(self._resources(f))):
                group.start_soon(self._list, api)

    def unheld(self) -> tuple[str, ...]:
        """Return the objects of built-in kinds with the name of which nothing is held now."""
        return tuple(
            f"{family.api.kind}/{name}"
            for family in self.families
            if not family.is_custom
            for _, name in self._objects.get(family.api, {})
            if name == self._name
        )

    async def follow(self) -> None:
        """Keep what was read up to date until cancelled."""
        apis = [*(family.api for family in self.families), *_descendants(self.families)]
        async with anyio.create_task_group() as group:
            for api in apis:
                group.start_soon(self._follow, api)

    async def changed(self) -> None:
        """Wait until something has changed since the last call."""
        await self._news.wait()
        self._news = anyio.Event()

    def _resources(self, family: Family) -> Iterator[Object]:
        found = self._objects.get(family.api, {})
        named = (found[key] for key in sorted(found))
        return (
            obj
            for obj in named
            if self._name in {"", metadata(obj)["name"]}
            if family.is_custom or is_ours(obj, family.manager, program_name())
        )

    async def _list(
        self, api: ApiResource, name: str = "", unserved: list[KubeError] | None = None
    ) -> None:
        fields = f"metadata.name={name}" if name else ""
        try:
            found = await self._cluster.list(api, self._namespace, fields=fields, reduce=reduced)
        except Forbidden as error:
            self._problems[api] = error
        except Missing as error:
            if unserved is None:
                self._problems[api] = error
            else:
                unserved.append(error)
        else:
            self._objects[api] = {_key(obj): obj for obj in found.items}

    async def _follow(self, api: ApiResource) -> None:
        def note(error: KubeError) -> None:
            self._problems[api] = error
            self._news.set()

        events = reflect(self._cluster, api, self._namespace, reduce=reduced, on_problem=note)
        async with aclosing(events) as heard:
            async for event in heard:
                self._problems.pop(api, None)
                self._take(api, event)
                self._news.set()

    def _take(self, api: ApiResource, event: Snapshot | Changed | Bookmark) -> None:
        match event:
            case Snapshot(items=items):
                self._objects[api] = {_key(obj): obj for obj in items}
            case Bookmark():
                pass
            case _ if event.type == "DELETED":
                self._objects.get(api, {}).pop(_key(event.object), None)
            case _:
                self._objects.setdefault(api, {})[_key(event.object)] = event.object


def _key(obj: Object) -> Key:
    meta = metadata(obj)
    return meta.get("namespace", ""), meta["name"]


def _descendants(families: Iterable[Family]) -> list[ApiResource]:
    return list(dict.fromkeys(api for family in families for api in family.descendants))
