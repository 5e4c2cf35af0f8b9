"""Owners of many objects: `hedgerow owners --by-manager`, asked, and shown as text or JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hedgerow.cli.output import echo, echo_data, echo_lines
from hedgerow.cli.program import typed
from hedgerow.kube.discovery import served as discovered
from hedgerow.kube.errors import Forbidden, Missing
from hedgerow.texts import cut, numbered, printable
from hedgerow_schemas.base import ApiResource, View
from hedgerow_tools.fields import by_manager
from hedgerow_tools.fields.by_manager import (
    MOST_NAMED,
    CountedObject,
    CountScope,
    Leftover,
    leftovers,
    managers,
    tally,
)
from hedgerow_tools.moving.report import columns
from hedgerow_tools.objects.listing import listed, say_unread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import Object

_AUTOSCALER: Final = ApiResource(
    "autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"
)
_HEADERS: Final = ("MANAGER", "OPERATION", "FIELDS", "OBJECTS", "KINDS")
_WIDEST: Final = (40, 20, 8, 8, 60)
_KINDS: Final = 4
"""The most kinds that a line names."""


class OwnersCount(NamedTuple):
    """The objects in scope with their holders, what is left over, and why the rest is `unread`."""

    objects: Sequence[CountedObject]
    leftovers: Sequence[Leftover]
    scope: CountScope
    unread: Mapping[str, str]


async def count(cluster: Cluster, namespace: str, labels: str) -> OwnersCount:
    """Return who holds how many fields of a namespace's objects. Raises KubeError."""
    served = await discovered(cluster)

    def reduce(item: Object) -> Object:
        return {"tally": tally(item, served.versions)}

    found = await listed(cluster, served, reduce, namespace=namespace, labels=labels)
    objects = [CountedObject(api, made["tally"]) for api, made in found.objects]
    scope = CountScope(namespace, labels, typed())
    scalers = await _scalers(cluster, namespace) if any(o.tally.scaled for o in objects) else None
    left = leftovers(objects, scope, scalers)
    return OwnersCount(objects, left, scope, found.unread)


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


def show(found: OwnersCount, output: str) -> None:
    """Print a count in the requested format."""
    if output == "tree":
        say_unread(found.unread)
        _print(found.objects, found.leftovers, found.scope)
    else:
        echo_data(by_manager.listed(*found), output)


def _print(objects: Sequence[CountedObject], told: Sequence[Leftover], scope: CountScope) -> None:
    kinds = len({one.api.kind for one in objects})
    rows = [
        (
            printable(row.manager),
            " ".join(filter(None, (row.operation, printable(row.subresource)))),
            str(row.fields),
            str(row.objects),
            _kinds(row.kinds),
        )
        for row in managers(objects)
    ]
    fields = numbered(sum(int(row[2]) for row in rows), "field")
    chosen = f" with labels {scope.labels}" if scope.labels else ""
    count = f"{numbered(len(objects), 'object')} of {numbered(kinds, 'kind')}"
    echo(f"{count} in namespace {scope.namespace}{chosen}: {fields} held")
    if rows:
        shown = [tuple(map(cut, row, _WIDEST)) for row in rows]
        echo_lines("\n" + columns([_HEADERS, *shown], _WIDEST))
    if told:
        echo_lines("\nLeft over:")
    for one in told:
        echo(f"- {_words(one)}:")
        echo(f"    {one.command}")
    if not told:
        echo_lines("\nNothing is left over.")


def _kinds(kinds: Mapping[str, int]) -> str:
    most = sorted(kinds.items(), key=lambda pair: (-pair[1], pair[0]))
    named = ", ".join(f"{count} {kind}" for kind, count in most[:_KINDS])
    return f"{named}, …" if len(most) > _KINDS else named


def _words(one: Leftover) -> str:
    count = numbered(len(one.objects), "object")
    who = ", ".join(map(printable, one.managers))
    to = printable(one.to)
    match one.reason:
        case "unserved version":
            return (
                f"{count} with fields recorded in {who}, which the server does not serve, and which"
                " may block every apply"
            )
        case "before the first apply":
            told = (
                f"{count} with fields of everybody who wrote before the first apply ({who}): what"
                f" the manifests of {to} leave out, it removes once it gets"
            )
        case "autoscaler is gone":
            told = f"{count} whose replicas an autoscaler wrote that is gone ({who}); {to} applies"
        case _ if one.managers == (one.to,):
            told = f"{count} that {who} both applies and updates: it conflicts with itself in"
        case _:
            told = f"{count} with fields of {who}, which is what {to} was before; {to} applies"
    more = len(one.objects) > MOST_NAMED and "/" in one.command
    return f"{told} them" + (f" (the first {MOST_NAMED})" if more else "")
