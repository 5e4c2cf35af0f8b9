"""Installations: which installation of hedgerow an object belongs to."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from hedgerow.fields.managed import entries, managers
from hedgerow.fields.sets import subtree
from hedgerow.objects import CONTROLLER_LABEL, Installation, metadata

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow.fields.managed import Holder
    from hedgerow_schemas.base import Object

_INSTANCE: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_MANAGER: Final = re.compile(rf"hedgerow(?:-({_INSTANCE}))?-([a-z0-9]+)")
_LABEL: Final = re.compile(rf"(?:({_INSTANCE})\.)?([a-z0-9]+)")
STATUS: Final = "status"
KEPT_ELSEWHERE: Final = "ManagedElsewhere"
"""The reason of a condition: a child belongs to another installation."""
OTHER_MANAGERS: Final = frozenset({"certificates", "cli", "install", "lease", "presence"})
"""The last words of the names of hedgerow's other field managers."""
_LABELLED: Final = ("f:metadata", "f:labels", f"f:{CONTROLLER_LABEL}")


def instance_of(manager: str) -> str | None:
    """Return the instance whose controller uses this field manager; None for other managers.

    The result is empty for the installation without an instance name.
    """
    found = _MANAGER.fullmatch(manager)
    if found is None or found[2] in OTHER_MANAGERS:
        return None
    return found[1] or ""


def named(instance: str) -> str:
    """Return the words for an installation in a sentence."""
    return f"instance {instance!r}" if instance else "the instance without a name"


def giving_up(instance: str) -> str:
    """Return the command that gives up all that an installation holds."""
    return f"hedgerow release --instance {shlex.quote(instance)} --all"


def kept_by(what: str, other: Installation) -> str:
    """Return the message for an object that another installation manages."""
    return (
        f"{what} is managed by another hedgerow, {named(other.instance)}; it is left alone."
        f" Once that one has stopped for good, `{giving_up(other.instance)}` releases it"
    )


def remedy(manager: str, operation: str | None) -> str:
    """Return the command that settles a conflict with this holder; empty if it is not a hedgerow.

    An `Update` entry under such a name gets no command: no apply can give up its fields.
    """
    instance = instance_of(manager) if operation == "Apply" else None
    return "" if instance is None else giving_up(instance)


def doubly_reported(live: Object) -> str:
    """Return a warning if several installations write a resource's status; else empty."""
    managed = (one for one in managers(live) if one.subresource == STATUS)
    found = [instance_of(one.manager) for one in managed if one.operation == "Apply"]
    instances = sorted({instance for instance in found if instance is not None})
    if len(instances) <= 1:
        return ""
    commands = " or ".join(f"`{giving_up(instance)}`" for instance in instances)
    return (
        f"several hedgerows report on it, {' and '.join(map(named, instances))}: stop the one that"
        f" should not manage it, then run {commands}"
    )


def reporters(live: Object, controller: str) -> tuple[Installation, ...]:
    """Return the installations whose controller holds a part of a resource's status, sorted."""
    found = {
        instance
        for one in managers(live)
        if (one.operation, one.subresource) == ("Apply", STATUS)
        if one.manager.endswith(f"-{controller}")
        if (instance := instance_of(one.manager)) is not None
    }
    return tuple(map(Installation, sorted(found)))


def keeper(child: Object, controller: str, ours: Installation) -> Installation | None:
    """Return the other installation that manages a child of our resource, or None.

    The child's label must name that installation, and its field manager must hold a part of the
    child. A label that somebody else set, or that an installation left behind when it gave up
    everything, does not count. If the child has no managed fields, the label alone decides.
    """
    labels: dict[str, str] = metadata(child).get("labels") or {}
    found = _LABEL.fullmatch(labels.get(CONTROLLER_LABEL, ""))
    if found is None or found[2] != controller:
        return None
    other = Installation(found[1] or "")
    if other == ours:
        return None
    manager = other.field_manager(controller)
    known = managers(child)
    holds = any(one.is_applier(manager, "") for one in known)
    if known and not holds:
        return None
    # If both installations hold a part of the child, the label must be set by the other one.
    setters = {holder.manager for holder in _setters(child)}
    return other if not setters or manager in setters else None


def _setters(child: Object) -> Iterator[Holder]:
    """Yield the managers that hold the child's controller label."""
    for holder, _, tree in entries(child):
        if subtree(tree, _LABELLED) is not None:
            yield holder


def installation_of(live: Object, controller: str) -> Installation:
    """Return the installation that manages an object: by its label, else by who applied it.

    Without either it is the installation without an instance name.
    """
    labels: dict[str, str] = metadata(live).get("labels") or {}
    instance, _, name = labels.get(CONTROLLER_LABEL, "").rpartition(".")
    if name == controller:
        return Installation(instance)
    appliers = {one.manager for one in managers(live) if one.operation == "Apply"}
    start, end = "hedgerow-", f"-{controller}"
    named = sorted(
        name for name in appliers if name.startswith(start) and name.endswith(end) and name != end
    )
    if f"hedgerow{end}" in appliers or len(named) != 1:
        return Installation()
    return Installation(named[0][len(start) : -len(end)])
