"""Simulated cluster: the one that the operator's passes see in a plan.

Each apply is a dry run whose result is remembered. Reading gives the results of these dry runs, and
otherwise the real objects.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from hedgerow.kube.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Invalid,
    Missing,
    Stale,
    Unavailable,
)
from hedgerow.kube.object_api import ApplyResult
from hedgerow.kube.reviews import may_we
from hedgerow.objects import ObjectRef, identity, is_terminating, metadata
from hedgerow.runtime.events.recorder import EVENTS
from hedgerow_tools.fields.forecast import PlannedEvent, WriteRefusal, details
from hedgerow_tools.fields.merge import merge

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hedgerow.fields.ownership import Leaf
    from hedgerow.kube.cluster import Cluster
    from hedgerow.kube.watch import Listing
    from hedgerow_schemas.base import ApiResource, Object

MOST_WRITES = 256
"""The most writes of a plan; a correct controller settles long before that."""
MOST_OF_ONE = 32
"""The most writes of a plan to one object: fewer than those after which the operator waits."""
DELETED_AT = "1970-01-01T00:00:00Z"
"""The deletionTimestamp of an object that would be deleted but still has finalizers."""
_NEWEST = 2**62
NO_RIGHTS = "you may not patch it"
NO_NAMESPACE = "its namespace does not exist yet"
UNOWNED = "a field that nobody holds would be removed first"
ANEW = "it would be created again after its deletion"


class EndlessError(Exception):
    """The passes keep writing and never settle."""


@dataclass(slots=True)
class SimulatedObject:
    """An object: as it is stored, and as it would be by now.

    `merged` says why it was computed without the server. `claims` are the leaves that would have
    been taken by force.
    """

    ref: ObjectRef
    stored: Object | None
    live: Object | None
    written: bool = False
    merged: str = ""
    claims: tuple[Leaf, ...] = ()
    warnings: tuple[str, ...] = ()
    refused: bool = False


@dataclass(slots=True)
class SimulatedCluster:
    """A cluster in which nothing is written, with the objects as they would be by now.

    `absent`: the namespace does not exist.

    Any method raises KubeError; methods that write raise EndlessError after too many writes.
    """

    cluster: Cluster
    absent: bool = False
    objects: dict[ObjectRef, SimulatedObject] = field(
        default_factory=dict[ObjectRef, SimulatedObject]
    )
    events: list[PlannedEvent] = field(default_factory=list[PlannedEvent])
    refusals: list[WriteRefusal] = field(default_factory=list[WriteRefusal])
    _versions: itertools.count[int] = field(default_factory=itertools.count)
    _written: Counter[str] = field(default_factory=Counter[str])
    _rights: dict[tuple[str, ApiResource, str], bool] = field(
        default_factory=dict[tuple[str, "ApiResource", str], bool]
    )

    def add(self, ref: ObjectRef, stored: Object | None, live: Object, merged: str = "") -> Object:
        """Start with an object that exists or would exist; return it in a form for the caches."""
        place = replace(ref, uid="")
        versioned = self._versioned(live)
        self.objects[place] = SimulatedObject(place, stored, versioned, merged=merged)
        return versioned

    async def claim(self, ref: ObjectRef, leaves: Iterable[Leaf]) -> None:
        """Record what the next apply would take by force. Raises KubeError."""
        obj = await self._object(replace(ref, uid=""))
        obj.claims = (*obj.claims, *leaves)

    def take_over(self, ref: ObjectRef) -> None:
        """Take in that fields without holder were taken over, after a refusal that says nothing.

        The server, which does not know of it, would refuse every later dry run.
        """
        obj = self.objects[replace(ref, uid="")]
        obj.merged, obj.refused = UNOWNED, False
        self.refusals = [refusal for refusal in self.refusals if refusal.object != str(obj.ref)]

    def advance(self, ref: ObjectRef, live: Object) -> Object:
        """Take in an object as somebody else would have changed it; return it for the caches."""
        versioned = self._versioned(live)
        obj = self.objects.get(replace(ref, uid=""))
        if obj is not None:
            obj.live = versioned
        return versioned

    async def read_object(
        self, api: ApiResource, name: str, namespace: str = "", **_: Any
    ) -> Object | None:
        """Return an object as it would be by now, or None."""
        return (await self._object(ObjectRef(api, namespace, name))).live

    async def list(self, api: ApiResource, namespace: str = "", **more: Any) -> Listing:
        """Return the list of real objects."""
        return await self.cluster.list(api, namespace, **more)

    async def apply(
        self,
        api: ApiResource,
        body: Object,
        *,
        manager: str,
        subresource: str = "",
        force: bool = False,
        **_: Any,
    ) -> ApplyResult:
        """Apply as a dry run and return the result."""
        meta = metadata(body)
        ref = ObjectRef(api, str(meta.get("namespace", "")), str(meta["name"]))
        if api == EVENTS:
            regarding = body["regarding"]
            about = f"{regarding['kind']}/{regarding['name']}"
            self.events.append(PlannedEvent(about, body["reason"], body["note"], body["type"]))
            return ApplyResult(body, created=True)
        obj = await self._object(ref)
        if subresource:
            obj.live = self._versioned(merge(obj.live or {}, body, manager, subresource))
            return ApplyResult(obj.live, created=False)
        _guard(obj, body)
        try:
            answer, obj.merged = await self._answered(obj, body, manager, force=force)
        except (Invalid, Conflict, Forbidden, Unavailable) as error:
            obj.refused = True
            self.refusals.append(WriteRefusal(str(ref), details(error)))
            raise
        created = obj.live is None
        uid = metadata(obj.live or answer).get("uid")
        answer = {**answer, "metadata": {**metadata(answer), "uid": uid}}
        obj.live = self._versioned(answer)
        obj.written, obj.refused = True, False
        return ApplyResult(obj.live, created=created)

    async def dry_run_create(
        self, api: ApiResource, namespace: str, body: Object, *, manager: str
    ) -> ApplyResult:
        """Ask the server itself whether it would create an object; without the right, it would."""
        ref = ObjectRef(api, namespace, str(metadata(body)["name"]))
        try:
            return await self.cluster.dry_run_create(api, namespace, body, manager=manager)
        except (Invalid, Forbidden, Unavailable) as error:
            if isinstance(error, Forbidden) and not await self._may("create", ref):
                return ApplyResult(body, created=True)
            self.refusals.append(WriteRefusal(str(ref), details(error)))
            raise

    async def delete(
        self, api: ApiResource, name: str, namespace: str = "", *, uid: str, **_: Any
    ) -> bool:
        """Pretend to delete; an object with finalizers stays until they are removed."""
        obj = await self._object(ObjectRef(api, namespace, name))
        if obj.live is None or metadata(obj.live).get("uid") != uid:
            return False
        meta = metadata(obj.live)
        deleted = {**obj.live, "metadata": {**meta, "deletionTimestamp": DELETED_AT}}
        obj.live = self._versioned(deleted) if meta.get("finalizers") else None
        obj.written = True
        return True

    async def _object(self, ref: ObjectRef) -> SimulatedObject:
        obj = self.objects.get(ref)
        if obj is None:
            stored = None
            if not self.absent:
                stored = await self.cluster.read_object(ref.api, ref.name, ref.namespace)
            obj = self.objects[ref] = SimulatedObject(ref, stored, stored)
        return obj

    async def _answered(
        self, obj: SimulatedObject, body: Object, manager: str, *, force: bool
    ) -> tuple[Object, str]:
        """Return the server's answer, or an object merged here with the reason."""
        why = self._offline(obj)
        if not why:
            try:
                sent = _addressed(body, obj.stored)
                applied = await self.cluster.apply(
                    obj.ref.api, sent, manager=manager, force=force, dry_run=True
                )
            except Forbidden as error:
                if error.terminating or await self._may_apply(obj):
                    raise
                why = NO_RIGHTS
            except Missing as error:
                if not error.served:
                    raise
                self.absent, why = True, NO_NAMESPACE
            else:
                obj.warnings = applied.warnings
                return applied.object, ""
        base = obj.live or {**identity(obj.ref), "metadata": self._born(obj.ref)}
        return merge(base, body, manager, taken=obj.claims), why

    def _offline(self, obj: SimulatedObject) -> str:
        """Return why the server cannot be asked; empty if it can."""
        if self.absent:
            return NO_NAMESPACE
        return ANEW if obj.stored is not None and obj.live is None else obj.merged

    def _born(self, ref: ObjectRef) -> Object:
        """Return the metadata of an object that is created only here."""
        return {**identity(ref)["metadata"], "uid": f"{ref}", "generation": 1}

    async def _may_apply(self, obj: SimulatedObject) -> bool:
        """Return whether we have the rights for an apply, so that it was forbidden otherwise."""
        verbs = ("patch",) if obj.stored is not None else ("patch", "create")
        for verb in verbs:
            if not await self._may(verb, obj.ref):
                return False
        return True

    async def _may(self, verb: str, ref: ObjectRef) -> bool:
        key = (verb, ref.api, ref.namespace)
        if key not in self._rights:
            api = ref.api
            self._rights[key] = await may_we(
                self.cluster, verb, api.group, api.plural, ref.namespace
            )
        return self._rights[key]

    def _versioned(self, obj: Object) -> Object:
        """Return an object with a version newer than any real one, so that caches accept it."""
        count, uid = next(self._versions), metadata(obj).get("uid", "")
        self._written[uid] += 1
        if count > MOST_WRITES or self._written[uid] > MOST_OF_ONE:
            raise EndlessError
        version = str(_NEWEST + count)
        return {**obj, "metadata": {**metadata(obj), "resourceVersion": version}}


def _guard(obj: SimulatedObject, body: Mapping[str, Any]) -> None:
    """Check an apply's preconditions as the server does; raises AlreadyExists and Stale."""
    meta = metadata(body)
    if "uid" not in meta and "resourceVersion" in meta and obj.live is not None:
        raise AlreadyExists(f"{obj.ref} already exists")
    if "uid" in meta and meta["uid"] != metadata(obj.live or {}).get("uid"):
        raise Stale(f"{obj.ref} was deleted and created again meanwhile")


def _addressed(body: Object, stored: Object | None) -> Object:
    """Return the body for the stored object: with its uid, or create-only if there is none."""
    meta = {k: v for k, v in body["metadata"].items() if k not in ("uid", "resourceVersion")}
    guard = {"uid": metadata(stored)["uid"]} if stored is not None else {"resourceVersion": "1"}
    return {**body, "metadata": {**meta, **guard}}


def is_gone(obj: SimulatedObject) -> bool:
    """Return whether a stored object would be deleted."""
    return obj.stored is not None and (obj.live is None or is_terminating(obj.live))
