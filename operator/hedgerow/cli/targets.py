"""Targets: the object of a command, as it is typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from hedgerow.cli.discovery import find, spelled
from hedgerow.cli.exits import CommandError
from hedgerow.cli.program import registry, say
from hedgerow.fields.paths import is_list, is_map
from hedgerow.kube.errors import Forbidden, Missing, discovery_of
from hedgerow.objects import ObjectRef
from hedgerow.texts import command_line
from hedgerow_schemas.base import CustomResource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hedgerow.contract import Controller
    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import ApiResource, Object, Resource


_MAPS = ("labels", "annotations")
_LISTS = ("managedFields", "ownerReferences")
_TEXTS = ("manager", "operation", "subresource", "apiVersion", "time")


def is_meant(controller: Controller[Resource], word: str) -> bool:
    """Return whether a word means a controller's kind, as in kubectl: `bg`, `cronjobs.batch`."""
    resource, api = controller.resource, controller.resource.api
    short = resource.definition.short_names if issubclass(resource, CustomResource) else ()
    name, _, rest = word.lower().partition(".")
    return name in {api.plural, api.kind.lower(), *short} and rest in {
        "",
        api.group,
        f"{api.version}.{api.group}",
    }


def not_installed(controller: Controller[Any], command: str) -> str:
    """Return that a controller's kind is not installed, and how to install it.

    `command` is how the program is called.
    """
    chosen = ("--controllers", controller.name) if controller.opt_in else ()
    install = command_line(command, "install", *chosen)
    return f"{controller.resource.api.kind} is not installed here: run `{install}`"


async def unserved_kind(cluster: Cluster, api: ApiResource) -> Missing | None:
    """Return that a kind is not served, which a refusal to read it does not tell; else None.

    Raises KubeError.
    """
    try:
        await cluster.resource(api.group_version, api.kind)
    except Missing as error:
        return error
    except Forbidden:
        pass
    return None


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
    """Return the kind that a word means; print what else it could mean, and what gave no answer.

    Raises Missing, which names the kind if the word means one of ours, and KubeError.
    """
    try:
        meaning = await find(cluster, word)
    except Missing as error:
        ours = (c.resource.api for c in registry().controllers if is_meant(c, word))
        if (api := next(ours, None)) is None:
            raise
        request = discovery_of(api.kind, api.group_version)
        raise Missing(error.message, code=error.code, request=request) from error
    if meaning.others:
        named = ", ".join(map(spelled, meaning.others))
        say(f"{word} is taken for {spelled(meaning.api)}; it could also mean {named}")
    if meaning.failed:
        say(f"no answer about the kinds of {', '.join(meaning.failed)}")
    return meaning.api


async def located(cluster: Cluster, target: tuple[str, str]) -> ObjectRef:
    """Return which object it is; print what `found_kind` prints."""
    kind, name = target
    api = await found_kind(cluster, kind)
    return ObjectRef(api, cluster.namespace if api.namespaced else "", name)


async def read_target(cluster: Cluster, ref: ObjectRef) -> Object:
    """Return the object; raises CommandError if there is none."""
    live = await cluster.read_object(ref.api, ref.name, ref.namespace)
    if live is None:
        where = f" in namespace {ref.namespace}; name another with -n" if ref.namespace else ""
        raise CommandError(f"{ref} does not exist{where}")
    if place := misshapen(live):
        raise CommandError(
            f"the server's answer is no object as Kubernetes has them: {place} of {ref} is of the"
            " wrong type"
        )
    return live


def misshapen(live: Object) -> str:
    """Return the first place of an object's metadata whose type is wrong; empty if there is none.

    An aggregated API server may answer anything.
    """
    meta: Any = live.get("metadata")
    if not is_map(meta):
        return "metadata"
    wrong = [name for name in ("apiVersion", "kind") if not isinstance(live.get(name), str)]
    wrong += [f"metadata.{name}" for name in _MAPS if not is_map(meta.get(name) or {})]
    wrong += [f"metadata.{name}" for name in _LISTS if not _is_list_of_maps(meta.get(name) or [])]
    return wrong[0] if wrong else _misshapen_entry(meta.get("managedFields") or [])


def _misshapen_entry(entries: list[Object]) -> str:
    for entry in entries:
        texts = (name for name in _TEXTS if not isinstance(entry.get(name) or "", str))
        wrong = next(texts, "" if _is_tree(entry.get("fieldsV1") or {}) else "fieldsV1")
        if wrong:
            return f"metadata.managedFields[].{wrong}"
    return ""


def _is_list_of_maps(value: Any) -> bool:
    return is_list(value) and all(map(is_map, value))


def _is_tree(tree: Any) -> bool:
    return is_map(tree) and all(map(_is_tree, tree.values()))
