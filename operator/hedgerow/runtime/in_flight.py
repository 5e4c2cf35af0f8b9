"""In flight: the writes of running passes, and the changes that need no pass of their own."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

    from hedgerow.contract import Key
    from hedgerow.objects import ObjectRef


class InFlight:
    """The writes that one controller's passes are waiting for, and the changes held back by them.

    A pass looks again after the response to a write, and nearly always a change that arrives
    meanwhile is our own write. So the change starts no other pass.
    """

    def __init__(self) -> None:
        self._writes: set[tuple[str, Key, Key]] = set()
        self._held_back: set[Key] = set()

    @contextmanager
    def writing(self, ref: ObjectRef, key: Key) -> Generator[None]:
        """Hold changes of an object back, while the pass over the resource `key` writes to it."""
        write = ref.api.kind, ref.key, key
        self._writes.add(write)
        try:
            yield
        finally:
            self._writes.discard(write)

    def holds_back(self, kind: str, target: Key, key: Key) -> bool:
        """Return whether a change of an object needs no pass of the resource `key`; remember it."""
        if (kind, target, key) not in self._writes:
            return False
        self._held_back.add(key)
        return True

    def take(self, key: Key) -> bool:
        """Return whether a change was held back that no look has taken in; forget it."""
        was_held_back = key in self._held_back
        self._held_back.discard(key)
        return was_held_back

    def put_back(self, key: Key) -> None:
        """Remember that a change was held back, as the look that took it has found nothing."""
        self._held_back.add(key)
