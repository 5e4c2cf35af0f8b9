"""Steps: the writes and deletions that a plan is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hedgerow.core.declaration import unguarded
from hedgerow.core.meta import ObjectRef, digest

if TYPE_CHECKING:
    from hedgerow.core.ownership import Leaf
    from hedgerow_schemas.base import Object

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
