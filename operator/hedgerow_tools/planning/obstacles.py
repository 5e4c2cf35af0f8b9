"""Obstacles: what is in the way of a refused apply, who holds it, and how to have it removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.cli.program import typed
from hedgerow.fields.paths import SELF, path_of
from hedgerow.fields.unions import obstacles
from hedgerow.texts import command_line, within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow.fields.managed_fields import Holder
    from hedgerow.fields.paths import Tree
    from hedgerow.fields.sets import FieldPath
    from hedgerow.kube.errors import Cause, KubeError
    from hedgerow.objects import ObjectRef
    from hedgerow_schemas.base import Object


def sentences(
    ref: ObjectRef, error: KubeError, manifest: Object, stored: Object, manager: str
) -> Iterator[str]:
    """Yield a sentence for each field that a refused apply of `manager` would have to remove.

    An apply removes only what its manager alone holds: a default and what others hold stay.
    """
    causes = (cause.field for cause in error.causes if _is_of_presence(cause))
    for place, there in obstacles(causes, manifest, stored, manager).items():
        others = [
            (holder, tree) for holder, tree in there.pairs if not holder.is_applier(manager, "")
        ]
        if others or not there.pairs:
            yield _sentence(ref, place, others, manager)


def _is_of_presence(cause: Cause) -> bool:
    """Return whether a field must not be there, rather than have another value."""
    return cause.reason == "FieldValueForbidden" or "may not be specified" in cause.message


def _sentence(
    ref: ObjectRef, place: FieldPath, others: list[tuple[Holder, Tree | None]], manager: str
) -> str:
    path = path_of(place).removeprefix(".")
    names = list(dict.fromkeys(holder.manager for holder, _ in others))
    whole = all(element == SELF for _, tree in others for element in tree or ())
    words = ("--to", manager, "--field", path if whole else f"{path}.**")
    target = (_named(ref), *within(ref.namespace))
    commands = [("adopt", *target, "--from", name, *words) for name in names]
    commands = commands or [("release", *target, "--unowned", *words)]
    shown = " and ".join(f"`{command_line(typed(), *command)}`" for command in commands)
    held = f"{', '.join(names)} hold{'' if names[1:] else 's'} it" if names else "nobody holds it"
    return f"{path} stays in the object, since {held}: {shown} lets the next apply remove it"


def _named(ref: ObjectRef) -> str:
    kind = ".".join(filter(None, (ref.api.kind.lower(), ref.api.group)))
    return f"{kind}/{ref.name}"
