"""Object API: what reads and writes objects: a cluster, one in memory, or a dry run of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from hedgerow.kube.watch import Listing
    from hedgerow_schemas.base import ApiResource, Object


class ApplyResult(Struct, frozen=True):
    """The object on the server after an apply; `created` if it did not exist before."""

    object: Object
    created: bool
    warnings: tuple[str, ...] = ()


class ObjectApi(Protocol):
    """The requests for objects; each method raises a `hedgerow.kube.errors.KubeError`.

    `hedgerow.kube.cluster.Cluster` says what each parameter means.
    """

    async def apply(
        self,
        api: ApiResource,
        body: Object,
        *,
        manager: str,
        subresource: str = "",
        force: bool = False,
        timeout: float = ...,  # noqa: ASYNC109 - a budget, over several attempts
    ) -> ApplyResult:
        """Apply `body`, all that `manager` declares, and return the result."""
        ...

    async def dry_run_create(
        self, api: ApiResource, namespace: str, body: Object, *, manager: str
    ) -> ApplyResult:
        """Return what a create would store, by a dry run."""
        ...

    async def read_object(
        self,
        api: ApiResource,
        name: str,
        namespace: str = "",
        *,
        timeout: float = ...,  # noqa: ASYNC109
    ) -> Object | None:
        """Return the object, or None."""
        ...

    async def list(
        self,
        api: ApiResource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        page: int = ...,
    ) -> Listing:
        """Return all objects as of one version."""
        ...

    async def delete(
        self,
        api: ApiResource,
        name: str,
        namespace: str = "",
        *,
        uid: str,
        version: str = "",
        timeout: float = ...,  # noqa: ASYNC109
    ) -> bool:
        """Delete the object with this `uid`, and this `version` if given; False if it is gone."""
        ...
