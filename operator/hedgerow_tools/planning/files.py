"""Files: the hedgerow resources that manifests declare, and the other objects in them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any, cast

from hedgerow.cli.exits import CommandError
from hedgerow.cli.program import registry
from hedgerow.fields.paths import is_map
from hedgerow.manifest import objects_in
from hedgerow_tools import subprocesses

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow.contract import Controller
    from hedgerow_schemas.base import CustomResource, Object

_LOGGED = '"command failed" err="'
"""What comes before an error of `kubectl kustomize`, which is a line of its log."""


class PlanError(CommandError):
    """Why a plan cannot be made at all."""


@dataclass(frozen=True, slots=True)
class Declared:
    """One resource of a file, with its namespace filled in."""

    controller: Controller[CustomResource]
    manifest: Object

    @property
    def title(self) -> str:
        """Its kind, namespace and name, as `BlueGreen shop/demo`."""
        meta = self.manifest["metadata"]
        return f"{self.manifest['kind']} {meta['namespace']}/{meta['name']}"


@dataclass(frozen=True, slots=True)
class OtherObject:
    """An object that is not a hedgerow resource; `namespace` is the one that it creates, if any."""

    title: str
    namespace: str = ""


async def kustomized(directory: str) -> str:
    """Return what `kubectl kustomize` makes of a directory or an address. Raises PlanError."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise PlanError(
            "-k needs kubectl, and there is none on the PATH; install it, or give with `-f -` what"
            " kustomize prints elsewhere"
        )
    ended = await subprocesses.run([kubectl, "kustomize", "--", directory])
    if ended.returncode:
        said = "; ".join(ended.stderr.decode(errors="replace").strip().split("\n"))
        said = said.partition(_LOGGED)[2].removesuffix('"') or said
        raise PlanError(f"`kubectl kustomize {quote(directory)}` failed: {said}")
    return ended.stdout.decode(errors="replace")


def declared(name: str, text: str, namespace: str) -> Iterator[Declared | OtherObject]:
    """Yield the objects of a text, those of hedgerow's kinds as resources.

    `namespace` is filled in where none is given, unless it is empty. Raises PlanError, and
    ManifestError for what is no manifest.
    """
    for obj in objects_in(name, text):
        yield _read(name, obj, namespace)


def titled(obj: Object) -> str:
    """Return an object as it may be told of, whatever it lacks."""
    named = _metadata(obj).get("name")
    kind = obj.get("kind") or "an object without a kind"
    return f"{kind}/{named}" if named else str(kind)


def identity(obj: Object, namespace: str) -> tuple[str, ...] | None:
    """Return what tells an object from others, whatever version it is written in, if it has a name.

    `namespace` is that of objects without one.
    """
    meta = _metadata(obj)
    group = str(obj.get("apiVersion")).rpartition("/")[0]
    parts = group, obj.get("kind"), meta.get("namespace") or namespace, meta.get("name")
    return tuple(map(str, parts)) if meta.get("name") else None


def flaw(obj: Object) -> str:
    """Return why an object cannot be applied whatever the server says; empty if it can."""
    meta = _metadata(obj)
    named = meta.get("name")
    if not all(isinstance(obj.get(field), str) for field in ("apiVersion", "kind")):
        return "it has no apiVersion or no kind"
    if not isinstance(named, str) or not named:
        generated = meta.get("generateName")
        more = f", and an apply takes no generateName ({generated})" if generated else ""
        return f"a {obj.get('kind')} has no metadata.name{more}"
    if named in {".", ".."} or set(named) & set("/%"):
        return f"{titled(obj)}: {named} is no name"
    place = meta.get("namespace")
    if place is not None and (not isinstance(place, str) or place in {".", ".."}):
        return f"{titled(obj)}: metadata.namespace is no string: {place!r:.80}"
    for field in ("labels", "annotations"):
        if not _is_text(meta.get(field)):
            return f"{titled(obj)}: metadata.{field} has what is no string"
    return ""


def _metadata(obj: Object) -> Object:
    meta: Any = obj.get("metadata")
    return meta if is_map(meta) else {}


def _read(name: str, obj: Object, namespace: str) -> Declared | OtherObject:
    meta = _metadata(obj)
    controller = registry().of(str(obj.get("apiVersion")), str(obj.get("kind")))
    if controller is None:
        version = obj.get("apiVersion")
        makes = (version, obj.get("kind")) == ("v1", "Namespace")
        told = f"{titled(obj)} of {version}" if version else titled(obj)
        return OtherObject(told, str(meta.get("name")) if makes else "")
    if told := flaw(obj):
        raise PlanError(f"{name}: {told}")
    place = meta.get("namespace") or namespace
    return Declared(controller, {**obj, "metadata": {**meta, "namespace": place}})


def _is_text(value: Any) -> bool:
    """Return whether a value is a map of strings, or missing."""
    if value is None:
        return True
    return isinstance(value, dict) and all(
        isinstance(text, str) for text in cast("Object", value).values()
    )
