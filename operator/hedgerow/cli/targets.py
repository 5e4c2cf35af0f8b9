"""Targets: the object of a command, and the hedgerow resource that manages it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.cli.candidates import objects
from hedgerow.cli.exits import Exit
from hedgerow.cli.program import installation, program_name, registry, say
from hedgerow.fields import managed
from hedgerow.kube.discovery import find, spelled
from hedgerow.objects import Salvaged, controller_of, metadata
from hedgerow.plan.installations import installation_of
from hedgerow.plan.oversized import WHY_UNREADABLE
from hedgerow.plan.transfers import Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import ApiResource, Object

Given = Annotated[
    list[str],
    typer.Argument(
        metavar="KIND/NAME",
        autocompletion=objects,
        help="The object, its kind as kubectl takes it: deploy/web, bluegreen/demo; or as two"
        " words: deploy web.",
        show_default=False,
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAMESPACE",
        help="Its namespace.",
        show_default="the context's",
    ),
]
Instance = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The installation of hedgerow, where there are several.",
        show_default="as the object's label says",
    ),
]


@dataclass(frozen=True, slots=True)
class Place:
    """An object's kind, namespace and name."""

    api: ApiResource
    namespace: str
    name: str

    def __str__(self) -> str:
        """Return it as kubectl accepts it."""
        return f"{self.api.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class ManagingResource:
    """The hedgerow resource that manages an object, and its field manager.

    `itself`: the object is that resource, whose status hedgerow writes.
    """

    api: ApiResource
    object: Object
    manager: str
    itself: bool


def joined(words: Sequence[str]) -> str:
    """Return KIND/NAME, which may be typed as two words, as in kubectl; raises BadParameter."""
    if len(words) > 1 + all("/" not in word for word in words):
        raise typer.BadParameter(f"{' '.join(words)!r} is neither KIND/NAME nor KIND NAME")
    return "/".join(words)


def parted(target: str) -> tuple[str, str]:
    """Return KIND/NAME as two parts; raises BadParameter."""
    kind, slash, name = target.partition("/")
    if not (kind and slash and name) or "/" in name or name in {".", ".."}:
        raise typer.BadParameter(f"{target!r} is no KIND/NAME, such as deployment/web")
    return kind, name


async def found_kind(cluster: Cluster, word: str) -> ApiResource:
    """Return the kind that a word means; print what else it could mean, and what gave no answer."""
    found = await find(cluster, word)
    if found.others:
        named = ", ".join(map(spelled, found.others))
        say(f"{word} is taken for {spelled(found.api)}; it could also mean {named}")
    if found.failed:
        say(f"no answer about the kinds of {', '.join(found.failed)}")
    return found.api


async def located(cluster: Cluster, target: tuple[str, str], namespace: str | None) -> Place:
    """Return the object's place; print what `found_kind` prints."""
    kind, name = target
    api = await found_kind(cluster, kind)
    place = namespace or cluster.namespace
    return Place(api, place if api.namespaced else "", name)


async def read(cluster: Cluster, place: Place) -> Object:
    """Return the object; exit with a message if there is none."""
    live = await cluster.read(place.api, place.name, place.namespace)
    if live is None:
        where = f" in namespace {place.namespace}; name another with -n" if place.namespace else ""
        say(f"{place} does not exist{where}")
        raise typer.Exit(Exit.FAILED)
    return live


async def read_exactly(cluster: Cluster, place: Place) -> Object:
    """Return the object, for a write that is based on it; exit with a message if there is none.

    Raises Refusal if parts of it are not as the server has them.
    """
    live = await read(cluster, place)
    if isinstance(live, Salvaged):
        raise Refusal(f"{place} {WHY_UNREADABLE}")
    return live


async def managing_resource(
    cluster: Cluster, live: Object, instance: str | None
) -> ManagingResource | None:
    """Find the resource that answers for an object: its controller, or the object itself.

    An object of a built-in kind is a resource only if its controller holds a field of it.
    """
    owner = controller_of(live)
    for controller in registry().controllers:
        api = controller.resource.api
        ours = (
            installation_of(live, controller.name, program_name())
            if instance is None
            else installation(instance)
        )
        manager = ours.field_manager(controller.name)
        if (live["apiVersion"], live["kind"]) == (api.group_version, api.kind) and (
            controller.is_custom or managed.entry(live, manager)
        ):
            return ManagingResource(api, live, manager, itself=True)
        if (owner.get("apiVersion"), owner.get("kind")) == (api.group_version, api.kind):
            namespace: str = metadata(live).get("namespace", "") if api.namespaced else ""
            found = await cluster.read(api, owner["name"], namespace)
            if found is not None and metadata(found)["uid"] == owner["uid"]:
                return ManagingResource(api, found, manager, itself=False)
    return None
