"""Blind: an applier that needs no right but to create and to patch, and never gets a value.

Every answer is asked for as metadata only. What is cached of a child is that metadata, with the
managed fields, and what we declared ourselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.fields import managed
from hedgerow.fields.ownership import is_before_first_apply
from hedgerow.fields.paths import parse
from hedgerow.kube.errors import Forbidden, Invalid, KubeError
from hedgerow.objects import controller_reference, identity, metadata
from hedgerow.runtime.applier import Applier
from hedgerow_schemas.base import View

if TYPE_CHECKING:
    from collections.abc import Callable

    from hedgerow.kube.client import Cluster
    from hedgerow.objects import ObjectRef
    from hedgerow.plan.writes import Deletion
    from hedgerow.runtime.metrics import Meter
    from hedgerow_schemas.base import Object


class BlindApplier(Applier):
    """Writes children of Namespaces as one field manager, without reading them.

    `owner` returns the Namespace of a name. `probe` is the field manager of dry runs.
    """

    def __init__(
        self,
        cluster: Cluster,
        field_manager: str,
        owner: Callable[[str], ObjectRef | None],
        probe: str,
        meter: Meter | None = None,
    ) -> None:
        super().__init__(cluster, field_manager, meter)
        self.partial = True
        self._owner, self._probe = owner, probe

    def _completed(self, body: Object, answer: Object) -> Object:
        """Return the metadata that the answer has, with what we declared."""
        own = {name: value for name, value in body.items() if name != "metadata"}
        return {**own, "metadata": metadata(answer)}

    async def read(self, ref: ObjectRef) -> Object | None:
        """Return the metadata of our child, or None if there is no object.

        Of somebody else's object, only the name is returned. Raises KubeError.

        It is a dry run by a field manager that holds nothing, which changes nothing and asks for no
        value. It declares the owner reference, because the admission policy lets us write nothing
        without it. If it is refused for that, the object is not ours.
        """
        owner = self._owner(ref.namespace)
        if owner is None:
            return None
        body = identity(ref)
        nobodys: Object = {**body, "metadata": dict(body["metadata"])}
        body["metadata"].pop("uid", None)
        body["metadata"]["ownerReferences"] = [controller_reference(owner)]
        try:
            found = await self._cluster.apply(
                ref.api, body, manager=self._probe, dry_run=True, partial=True
            )
        except Invalid:
            return nobodys  # another object controls it
        except Forbidden as error:
            if error.terminating or not error.causes:
                raise
            return nobodys  # the policy keeps us from what is not ours
        except KubeError as error:
            error.withhold()
            raise
        if found.created:
            return None
        live = {**identity(ref), "metadata": metadata(found.object)}
        return live if self._is_declared_ours(live, owner) else nobodys

    def _is_declared_ours(self, live: Object, owner: ObjectRef) -> bool:
        """Return whether our own entry holds the owner reference.

        The answer shows the one that the dry run adds. Without it, a Secret is not ours any more,
        though our entry may still hold its type. If somebody emptied the managed fields, the
        server's entry for what was there before the dry run tells.
        """
        return any(
            (read := parse(key)).names == ("uid",) and read.values == (owner.uid,)
            for holder, _, tree in managed.entries(live)
            if holder.is_applier(self.field_manager, "") or is_before_first_apply(holder)
            for key in View(tree).mapping("f:metadata", "f:ownerReferences")
        )

    async def find(self, ref: ObjectRef) -> Object | None:
        """Return what `read` does: there is no right to list. Raises KubeError."""
        return await self.read(ref)

    async def delete(self, deletion: Deletion) -> bool:
        """Raise NotImplementedError: there is no right to delete, so no plan asks for it."""
        raise NotImplementedError(f"{deletion.ref} cannot be deleted")
