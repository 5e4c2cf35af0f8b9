"""State: the memory of a resource besides the caches; losing it costs only requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from msgspec import Struct, field

from hedgerow.plan.children import NAME_TAKEN
from hedgerow.plan.ledger import Ledger

if TYPE_CHECKING:
    from hedgerow.objects import ChildId
    from hedgerow_schemas.base import Status, View

MOST_ONCE = 64
SLOW = 0.2
"""Seconds from which a call of compose is logged."""
WHY = "all other resources wait meanwhile: compose must not wait for a network or sleep"

log = structlog.get_logger(__name__)


class ResourceState(Struct):
    """The memory of the resource with this uid.

    - `ledger`: the writes that were tried, and how each ended.
    - `basis`: the resource's generation and field policy at the last pass.
    - `namespace_terminating`: its namespace is being deleted, so nothing can be created there.
    - `created_once`: the uids of children created once, not yet recorded in status. If they are
      deleted before that, only this remembers them.
    - `strays`: the objects that were to be kept and are not our children, as they were read last.
    - `is_slow`: its last call of compose blocked the event loop.
    """

    uid: str
    ledger: Ledger = field(default_factory=Ledger)
    basis: tuple[int, str] = (0, "")
    namespace_terminating: bool = False
    created_once: dict[ChildId, str] = field(default_factory=dict["ChildId", str])
    strays: dict[ChildId, View] = field(default_factory=dict["ChildId", "View"])
    is_slow: bool = False

    @classmethod
    def from_status(cls, uid: str, before: Status) -> ResourceState:
        """Return the memory that a status of an earlier process leaves.

        If it reports taken names or lost labels, there are objects that no watch shows.
        """
        taken = any(condition.reason == NAME_TAKEN for condition in before.conditions)
        unlabelled = any(field.path.startswith(".metadata.labels") for field in before.contested)
        return cls(uid, Ledger(reads_names=taken or unlabelled))

    def begun_anew(self) -> ResourceState:
        """Return an empty memory, but for the children that were created once."""
        return ResourceState(self.uid, Ledger(reads_names=True), created_once=self.created_once)

    def renew(self, generation: int, field_policy: str = "") -> None:
        """Take in the generation and the field policy; if new, retry the writes given up.

        Only a user changes these, so this cannot keep a fight with another program going.
        """
        basis = generation, field_policy
        if basis != self.basis:
            self.ledger.renew(generation=generation != self.basis[0])
        self.basis = basis

    def composed_in(self, seconds: float) -> None:
        """Log that a call of compose blocked the event loop, if the call before it did not."""
        was_slow, self.is_slow = self.is_slow, seconds >= SLOW
        if self.is_slow and not was_slow:
            log.warning("compose blocks the event loop", seconds=round(seconds, 3), why=WHY)

    def note_created_once(self, target: ChildId, uid: str) -> None:
        """Remember a child that was created once, until the status has recorded it."""
        self.created_once[target] = uid
        while len(self.created_once) > MOST_ONCE:
            del self.created_once[next(iter(self.created_once))]
