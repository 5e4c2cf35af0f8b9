"""Writes: the applies and deletions of a plan, and the full manifest that each apply declares."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from hedgerow.fields import ownership
from hedgerow.fields.coownership import covers
from hedgerow.objects import (
    CONTROLLER_LABEL,
    NORMAL_FORM_ANNOTATION,
    ObjectRef,
    annotation,
    controller_of,
    controller_reference,
    digest,
    identity,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hedgerow.contract import Apply, Create
    from hedgerow.fields.ownership import Leaf, Verdict
    from hedgerow_schemas.base import Object


_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


def declare(
    child: Apply | Create, owner: ObjectRef, label: str, live: Mapping[str, Any] = _NOTHING
) -> Object:
    """Return the manifest of a child: what compose declares, stamped with what marks it ours.

    Nulls are dropped (server-side apply would own them); all else passes unaltered. A live
    child's reference keeps `blockOwnerDeletion`, which other operators set: a reference is one
    field, and no reason for a conflict.
    """
    fields: Object = ownership.without_nulls(child.fields)
    meta: Object = fields.pop("metadata", {})
    body = identity(ObjectRef(child.kind.api, owner.namespace, child.name))
    body["metadata"] = {
        **meta,
        **body["metadata"],
        "labels": {**meta.get("labels", {}), CONTROLLER_LABEL: label},
        "ownerReferences": [{**_blocking(live), **controller_reference(owner)}],
    }
    return {**body, **fields}


def _blocking(live: Mapping[str, Any]) -> Object:
    word = "blockOwnerDeletion"
    reference = controller_of(live)
    return {word: reference[word]} if word in reference else {}


def unguarded(body: Object) -> Object:
    """Return the declaration alone, without the uid or version that guards its write."""
    meta = {k: v for k, v in body["metadata"].items() if k not in ("uid", "resourceVersion")}
    return {**body, "metadata": meta}


def normal_form(want: Object, verdict: Verdict) -> str:
    """Return the mark of how the server spells a declaration; empty when it spells it as we do.

    Kept as an annotation on the child, so that the knowledge survives a restart.
    """
    rest = ownership.residual(verdict)
    return digest(want, rest) if rest else ""


def with_normal_form(body: Object, mark: str) -> Object:
    """Return the manifest that also declares the mark."""
    meta = body["metadata"]
    annotations = {**meta.get("annotations", {}), NORMAL_FORM_ANNOTATION: mark}
    return {**body, "metadata": {**meta, "annotations": annotations}}


def judge(want: Object, live: Object, field_manager: str) -> Verdict:
    """Judge a declaration, taking the server's recorded spelling of it for ours.

    A live object that carries the mark of exactly this declaration and exactly these
    differences is settled, whatever the differences are.
    """
    verdict = ownership.judge(want, live, field_manager)
    mark = annotation(live, NORMAL_FORM_ANNOTATION)
    if verdict.settled or not mark:
        return verdict
    marked = ownership.judge(with_normal_form(want, mark), live, field_manager)
    known = not marked.contested and normal_form(want, marked) == mark
    if not known:
        return verdict
    # What the server only spells otherwise or adds to is no rewriting.
    rewritten = tuple(
        leaf for leaf in marked.leaves if leaf.why == "changed" and not covers(leaf.want, leaf.live)
    )
    return replace(marked, leaves=(), rewritten=rewritten)


ChildId = tuple[str, str]
"""Kind and name of a child; its namespace is its owner's."""


@dataclass(frozen=True, slots=True)
class Write:
    """One apply to make: `create` means create-only, else `body` carries the observed uid.

    `mark` names this very write to this very object, its status aside; a refusal is remembered
    by it. What is made `once` is never applied again, whatever the server made of it. `claims` are
    the leaves that the user told us to take back: the one reason to force, and `body` then holds
    no other leaf that anybody contests, and the observed version. `declared` names what compose
    declares, of which `body` is what the others leave us.
    """

    ref: ObjectRef
    body: Object
    mark: str
    create: bool
    restores: tuple[Leaf, ...] = ()
    once: bool = False
    claims: tuple[Leaf, ...] = ()
    declared: str = ""

    @property
    def id(self) -> ChildId:
        """The child that the write is about."""
        return self.ref.api.kind, self.ref.name

    @property
    def gist(self) -> str:
        """What the write is to bring about, whatever it meets, and whatever that leaves of it."""
        return self.declared or digest(unguarded(self.body))


@dataclass(frozen=True, slots=True)
class Deletion:
    """One object to prune, with the uid and the version that were observed."""

    ref: ObjectRef
    version: str

    @property
    def id(self) -> ChildId:
        """The child that is to go."""
        return self.ref.api.kind, self.ref.name

    @property
    def mark(self) -> str:
        """What names this very deletion; a refusal is remembered by it."""
        return self.ref.uid

    @property
    def gist(self) -> str:
        """What the deletion is to bring about, whatever version it meets."""
        return self.ref.uid
