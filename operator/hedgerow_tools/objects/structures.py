"""Structures: of the kinds that a server publishes in OpenAPI, read once for each group version."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hedgerow.kube.errors import KubeError
from hedgerow_tools.fields.structure import structure_of

if TYPE_CHECKING:
    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import ApiResource
    from hedgerow_tools.fields.structure import Structure


@dataclass(slots=True)
class Structures:
    """The structures of a cluster's kinds."""

    cluster: Cluster
    _documents: dict[str, Any] = field(default_factory=dict[str, Any])
    _known: dict[ApiResource, Structure | None] = field(
        default_factory=dict["ApiResource", "Structure | None"]
    )

    async def of(self, api: ApiResource) -> Structure | None:
        """Return a kind's structure, or None if the server does not tell it: managed fields do."""
        if api not in self._known:
            self._known[api] = structure_of(await self._document(api.group_version), api)
        return self._known[api]

    async def _document(self, group_version: str) -> Any:
        if group_version not in self._documents:
            root = "apis" if "/" in group_version else "api"
            try:
                document = await self.cluster.get(f"/openapi/v3/{root}/{group_version}")
            except KubeError:
                document = None
            self._documents[group_version] = document
        return self._documents[group_version]
