"""Extension: what a pass does besides, for a controller that needs more than children and a status.

A controller that needs none has none, and a pass asks for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hedgerow.contract import Key
    from hedgerow.runtime.resource_pass import Pass


class Extension:
    """The points of a pass at which something else may be done; by default nothing is."""

    def looked(self, this: Pass) -> None:
        """Take in what a pass has observed and planned: before its first write, and at its end."""

    def left(self, key: Key) -> None:
        """Take in that nothing is written for a resource any more: it is gone, or not ours."""

    def ended(self, key: Key) -> None:
        """Take in that a pass has done all that it could."""
