"""Input: all that a plan is made from: the live children, the policy, the ledger."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct, field

from hedgerow.fields.redaction import both, is_secret
from hedgerow.objects import ChildId, ObjectRef, digest
from hedgerow.plan.conflict_messages import MOST_LISTED, OTHER_VALUE, REMOVED, SCALED_TO_ZERO
from hedgerow.plan.yield_and_claim import NO_FIELD_POLICY, FieldPolicy
from hedgerow.texts import escaped
from hedgerow_schemas.base import ContestedField, Object, Status, instant

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from hedgerow.fields.managed_fields import Holder
    from hedgerow.fields.ownership import Leaf
    from hedgerow.objects import Installation
    from hedgerow.plan.ledger import LedgerEntry
    from hedgerow_schemas.base import ApiResource


class PlanInput(Struct, frozen=True, dict=True):
    """The input of a plan: the resource, the live objects, and the entries of the ledger.

    `live`: the resource's children by kind and name, and the objects that it may contribute to; a
    built-in resource is one of these itself. `namesake` returns the known object with the name of a
    child, whoever owns it. `field_policy`: what its annotations yield and claim. `spec_changed`:
    its status is about an older spec; always False of a built-in resource, since others
    change its spec too. `writes_resource`: the resource itself is written, as one of `live`.
    `content_versions`: a number for each live child that changes with the object, but not with its
    status alone; without one, the child is judged each time. `before` is the resource's own
    report so far: its status or its annotation.
    """

    resource: ObjectRef
    controller: str
    installation: Installation
    now: datetime
    live: Mapping[ChildId, Object]
    namesake: Callable[[ChildId], Object | None] = lambda _child: None
    entries: Mapping[ChildId, LedgerEntry] = field(default_factory=dict[ChildId, "LedgerEntry"])
    field_policy: FieldPolicy = NO_FIELD_POLICY
    spec_changed: bool = False
    writes_resource: bool = False
    before: Status = Status()
    content_versions: Mapping[ChildId, int] = field(default_factory=dict[ChildId, int])

    @cached_property
    def _known(self) -> Mapping[tuple[str, str], ContestedField]:
        """The fields that are already reported, by object and path: plans ask for each leaf.

        After a change of the spec, fields that were given up before are tried again.
        """
        return {
            (old.object, old.path): old
            for old in self.before.contested
            if not (self.spec_changed and has_no_holder(old))
        }

    @cached_property
    def may_be_given_up(self) -> bool:
        """Whether a removed field may be one that the status has no room for: they come first."""
        last = self.before.contested[MOST_LISTED - 1 :]
        return self.before.has_unlisted and not self.spec_changed and all(map(has_no_holder, last))

    @cached_property
    def policy(self) -> str:
        """A digest of the field policy, for the ledger: the compiled policy takes much memory."""
        words = (self.field_policy.yields, self.field_policy.claims)
        texts = [[entry.text for entry in entries] for entries in words]
        return digest(*texts) if any(texts) else ""

    def content(self, target: ChildId) -> str:
        """Return a key for the live content and the field policy, on which a verdict depends.

        It is empty if the target is missing, or is to be judged each time.
        """
        return self.content_of(self.content_versions.get(target, 0))

    def content_of(self, number: int) -> str:
        """Return the key for the content with this number; see `content_versions`."""
        return f"{number} {self.policy}" if number else ""

    @cached_property
    def admitted(self) -> Mapping[ChildId, str]:
        """The digests of children as admission changed them, from the status; see `LedgerEntry`."""
        said = ((child.object.partition("/"), child.digest) for child in self.before.admitted or ())
        digests = {ChildId(kind, name): made for (kind, _, name), made in said}
        return {child: made for child, made in digests.items() if not is_secret(child.kind)}

    @property
    def field_manager(self) -> str:
        """The one field manager of this controller in this installation."""
        return self.installation.field_manager(self.controller)

    def ref(self, api: ApiResource, name: str) -> ObjectRef:
        """Return the reference of a child, or of an object that is contributed to."""
        return ObjectRef(api, self.resource.home if api.namespaced else "", name)

    def report(self, target: ObjectRef, leaf: Leaf, reason: str = "") -> ContestedField:
        """Return the status entry of a contested leaf.

        `since` is kept from an earlier report of the same holder; the values are current.
        """
        holder = leaf.holders[0] if leaf.holders else None
        old = self._known.get((str(target), leaf.path))
        if old is not None and old.manager == (escaped(holder.manager) if holder else None):
            since = old.since
        else:
            since = (instant(holder.time) if holder else None) or self.now
        return contested_field(target, leaf, holder, reason or _reason(leaf), since)

    def is_given_up(self, target: ObjectRef, path: str) -> bool:
        """Return whether a field is already reported as held by nobody."""
        old = self._known.get((str(target), path))
        return old is not None and has_no_holder(old)


def contested_field(
    target: ObjectRef,
    leaf: Leaf,
    holder: Holder | None,
    reason: str = OTHER_VALUE,
    since: datetime | None = None,
) -> ContestedField:
    """Return a contested leaf of an object as statuses list it, with one of its holders."""
    declared, live = both(target.api.kind, leaf.field_path, leaf.want, leaf.live)
    return ContestedField(
        object=str(target),
        path=leaf.path,
        reason=reason,
        declared=declared,
        live=live,
        manager=escaped(holder.manager) if holder else None,
        operation=holder.operation if holder else None,
        subresource=(holder.subresource or None) if holder else None,
        since=since,
    )


def has_no_holder(field: ContestedField) -> bool:
    """Return whether nobody holds the field."""
    return not field.manager


def is_scaled_to_zero(leaf: Leaf) -> bool:
    """Return whether somebody scaled to 0: the server records no manager for 0 replicas."""
    return leaf.path == ".spec.replicas" and leaf.live == 0


def _reason(leaf: Leaf) -> str:
    if leaf.holders:
        return OTHER_VALUE
    return SCALED_TO_ZERO if is_scaled_to_zero(leaf) else REMOVED
