"""Selection: the objects of a command, chosen in the same ways by every command."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli.candidates import objects
from hedgerow.cli.connecting import elsewhere, of_namespace
from hedgerow.cli.options import (
    AllNamespaces,
    Files,
    OptionSet,
    Selector,
    extended,
    kustomize_option,
)
from hedgerow.cli.targets import joined, located, parted
from hedgerow.deploy.manifest import objects_in
from hedgerow.kube.errors import Conflict, Forbidden, Garbled, Invalid, Missing, Unavailable
from hedgerow.objects import ObjectRef, controller_of, metadata
from hedgerow_schemas.base import ApiResource
from hedgerow_tools.objects.files import sources
from hedgerow_tools.objects.kustomize import kustomized
from hedgerow_tools.objects.listing import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from hedgerow.cli.discovery import ServedKinds
    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import Object

OF_ONE = (Conflict, Forbidden, Garbled, Invalid, Missing, Unavailable)
"""What may be wrong with one object while all others are served."""

Targets = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KIND/NAME",
        autocompletion=objects,
        help="The objects, their kind as kubectl takes it: deploy/web, bluegreen/demo; one may be"
        " two words: deploy web.",
        show_default=False,
    ),
]
Kustomize = Annotated[str | None, kustomize_option("the objects of its manifests")]
Everything = Annotated[bool, typer.Option("--all", help="All objects of the namespace.")]


@dataclass(frozen=True, slots=True)
class ChosenObjects:
    """The chosen objects: by exactly one of names, files, a directory, labels, or all.

    `manifests` are what the files or the directory have, once they are read.
    """

    names: Sequence[str] = ()
    files: Sequence[str] = ()
    kustomize: str | None = None
    labels: str | None = None
    everything: bool = False
    all_namespaces: bool = False
    manifests: Sequence[Object] = ()

    @property
    def given(self) -> int:
        """The number of ways in which objects are chosen."""
        ways = (self.names, self.files, self.kustomize is not None, self.labels is not None)
        return sum(map(bool, (*ways, self.everything)))

    @property
    def is_listed(self) -> bool:
        """Whether it is all of them, or those with labels, which the server lists."""
        return self.everything or self.labels is not None

    def check(self) -> None:
        """Raise BadParameter unless the objects are chosen in one way."""
        if self.given != 1:
            raise typer.BadParameter("name the objects in one way: KIND/NAME, -f, -k, -l or --all")
        if self.all_namespaces and not self.is_listed:
            raise typer.BadParameter("--all-namespaces goes with -l or --all")

    async def loaded(self) -> ChosenObjects:
        """Return it with the manifests read. Raises BadParameter, CommandError and ManifestError.

        This comes before anything is asked of a cluster.
        """
        self.check()
        texts = sources(self.files) if self.files else ()
        if self.kustomize is not None:
            texts = [(self.kustomize, await kustomized(self.kustomize))]
        return replace(self, manifests=[obj for text in texts for obj in objects_in(*text)])


def selecting(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options that choose objects; it gets them as `chosen`.

    They are the same for every command. Raises BadParameter for words that name no object.
    """

    def run(**given: Any) -> None:
        words, files = given.pop("target") or (), given.pop("filename") or ()
        picked = {name: given.pop(name) for name in _REST}
        command(chosen=ChosenObjects(_named(words), tuple(files), **picked), **given)

    return of_namespace(extended(command, run, _OPTIONS, without=("chosen",)))


def _named(words: Sequence[str]) -> tuple[str, ...]:
    """Return KIND/NAME words; a single object may be KIND NAME. Raises BadParameter."""
    return tuple(words) if all("/" in word for word in words) else (joined(words),)


_OPTIONS: OptionSet = {
    "target": (Targets, None),
    "filename": (Files, None),
    "kustomize": (Kustomize, None),
    "labels": (Selector, None),
    "everything": (Everything, False),
    "all_namespaces": (AllNamespaces, False),
}
_REST = ("kustomize", "labels", "everything", "all_namespaces")


@dataclass(frozen=True, slots=True)
class UnknownObject:
    """An object that a manifest declares and that cannot be looked for: `why`."""

    ref: ObjectRef
    why: str


@dataclass(frozen=True, slots=True)
class FoundObjects:
    """The objects of a command; `unread` kinds could not be read, each with why.

    `controlled` of those with these labels, or of all, are left out: a controller made them.
    """

    objects: Sequence[ObjectRef | UnknownObject]
    unread: Mapping[str, str] = field(default_factory=dict[str, str])
    controlled: int = 0


async def find_objects(
    cluster: Cluster,
    chosen: ChosenObjects,
    served: ServedKinds,
    is_meant: Callable[[Object], bool] = bool,
    *,
    controlled: bool = False,
) -> FoundObjects:
    """Return the chosen objects, `loaded` before; of labels or of all, those that `is_meant`.

    Unless `controlled`, these are none that a controller made. Raises BadParameter and KubeError.
    """
    if chosen.names:
        refs = [await located(cluster, parted(word)) for word in chosen.names]
        return FoundObjects(refs)
    if chosen.is_listed:
        return await _listed(cluster, chosen, served, is_meant, controlled=controlled)
    return await _declared(cluster, chosen.manifests)


async def _declared(cluster: Cluster, manifests: Iterable[Object]) -> FoundObjects:
    """Return the objects of manifests, each once, in their order."""
    unknown: list[UnknownObject] = []
    kinds: dict[tuple[str, str], ApiResource | str] = {}
    refs: dict[ObjectRef, None] = {}
    for manifest in manifests:
        version, kind = key = str(manifest.get("apiVersion")), str(manifest.get("kind"))
        meta = metadata(manifest)
        name, within = (meta.get(field) for field in ("name", "namespace"))
        if key not in kinds:
            kinds[key] = await _kind(cluster, *key)
        target = _named_by(kinds[key], name, within, cluster.namespace)
        if isinstance(target, str):
            ref = ObjectRef(ApiResource(version, kind, ""), "", str(name or ""))
            unknown.append(UnknownObject(ref, target))
        else:
            refs[target] = None
    return FoundObjects([*unknown, *refs])


def _named_by(api: ApiResource | str, name: Any, within: Any, namespace: str) -> ObjectRef | str:
    """Return the object that a manifest names, or why it cannot be looked for."""
    if isinstance(api, str):
        return api
    if not isinstance(name, str) or not name:
        return "its metadata.name is no string" if name else "it has no metadata.name"
    if not api.namespaced:
        return ObjectRef(api, "", name)
    return elsewhere(within) or ObjectRef(api, str(within or namespace), name)


async def _kind(cluster: Cluster, group_version: str, kind: str) -> ApiResource | str:
    """Return a kind, or why there is none."""
    try:
        return await cluster.resource(group_version, kind)
    except OF_ONE as error:
        return error.message


async def _listed(
    cluster: Cluster,
    chosen: ChosenObjects,
    served: ServedKinds,
    is_meant: Callable[[Object], bool],
    *,
    controlled: bool,
) -> FoundObjects:
    left_out: list[str] = []

    def reduce(item: Object) -> Object | None:
        if not is_meant(item):
            return None
        meta = metadata(item)
        if controller_of(item) and not controlled:
            left_out.append(meta["uid"])
            return None
        return {name: meta.get(name, "") for name in ("namespace", "name")}

    namespace = "" if chosen.all_namespaces else cluster.namespace
    everything = await listed(
        cluster, served, reduce, namespace=namespace, labels=chosen.labels or ""
    )
    refs = [ObjectRef(api, made["namespace"], made["name"]) for api, made in everything.objects]
    return FoundObjects(refs, everything.unread, len(set(left_out)))
