"""Immutable: fields that the API server never changes, where a live child has other values.

Such a child was made by somebody else for the same resource. Its live value stays declared or
undeclared, so that the rest of it can be applied, and `Degraded` says how to get what is wanted.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hedgerow.plan.conditions import LONGEST_MESSAGE, condition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow_schemas.base import Condition, View


@dataclass(frozen=True, slots=True)
class Fixed:
    """One immutable field of one live child, and the value that is wanted there.

    `cost` is what deleting the child takes along, as the end of a sentence.
    """

    child: View
    path: tuple[str, ...]
    wanted: Any
    cost: str

    def __str__(self) -> str:
        """Write it as a sentence, with the command that has the child made anew."""
        api, name, namespace = self.child.api, self.child.name, self.child.namespace
        live, wanted = _spelled(self.child.at(*self.path)), _spelled(self.wanted)
        delete = f"kubectl delete {api.kind.lower()} {name} -n {namespace}"
        return (
            f"{api.kind}/{name}: .{'.'.join(self.path)} is {live} and never changes, wanted is"
            f" {wanted}; `{delete}` has it made anew, which {self.cost}"
        )


def fixed(child: View | None, path: tuple[str, ...], wanted: Any, cost: str) -> tuple[Fixed, ...]:
    """Return the field if the live child has it with another value; an empty one is to come."""
    if child is None or child.at(*path) in (None, "", wanted):
        return ()
    return (Fixed(child, path, wanted, cost),)


def degraded(fixed: Iterable[Fixed]) -> tuple[Condition, ...]:
    """Return `Degraded` for the fields that stay as they are; nothing when there are none."""
    message = "; ".join(map(str, fixed))[:LONGEST_MESSAGE]
    return (condition("Degraded", True, "Immutable", message),) if message else ()


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
