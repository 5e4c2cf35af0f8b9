"""Asked: the cluster in memory as a planner's user has it, with or without rights."""

from __future__ import annotations

from typing import Any

from hedgerow.kube.cluster import ApplyResult
from hedgerow.kube.errors import Forbidden, Missing
from hedgerow.plan.yield_and_claim import ALLOW_CLAIMS
from hedgerow.runtime.namespaces import NAMESPACES
from hedgerow.testing.memory.cluster import MemoryCluster
from hedgerow.testing.memory.server import Server
from hedgerow_schemas.base import ApiResource

Object = dict[str, Any]


class Asked(MemoryCluster):
    """`lacks` are the verbs and plurals that the user has no right to, as in `patch services`."""

    def __init__(self, server: Server, *lacks: str) -> None:
        super().__init__(server)
        self.lacks = set(lacks)
        self.reviews: list[str] = []
        self.refuse: dict[str, Exception] = {}
        """What an apply to an object of that kind ends in."""
        self.warnings: tuple[str, ...] = ()
        self.served: list[str] = []
        """The group versions in discovery."""
        self.namespaces: dict[str, Object] = {
            "default": {"metadata": {"name": "default", "labels": {ALLOW_CLAIMS: "true"}}}
        }

    async def allowed(self, verb: str, api: ApiResource, _namespace: str = "") -> bool:
        self.reviews.append(f"{verb} {api.plural}")
        return f"{verb} {api.plural}" not in self.lacks

    async def resource(self, group_version: str, kind: str) -> ApiResource:
        found = self.model.api(group_version, kind)
        if found is None:
            raise Missing("the server does not serve it", code=404)
        return found

    async def get(self, path: str, **_: Any) -> Object:
        """Return what discovery has of a group: of `served`."""
        group = path.removeprefix("/apis/")
        versions = [one for one in self.served if one.startswith(f"{group}/")]
        if not versions:
            raise Missing("the server could not find the requested resource", code=404)
        return {"versions": [{"groupVersion": one} for one in versions]}

    async def apply(self, api: ApiResource, body: Any, **more: Any) -> ApplyResult:
        self._admit("patch", api)
        return self._answered(await super().apply(api, body, **more))

    async def dry_run_create(self, api: ApiResource, *args: Any, **more: Any) -> ApplyResult:
        self._admit("create", api)
        return self._answered(await super().dry_run_create(api, *args, **more))

    async def dry_run_patch(self, api: ApiResource, *args: Any, **more: Any) -> ApplyResult:
        self._admit("patch", api)
        return self._answered(await super().dry_run_patch(api, *args, **more))

    def _admit(self, verb: str, api: ApiResource) -> None:
        self._check(f"{verb} {api.plural}")
        if api.kind in self.refuse:
            raise self.refuse[api.kind]

    def _answered(self, found: ApplyResult) -> ApplyResult:
        return ApplyResult(found.object, found.created, self.warnings)

    async def read(self, api: ApiResource, name: str, namespace: str = "", **more: Any) -> Any:
        self._check(f"get {api.plural}")
        if api == NAMESPACES:
            return self.namespaces.get(name)
        return await super().read(api, name, namespace, **more)

    async def list(self, api: ApiResource, namespace: str = "", **more: Any) -> Any:
        self._check(f"list {api.plural}")
        return await super().list(api, namespace, **more)

    def _check(self, right: str) -> None:
        if right in self.lacks:
            raise Forbidden(f"you cannot {right}", code=403)
