"""Tree look: the objects of the trees, read once or kept up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio

from hedgerow.cli.program import program_name
from hedgerow.cli.targets import unserved_kind
from hedgerow.kube.errors import Forbidden, KubeError, Missing
from hedgerow.objects import metadata
from hedgerow_schemas.base import ApiResource
from hedgerow_schemas.builtin import Pod
from hedgerow_schemas.job import Job
from hedgerow_tools.objects.managing import is_applied_by
from hedgerow_tools.objects.mirror import Mirror
from hedgerow_tools.tree.members.resources import ObjectIndex, reduced, resource_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import Object
    from hedgerow_tools.tree.members.resources import RootKind, TreeNode

REPLICA_SET: Final = ApiResource("apps/v1", "ReplicaSet", "replicasets")
BELOW: Final[Mapping[str, tuple[ApiResource, ...]]] = {
    "Deployment": (REPLICA_SET, Pod.api),
    "CronJob": (Job.api, Pod.api),
    **dict.fromkeys(("DaemonSet", "Job", "ReplicaSet", "StatefulSet"), (Pod.api,)),
}
"""The kinds that Kubernetes's own controllers create for an object, as far as they are shown."""


class WatchedTrees:
    """The resources of some kinds, in one namespace or (if empty) in all; `name` if given.

    `asked` is an object below that resource, as `Kind/name`, which is marked.

    Before `read`, `kinds` are all requested ones.
    """

    def __init__(
        self,
        cluster: Cluster,
        kinds: Sequence[RootKind],
        namespace: str,
        name: str = "",
        asked: str = "",
    ) -> None:
        self.kinds = tuple(kinds)
        self._namespace = namespace
        self._name = name
        self._asked = asked
        self._cluster = cluster
        self._mirror = Mirror(cluster)
        self._objects, self._problems = self._mirror.objects, self._mirror.problems
        self.changed = self._mirror.changed

    @property
    def has_resources(self) -> bool:
        """Whether there is any tree."""
        return any(any(self._resources(kind)) for kind in self.kinds)

    def trees(self) -> tuple[TreeNode, ...]:
        """Return the trees, sorted by namespace."""
        items = [obj for kind in self._objects.values() for obj in kind.values()]
        index = ObjectIndex(items, {api.kind for api in self._problems if api not in self._objects})
        roots = [
            resource_tree(kind, resource, index, program_name(), asked=self._asked)
            for kind in self.kinds
            for resource in self._resources(kind)
        ]
        return tuple(sorted(roots, key=lambda root: root.namespace))

    def unread(self) -> dict[str, str]:
        """Return the kinds that could not be read, or are no longer followed, with the reason."""
        words = {True: "may be out of date", False: "is left out"}
        return {
            api.kind: f"{words[api in self._objects]}: {error}"
            for api, error in self._problems.items()
            if api.kind not in self.forbidden
        } | dict.fromkeys(self.forbidden, "is left out: you may not read it here")

    @property
    def forbidden(self) -> dict[str, str]:
        """The kinds that are left out because they may not be read, each with the refusal."""
        return {
            api.kind: str(error)
            for api, error in self._problems.items()
            if isinstance(error, Forbidden) and api not in self._objects
        }

    async def read_trees(self, *, lasting: bool = False) -> None:
        """Read once; afterwards `kinds` has only those that could be read.

        Raises Missing if none of the kinds is served, KubeError; and Forbidden if what was asked
        for by name is not found, and may be of a kind that may not be read. Otherwise such kinds
        are left out; if what is read is to be `lasting`, not all may be, as nothing would be left
        to follow. Kinds that Kubernetes has built in are served anyway: they count only if there
        are resources of ours, and nobody misses one that may not be read.
        """
        unserved: dict[ApiResource, KubeError] = {}
        async with anyio.create_task_group() as group:
            for kind in self.kinds:
                group.start_soon(self._list, kind.api, self._name, unserved)
        refused = [
            self._problems[kind.api]
            for kind in self.kinds
            if kind.api in self._problems
            if kind.is_whole or len(self.kinds) == 1
        ]
        asked = self.kinds
        self.kinds = tuple(kind for kind in asked if kind.api in self._objects)
        counted = [kind for kind in self.kinds if kind.is_whole or any(self._resources(kind))]
        is_found = any(any(self._resources(kind)) for kind in counted)
        if refused and ((self._name and not is_found) or (lasting and not counted)):
            raise refused[0]
        if unserved and not (refused or counted):
            raise next(unserved[kind.api] for kind in asked if kind.api in unserved)
        for kind in asked:
            if not kind.is_whole:
                self._problems.pop(kind.api, None)
        async with anyio.create_task_group() as group:
            for api in descendants(kind for kind in self.kinds if any(self._resources(kind))):
                group.start_soon(self._list, api)

    def unheld(self) -> tuple[str, ...]:
        """Return the objects of built-in kinds with the name of which nothing is held now."""
        return tuple(
            f"{kind.api.kind}/{name}"
            for kind in self.kinds
            if not kind.is_whole
            for _, name in self._objects.get(kind.api, {})
            if name == self._name
        )

    async def follow(self) -> None:
        """Keep what was read up to date until cancelled."""
        apis = dict.fromkeys((*(kind.api for kind in self.kinds), *descendants(self.kinds)))
        async with anyio.create_task_group() as group:
            for api in apis:
                namespace = self._namespace if api.namespaced else ""
                group.start_soon(self._mirror.follow, api, namespace, reduced)

    def _resources(self, kind: RootKind) -> Iterator[Object]:
        objects = self._objects.get(kind.api, {})
        named = (objects[key] for key in sorted(objects))
        return (
            obj
            for obj in named
            if self._name in {"", metadata(obj)["name"]}
            if kind.is_whole or (kind.controller and is_applied_by(obj, kind.controller.name))
        )

    async def _list(
        self, api: ApiResource, name: str = "", unserved: dict[ApiResource, KubeError] | None = None
    ) -> None:
        fields = f"metadata.name={name}" if name else ""
        namespace = self._namespace if api.namespaced else ""
        try:
            await self._mirror.read_kind(api, namespace, reduced, fields=fields)
        except Forbidden as error:
            if unserved is None or (missing := await unserved_kind(self._cluster, api)) is None:
                self._problems[api] = error
            else:
                unserved[api] = missing
        except Missing as error:
            if unserved is None:
                self._problems[api] = error
            else:
                unserved[api] = error


def descendants(kinds: Iterable[RootKind]) -> list[ApiResource]:
    """Return the kinds of the resources' children, and of what is created for these."""
    apis: dict[ApiResource, None] = {}
    for kind in kinds:
        made = (api for parent in (kind.api, *kind.below) for api in BELOW.get(parent.kind, ()))
        apis |= dict.fromkeys((*kind.below, *made))
    return [*apis]
