"""Writes: the applies and deletions of a plan, and the full manifest that each apply declares."""

from __future__ import annotations

import hashlib
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace

from hedgerow.encoding import encode
from hedgerow.fields import managed_fields, ownership
from hedgerow.fields.applyconfiguration import without_nulls
from hedgerow.fields.canonical import builtin, is_completed
from hedgerow.fields.ownership import covers
from hedgerow.objects import (
    CONTROLLER_LABEL,
    ChildId,
    ObjectRef,
    controller_of,
    controller_reference,
    digest,
    identity,
    metadata,
    ref_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hedgerow.contract import Apply, Create
    from hedgerow.fields.ownership import Leaf, Verdict
    from hedgerow_schemas.base import ApiResource, Object


_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
STATUS: Final = ChildId("", "status")
"""The target that a resource's status is."""


def declare(
    child: Apply | Create,
    resource: ObjectRef,
    label: str,
    live: Mapping[str, Any] = _NOTHING,
    *,
    key: str = CONTROLLER_LABEL,
) -> Object:
    """Return the manifest of a child: what compose declares, plus our label and owner reference.

    `key` and `label` are the label's, as an `Installation` tells them.

    Nulls are dropped, because server-side apply would own them; all else is unchanged. A live
    child's owner reference keeps `blockOwnerDeletion`, which other operators may set: a reference
    is one field, and leaving that part out would be a conflict.
    """
    fields: Object = without_nulls(child.fields)  # a copy: compose may share its parts
    meta: Object = fields.pop("metadata", {})
    body = identity(ObjectRef(child.kind.api, resource.home, child.name))
    body["metadata"] = {
        **meta,
        **body["metadata"],
        "labels": {**meta.get("labels", {}), key: label},
        "ownerReferences": [{**_blocking(live), **controller_reference(resource)}],
    }
    return {**body, **fields}


def _blocking(live: Mapping[str, Any]) -> Object:
    word = "blockOwnerDeletion"
    reference = controller_of(live)
    return {word: reference[word]} if word in reference else {}


def contributed(ref: ObjectRef, fields: Object) -> Object:
    """Return the manifest of a contribution: the identity and these fields, without nulls."""
    wanted: Object = without_nulls(fields)
    body = identity(replace(ref, uid=""))
    return {**wanted, **body, "metadata": {**wanted.get("metadata", {}), **body["metadata"]}}


def unguarded(body: Object) -> Object:
    """Return the declaration alone, without the uid or version that the write requires."""
    meta = {k: v for k, v in body["metadata"].items() if k not in ("uid", "resourceVersion")}
    return {**body, "metadata": meta}


def admitted_digest(want: Object, verdict: Verdict) -> str:
    """Return a digest of a declaration and of all that differs after its apply; empty if nothing.

    `verdict` is the one on the answer to our own apply.
    """
    rest = ownership.residual(verdict)
    return digest(want, rest) if rest else ""


def settles(write: Write, answer: Object, verdict: Verdict) -> bool:
    """Return whether the answer to a write shows the object settled, in whatever spelling.

    `verdict` is the one on the answer.
    """
    return (
        not verdict.contested
        and write.is_complete
        and not (write.once or write.foreign)
        and not ownership.items_of_unknown_owner(unguarded(write.body), answer)
    )


def judge_admitted(want: Object, live: Object, field_manager: str, admitted: str = "") -> Verdict:
    """Return a verdict that accepts how the server respelled the declaration.

    `admitted` is the `admitted_digest` of the last answer, or empty if that is unknown. If it is
    for exactly this declaration and exactly these differences, the object is settled.
    """
    verdict = ownership.judge(want, live, field_manager)
    if not admitted or verdict.contested or admitted_digest(want, verdict) != admitted:
        return verdict
    changed = rewritten(want, verdict)
    return replace(verdict, leaves=(), rewritten=changed, is_admitted=True)


def rewritten(want: Object, verdict: Verdict) -> tuple[Leaf, ...]:
    """Return the applied leaves that admission rewrote.

    What the server only added to is not among them, nor what it sets where nothing is said.
    """
    is_builtin = builtin(str(want.get("apiVersion")))
    changed = (
        leaf
        for leaf in verdict.leaves
        if leaf.why == "changed"
        and not covers(leaf.want, leaf.live)
        and not (is_builtin and is_completed(leaf.want, leaf.live, leaf.field_path))
    )
    return (*verdict.rewritten, *changed)


def content(obj: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return an object without its status and the metadata that changes along with the status."""
    meta = metadata(obj)
    entries: list[Mapping[str, Any]] = meta.get("managedFields") or []
    return (
        {name: value for name, value in obj.items() if name not in ("status", "metadata")},
        {name: v for name, v in meta.items() if name not in ("resourceVersion", "managedFields")},
        [entry for entry in entries if entry.get("subresource") != "status"],
    )


def checksum(*parts: Any) -> str:
    """Return a short digest of JSON values, to compare within one process.

    It is twenty times faster than `digest`, but depends on the order of the keys.
    """
    return hashlib.blake2b(encode(parts), digest_size=8).hexdigest()


class Write(Struct, frozen=True):
    """One apply to make: `create` means create-only, else `body` has the observed uid.

    `content` stands for the content that the write was planned with, see `PlanInput.content`; it is
    empty if nothing is there. An object made `once` is never applied again, whatever the server
    changed in it. `claims` are the leaves that the user told us to take back. They are the only
    reason to force: `body` then has no other contested leaf, and the observed version. `declared`
    is a digest of what compose declares; `left_out` are the fields that others keep. A `foreign`
    object is not ours: nothing but `body` is ever written to it. A write of a `subresource` is for
    exactly the observed version. The `target` is that of the ledger, if it is not the object.
    `after` are the kinds whose writes come first. It `is_complete` if `body` leaves out nothing
    that compose declares.
    """

    ref: ObjectRef
    body: Object
    create: bool
    content: str = ""
    restores: tuple[Leaf, ...] = ()
    once: bool = False
    claims: tuple[Leaf, ...] = ()
    declared: str = ""
    foreign: bool = False
    after: frozenset[str] = frozenset()
    is_complete: bool = True
    left_out: tuple[str, ...] = ()
    subresource: str = ""
    target: ChildId | None = None

    @property
    def is_status(self) -> bool:
        """Whether it writes the resource's status."""
        return self.subresource == "status"

    @property
    def id(self) -> ChildId:
        """The target of the ledger that the write is about."""
        return self.child if self.target is None else self.target

    @property
    def child(self) -> ChildId:
        """The kind and name of the object that is written."""
        return ChildId(self.ref.api.kind, self.ref.name)

    @property
    def intent_digest(self) -> str:
        """A digest of the intended content, before conflicts are left out."""
        return self.declared or checksum(unguarded(self.body))


def give_back(
    api: ApiResource, live: Object, manager: str, remains: Mapping[str, Any] = _NOTHING
) -> Write | None:
    """Return the apply that gives back what `manager` holds of a foreign object, or None.

    It declares the identity, the observed uid, and the fields of `remains` alone. Of these it
    leaves out those that others hold with another value. None: there is nothing to give back.
    """
    if not managed_fields.entry(live, manager):
        return None
    ref = ref_of(api, live)
    want = contributed(ref, {**remains})
    if remains:
        contested = ownership.judge(want, live, manager).contested
        want = ownership.leave_out(want, contested) if contested else want
        if ownership.judge(want, live, manager).settled:
            return None
    body = {**want, "metadata": {**want["metadata"], "uid": ref.uid}}
    held = checksum(metadata(live).get("managedFields"))
    return Write(ref, body, create=False, content=held, foreign=True)


def disowned(api: ApiResource, live: Object, keeps: Iterable[str]) -> Write:
    """Return the apply that gives up a child of which others hold a part.

    It declares the top-level fields that it `keeps` and nothing else, so the server removes our
    label, our owner reference, and all fields that only we hold.
    """
    ref = ref_of(api, live)
    body = {**identity(ref), **{name: live[name] for name in keeps if name in live}}
    return Write(ref, body, create=False, content=checksum(content(live)), foreign=True)


def others_hold_a_part(live: Object, manager: str) -> bool:
    """Return whether another field manager holds something of an object, not only metadata."""
    return any(
        step != "f:metadata"
        for holder, _, tree in managed_fields.entries(live)
        if not holder.subresource and not holder.is_applier(manager, "")
        for step in tree
    )


def next_steps(requests: Iterable[Write | Deletion]) -> tuple[Write | Deletion, ...]:
    """Return the writes and deletions that wait for no other one: one for each object.

    A write waits for the writes to the kinds that it comes `after`: their answers may change it.
    Deletions wait for all writes. If all writes wait for each other, the first one is made.
    """
    first: dict[ChildId, Write | Deletion] = {}
    for request in requests:
        first.setdefault(request.id, request)
    writes = [request for request in first.values() if isinstance(request, Write)]
    if not writes:
        return tuple(first.values())
    kinds = {write.ref.api.kind for write in writes}
    ready = [write for write in writes if kinds.isdisjoint(write.after - {write.ref.api.kind})]
    return tuple(ready or writes[:1])


class Deletion(Struct, frozen=True):
    """One object to prune, with the observed uid and version.

    If it is made anew, `replacement` is the manifest that is created once it is gone, and
    `declared` a digest of the declaration. The object is deleted only once a dry run has shown that
    the server would create the replacement.
    """

    ref: ObjectRef
    version: str
    declared: str = ""
    replacement: Object | None = None
    left_out: ClassVar[tuple[str, ...]] = ()
    """No fields: only a `Write` leaves some out, because others hold them."""

    @property
    def id(self) -> ChildId:
        """The child to delete."""
        return ChildId(self.ref.api.kind, self.ref.name)

    @property
    def content(self) -> str:
        """The key of the content in the ledger: the uid, since all else may have changed."""
        return self.ref.uid

    @property
    def intent_digest(self) -> str:
        """The uid to delete, in any version; of a child that is made anew, its new declaration."""
        return self.declared or self.ref.uid
