"""Immutable: fields of a live child that differ from what is wanted and can never be changed.

Such a child was made by somebody else for the same resource. The controller declares the live value
or leaves the field out, so that the rest can be applied. `Degraded` says how to get the wanted one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from hedgerow.encoding import to_ascii
from hedgerow.plan.conditions import LONGEST_MESSAGE, condition
from hedgerow.texts import command_line, within

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow_schemas.base import Condition, View


class Fixed(Struct, frozen=True):
    """One immutable field of one live child, and the value that is wanted there.

    `cost` says what is lost when the child is deleted, as the end of a sentence.
    """

    child: View
    path: tuple[str, ...]
    wanted: Any
    cost: str

    def __str__(self) -> str:
        """Return a sentence with the command that makes hedgerow create the child again."""
        api, name, namespace = self.child.api, self.child.name, self.child.namespace
        live, wanted = _spelled(self.child.at(*self.path)), _spelled(self.wanted)
        delete = command_line("kubectl", "delete", api.kind.lower(), name, *within(namespace))
        return (
            f"{api.kind}/{name}: .{'.'.join(self.path)} is {live} and cannot be changed; wanted is"
            f" {wanted}; `{delete}` recreates it, which {self.cost}"
        )


def fixed(child: View | None, path: tuple[str, ...], wanted: Any, cost: str) -> tuple[Fixed, ...]:
    """Return the field if the live child has another value there; an empty value does not count."""
    if child is None or child.at(*path) in (None, "", wanted):
        return ()
    return (Fixed(child, path, wanted, cost),)


def degraded(fixed: Iterable[Fixed]) -> tuple[Condition, ...]:
    """Return the condition `Degraded` for these fields; empty if there are none."""
    message = "; ".join(map(str, fixed))[:LONGEST_MESSAGE]
    return (condition("Degraded", True, "Immutable", message),) if message else ()


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else to_ascii(value, ordered=True)
