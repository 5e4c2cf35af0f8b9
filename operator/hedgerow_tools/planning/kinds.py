"""Kinds: the kinds of the objects in files, as the server has them or as the files define them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from hedgerow.kube.errors import KubeError, Missing
from hedgerow_schemas.base import ApiResource, View

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import Object

DEFINITION: Final = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
_GROUP_VERSION: Final = re.compile(r"([a-z0-9][a-z0-9.-]*/)?[a-z0-9]+")


@dataclass(slots=True)
class KnownKinds:
    """Looks up each kind once; `defined` are those that the files define and that may come later.

    `changed` are the kinds, by group and name, whose definitions the files change.
    """

    cluster: Cluster
    defined: dict[tuple[str, str], ApiResource] = field(
        default_factory=dict[tuple[str, str], ApiResource]
    )
    changed: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    _known: dict[tuple[str, str], ApiResource | KubeError | None] = field(
        default_factory=dict[tuple[str, str], ApiResource | KubeError | None]
    )

    async def served(self, group_version: str, kind: str) -> ApiResource | None:
        """Return a kind as it is served, or None if it is not. Raises KubeError."""
        asked = group_version, kind
        if asked not in self._known:
            self._known[asked] = await self._asked(group_version, kind)
        api = self._known[asked]
        if isinstance(api, KubeError):
            raise api
        return api

    async def _asked(self, group_version: str, kind: str) -> ApiResource | KubeError | None:
        if not _GROUP_VERSION.fullmatch(group_version):
            return None
        try:
            return await self.cluster.resource(group_version, kind)
        except Missing:
            return None
        except KubeError as error:
            if not error.code:  # no answer: there is no use in asking about others
                raise
            return error

    async def versions(self, group: str) -> frozenset[str]:
        """Return the group versions of a group that are served. Raises KubeError."""
        view = View(await self.cluster.get(f"/apis/{group}"))
        return frozenset(View(version).text("groupVersion") for version in view.items("versions"))

    async def in_other_version(self, api: ApiResource) -> ApiResource | None:
        """Return the kind in a version that is served, if there is one. Raises KubeError."""
        try:
            versions = await self.versions(api.group)
        except Missing:
            return None
        kinds = [await self.served(group_version, api.kind) for group_version in sorted(versions)]
        return next(filter(None, kinds), None)

    def define(self, definition: Object, *, changed: bool) -> None:
        """Remember the kind that a CustomResourceDefinition defines."""
        for api in _defined(View(definition)):
            self.defined[api.group_version, api.kind] = api
            if changed:
                self.changed.add((api.group, api.kind))


def _defined(definition: View) -> Iterator[ApiResource]:
    group, names = definition.text("spec", "group"), View(definition.mapping("spec", "names"))
    namespaced = definition.text("spec", "scope") == "Namespaced"
    for version in map(View, definition.items("spec", "versions")):
        group_version = f"{group}/{version.text('name')}"
        yield ApiResource(group_version, names.text("kind"), names.text("plural"), namespaced)
