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
from hedgerow_tools.objects.mirror import Mirror
from hedgerow_tools.tree.resources import ObjectIndex, is_ours, reduced, resource_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from hedgerow.contract import Controller
    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import Object, Resource
    from hedgerow_tools.tree.resources import TreeNode

REPLICA_SET: Final = ApiResource("apps/v1", "ReplicaSet", "replicasets")
BELOW: Final[Mapping[str, tuple[ApiResource, ...]]] = {
    "Deployment": (REPLICA_SET, Pod.api),
    "Job": (Pod.api,),
}
"""The kinds that Kubernetes's own controllers create for a child, as far as they are shown."""


class WatchedTrees:
    """The resources of some controllers, in one namespace or (if empty) in all; `name` if given.

    `asked` is an object below that resource, as `Kind/name`, which is marked.

    Before `read`, `controllers` are all requested ones.
    """

    def __init__(
        self,
        cluster: Cluster,
        controllers: Sequence[Controller[Resource]],
        namespace: str,
        name: str = "",
        asked: str = "",
    ) -> None:
        self.controllers = tuple(controllers)
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
        return any(any(self._resources(controller)) for controller in self.controllers)

    def trees(self) -> tuple[TreeNode, ...]:
        """Return the trees, sorted by namespace."""
        found = [obj for kind in self._objects.values() for obj in kind.values()]
        index = ObjectIndex(found, {api.kind for api in self._problems if api not in self._objects})
        roots = [
            resource_tree(controller, resource, index, program_name(), asked=self._asked)
            for controller in self.controllers
            for resource in self._resources(controller)
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

    async def read(self, *, lasting: bool = False) -> None:
        """Read once; afterwards `controllers` has only those that could be read.

        Raises Missing if none of our kinds is served, KubeError; and Forbidden if what was asked
        for by name is not found, and may be of a kind that may not be read. Otherwise such kinds
        are left out; if what is read is to be `lasting`, not all may be, as nothing would be left
        to follow. Kinds that Kubernetes has built in are served anyway: they count only if there
        are resources of ours, and nobody misses one that may not be read.
        """
        unserved: dict[ApiResource, KubeError] = {}
        async with anyio.create_task_group() as group:
            for controller in self.controllers:
                group.start_soon(self._list, controller.resource.api, self._name, unserved)
        refused = [
            self._problems[c.resource.api]
            for c in self.controllers
            if c.resource.api in self._problems
            if c.is_custom or len(self.controllers) == 1
        ]
        asked = self.controllers
        self.controllers = tuple(c for c in asked if c.resource.api in self._objects)
        counted = [c for c in self.controllers if c.is_custom or any(self._resources(c))]
        is_found = any(any(self._resources(c)) for c in counted)
        if refused and ((self._name and not is_found) or (lasting and not counted)):
            raise refused[0]
        if unserved and not (refused or counted):
            raise next(unserved[c.resource.api] for c in asked if c.resource.api in unserved)
        for controller in asked:
            if not controller.is_custom:
                self._problems.pop(controller.resource.api, None)
        async with anyio.create_task_group() as group:
            for api in descendants(c for c in self.controllers if any(self._resources(c))):
                group.start_soon(self._list, api)

    def unheld(self) -> tuple[str, ...]:
        """Return the objects of built-in kinds with the name of which nothing is held now."""
        return tuple(
            f"{controller.resource.api.kind}/{name}"
            for controller in self.controllers
            if not controller.is_custom
            for _, name in self._objects.get(controller.resource.api, {})
            if name == self._name
        )

    async def follow(self) -> None:
        """Keep what was read up to date until cancelled."""
        apis = [
            *(controller.resource.api for controller in self.controllers),
            *descendants(self.controllers),
        ]
        async with anyio.create_task_group() as group:
            for api in apis:
                group.start_soon(self._mirror.follow, api, self._namespace, reduced)

    def _resources(self, controller: Controller[Resource]) -> Iterator[Object]:
        found = self._objects.get(controller.resource.api, {})
        named = (found[key] for key in sorted(found))
        return (
            obj
            for obj in named
            if self._name in {"", metadata(obj)["name"]}
            if controller.is_custom or is_ours(obj, controller.name, program_name())
        )

    async def _list(
        self, api: ApiResource, name: str = "", unserved: dict[ApiResource, KubeError] | None = None
    ) -> None:
        fields = f"metadata.name={name}" if name else ""
        try:
            await self._mirror.read(api, self._namespace, reduced, fields=fields)
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


def descendants(controllers: Iterable[Controller[Resource]]) -> list[ApiResource]:
    """Return the kinds of the controllers' children, and of what is created for these."""
    found: dict[ApiResource, None] = {}
    for controller in controllers:
        owned = [kind.api for kind in controller.owns]
        found |= dict.fromkeys(
            (*owned, *(api for kind in owned for api in BELOW.get(kind.kind, ())))
        )
    return [*found]
