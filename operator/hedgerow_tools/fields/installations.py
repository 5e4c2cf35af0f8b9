"""Installations: which installations of a program manage an object, and report on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hedgerow.fields.managed_fields import all_holders
from hedgerow.objects import PROGRAM, Installation, metadata
from hedgerow.plan.installations import giving_up, instance_of

if TYPE_CHECKING:
    from hedgerow_schemas.base import Object

STATUS: Final = "status"


def named(instance: str) -> str:
    """Return the words for an installation in a sentence."""
    return f"instance {instance!r}" if instance else "the instance without a name"


def doubly_reported(live: Object, program: str = PROGRAM) -> str:
    """Return a warning if several installations write a resource's status; else empty."""
    managed = (holder for holder in all_holders(live) if holder.subresource == STATUS)
    writers = [
        instance_of(holder.manager, program) for holder in managed if holder.operation == "Apply"
    ]
    instances = sorted({instance for instance in writers if instance is not None})
    if len(instances) <= 1:
        return ""
    rivals = [Installation(instance, program) for instance in instances]
    commands = " or ".join(f"`{giving_up(rival)}`" for rival in rivals)
    return (
        f"several {program}s report on it, {' and '.join(map(named, instances))}: stop the one that"
        f" should not manage it, then run {commands}"
    )


def reporters(live: Object, controller: str, program: str = PROGRAM) -> tuple[Installation, ...]:
    """Return the program's installations whose controller holds a part of a status, sorted.

    Fields of another program are contested as anybody's: its name alone does not show whether a
    field manager reports on resources.
    """
    # Asked several times in each pass, so only the entries that matter are read.
    known: list[dict[str, str]] = metadata(live).get("managedFields") or []
    instances = {
        instance
        for entry in known
        if entry.get("subresource") == STATUS and entry.get("operation") == "Apply"
        if entry.get("manager", "").endswith(f"-{controller}")
        if (instance := instance_of(entry["manager"], program)) is not None
    }
    return tuple(Installation(instance, program) for instance in sorted(instances))


def installation_of(live: Object, controller: str, program: str = PROGRAM) -> Installation:
    """Return the program's installation that manages an object: by its label, else by its applier.

    Without either it is the installation without an instance name.
    """
    plain = Installation(program=program)
    labels: dict[str, str] = metadata(live).get("labels") or {}
    instance, _, name = labels.get(plain.label_key, "").rpartition(".")
    if name == controller:
        return Installation(instance, program)
    appliers = {holder.manager for holder in all_holders(live) if holder.operation == "Apply"}
    start, end = f"{program}-", f"-{controller}"
    named = sorted(
        name for name in appliers if name.startswith(start) and name.endswith(end) and name != end
    )
    if plain.field_manager(controller) in appliers or len(named) != 1:
        return plain
    return Installation(named[0][len(start) : -len(end)], program)
