"""Losses: what the objects of a cluster would lose by another definition, or break of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from hedgerow.cli.install.narrowing import SchemaLimit, limits
from hedgerow_schemas.base import ApiResource, Object, View

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hedgerow.kube.cluster import Cluster

NAMED: Final = 5
"""The most objects that are named for one loss."""
TOLD: Final = 50
"""The most losses that are told apart."""
_PER_OBJECT: Final = 100
_NONE: Final[Object] = {}


@dataclass(frozen=True, slots=True)
class Loss:
    """What objects lose, or what makes them invalid; `objects` are the first of `count`."""

    what: str
    objects: tuple[str, ...]
    count: int


def stored_without(before: Object, after: Object) -> list[str]:
    """Return the versions in which objects may be stored, and which the later definition lacks."""
    kept = _names(after)
    return [name for name in View(before).items("status", "storedVersions") if name not in kept]


async def losses(cluster: Cluster, before: Object, after: Object) -> tuple[Loss, ...]:
    """Return what the objects of a definition would lose if another took its place.

    The objects are read only if the two differ in a way by which they could lose something.
    Raises KubeError.
    """
    lost: dict[str, tuple[list[str], int]] = {}
    spec, gone = before["spec"], _names(before) - _names(after)
    for version in _versions(after):
        present = _present(before, version["name"])
        asked = limits(_schema(present), _schema(version))
        if not asked and not gone:
            continue
        api = ApiResource(
            f"{spec['group']}/{present['name']}",
            spec["names"]["kind"],
            spec["names"]["plural"],
            namespaced=spec["scope"] == "Namespaced",
        )
        lapsed = {f"{api.group}/{name}" for name in gone}
        listed = await cluster.list(api, reduce=partial(_judged, asked=asked, lapsed=lapsed))
        _count(lost, listed.items)
    return tuple(Loss(what, tuple(names), count) for what, (names, count) in lost.items())


def _count(lost: dict[str, tuple[list[str], int]], judged: Iterable[Object]) -> None:
    for obj in judged:
        for what in obj.get("whats", ()):
            if what not in lost and len(lost) >= TOLD:
                continue
            names, count = lost.setdefault(what, ([], 0))
            lost[what] = ([*names, obj["name"]][:NAMED], count + 1)


def _judged(obj: Object, *, asked: Sequence[SchemaLimit], lapsed: set[str]) -> Object:
    """Return an object's name and what it loses; nothing of an object that loses nothing."""
    view = View(obj)
    every = (what for limit in asked for what in limit.broken_by(obj))
    whats = dict.fromkeys(islice(every, _PER_OBJECT))
    for entry in view.items("metadata", "managedFields"):
        if View(entry).text("apiVersion") in lapsed:
            whats[f".metadata.managedFields of {entry['apiVersion']}: no apply would pass"] = None
    name = f"{view.namespace}/{view.name}".lstrip("/")
    return {"name": name, "whats": tuple(whats)} if whats else _NONE


def _versions(definition: Object) -> tuple[Any, ...]:
    return View(definition).items("spec", "versions")


def _names(definition: Object) -> set[str]:
    return {version["name"] for version in _versions(definition)}


def _present(definition: Object, name: str) -> Object:
    """Return the version of that name, or else the one in which objects are stored."""
    versions = _versions(definition)
    named = [version for version in versions if version["name"] == name]
    return (named or [version for version in versions if version.get("storage")])[0]


def _schema(version: Object) -> Object:
    schema = View(version).mapping("schema", "openAPIV3Schema")
    return dict(schema) or {"x-kubernetes-preserve-unknown-fields": True}
