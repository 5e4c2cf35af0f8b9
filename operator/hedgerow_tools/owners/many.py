"""Owners of many objects: `hedgerow owners --by-manager`, asked, and shown as text or JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from rich.text import Text

from hedgerow.cli.discovery import served as discovered
from hedgerow.cli.output import echo, echo_data, echo_lines
from hedgerow.cli.program import typed
from hedgerow.kube.errors import Forbidden, Missing
from hedgerow.texts import numbered, printable
from hedgerow_schemas.base import ApiResource, View
from hedgerow_tools.fields.by_manager import (
    MOST_NAMED,
    CountedObject,
    CountScope,
    Leftover,
    ManagerCount,
    leftovers,
    managers,
    tally,
)
from hedgerow_tools.objects.listing import listed, say_unread
from hedgerow_tools.objects.selection import UnknownObject, find_objects
from hedgerow_tools.render.holders import way
from hedgerow_tools.render.tables import table_lines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping

    from hedgerow.kube.cluster import Cluster
    from hedgerow.objects import ObjectRef
    from hedgerow_schemas.base import Object
    from hedgerow_tools.objects.selection import ChosenObjects

_AUTOSCALER: Final = ApiResource(
    "autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"
)
_HEADERS: Final = ("MANAGER", "OPERATION", "FIELDS", "OBJECTS", "KINDS")
_KINDS: Final = 4
"""The most kinds that a line names."""


class OwnersCount(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Who holds how many fields of some objects, and what is left over; `unread` kinds say why.

    The namespace is empty for all of them.
    """

    namespace: str
    objects: int
    managers: list[ManagerCount]
    leftovers: list[Leftover]
    unread: Mapping[str, str]
    selector: str = ""


async def count(cluster: Cluster, chosen: ChosenObjects) -> OwnersCount:
    """Return who holds how many fields of the chosen objects. Raises KubeError."""
    served = await discovered(cluster)

    def reduce(item: Object) -> Object:
        return {"tally": tally(item, served.versions)}

    namespace = "" if chosen.all_namespaces else cluster.namespace
    labels = chosen.labels or ""
    unread: dict[str, str] = {}
    if chosen.is_listed:
        listing = await listed(cluster, served, reduce, namespace=namespace, labels=labels)
        objects = [CountedObject(api, made["tally"]) for api, made in listing.objects]
        unread |= listing.unread
    else:
        these = await find_objects(cluster, chosen, served)
        objects = [obj async for obj in _tallies(cluster, these.objects, reduce, unread)]
    left: list[Leftover] = []
    for place in sorted({obj.tally.namespace for obj in objects}):
        there = [obj for obj in objects if obj.tally.namespace == place]
        scope = CountScope(place, labels, typed(), named=not chosen.is_listed)
        scaled = any(obj.tally.scaled for obj in there)
        scalers = await _scalers(cluster, place) if scaled else None
        left += leftovers(there, scope, scalers)
    return OwnersCount(namespace, len(objects), managers(objects), left, unread, labels)


async def _tallies(
    cluster: Cluster,
    refs: Iterable[ObjectRef | UnknownObject],
    reduce: Callable[[Object], Object],
    unread: dict[str, str],
) -> AsyncIterator[CountedObject]:
    """Yield the tallies of single objects; those that are not there are `unread`."""
    for ref in refs:
        if isinstance(ref, UnknownObject):
            unread[str(ref.ref)] = ref.why
            continue
        live = await cluster.read_object(ref.api, ref.name, ref.namespace, partial=True)
        if live is None:
            unread[str(ref)] = "it does not exist"
        else:
            yield CountedObject(ref.api, reduce(live)["tally"])


async def _scalers(cluster: Cluster, namespace: str) -> frozenset[tuple[str, str]] | None:
    """Return the kinds and names that autoscalers of a namespace scale; None if not readable."""

    def reduce(item: Object) -> Object:
        target = View(item)
        kind, name = (target.text("spec", "scaleTargetRef", word) for word in ("kind", "name"))
        return {"kind": kind, "name": name}

    try:
        listing = await cluster.list(_AUTOSCALER, namespace, reduce=reduce)
    except (Forbidden, Missing):
        return None
    return frozenset((item["kind"], item["name"]) for item in listing.items)


def show(view: OwnersCount, output: str) -> None:
    """Print a count in the requested format."""
    if output != "tree":
        echo_data(view, output)
        return
    say_unread(view.unread)
    fields = numbered(sum(row.fields for row in view.managers), "field")
    chosen = f" with labels {view.selector}" if view.selector else ""
    kinds = len({kind for row in view.managers for kind in row.kinds})
    count = f"{numbered(view.objects, 'object')} of {numbered(kinds, 'kind')}"
    where = f"in namespace {view.namespace}" if view.namespace else "in all namespaces"
    echo(f"{count} {where}{chosen}: {fields} held")
    if view.managers:
        echo("")
        for line in table_lines(_HEADERS, map(_row, view.managers), cut=(0, 4)):
            echo(line.plain)
    echo_lines("\nLeft over:" if view.leftovers else "\nNothing is left over.")
    for leftover in view.leftovers:
        echo(f"- {_words(leftover)}:")
        echo(f"    {leftover.command}")


def _row(row: ManagerCount) -> list[Text]:
    counts = str(row.fields), str(row.objects), _kinds(row.kinds)
    return list(map(Text, (printable(row.manager), way(row), *counts)))


def _kinds(kinds: Mapping[str, int]) -> str:
    most = sorted(kinds.items(), key=lambda pair: (-pair[1], pair[0]))
    named = ", ".join(f"{count} {kind}" for kind, count in most[:_KINDS])
    return f"{named}, …" if len(most) > _KINDS else named


def _words(leftover: Leftover) -> str:
    count = numbered(len(leftover.objects), "object")
    who = ", ".join(map(printable, leftover.managers or leftover.versions))
    to = printable(leftover.to)
    match leftover.reason:
        case "unserved version":
            return (
                f"{count} with fields recorded in {who}, which the server does not serve, and which"
                " may block every apply"
            )
        case "before the first apply":
            text = (
                f"{count} with fields of everybody who wrote before the first apply ({who}): what"
                f" the manifests of {to} leave out, it removes once it gets"
            )
        case "autoscaler is gone":
            text = f"{count} whose replicas an autoscaler wrote that is gone ({who}); {to} applies"
        case _ if leftover.managers == (leftover.to,):
            text = f"{count} that {who} both applies and updates: it conflicts with itself in"
        case _:
            text = f"{count} with fields of {who}, which is what {to} was before; {to} applies"
    more = len(leftover.objects) > MOST_NAMED and "/" in leftover.command
    return f"{text} them" + (f" (the first {MOST_NAMED})" if more else "")
