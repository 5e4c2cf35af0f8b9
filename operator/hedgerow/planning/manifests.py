"""Manifests: the hedgerow resources that files declare, and what else is in these files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import yaml

from hedgerow.app import CONTROLLERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hedgerow.core.contract import Controller
    from hedgerow_schemas.base import CustomResource, Object

STDIN = "-"
LARGEST = 3 * 1024 * 1024
"""Characters of a file; the API server takes no larger body."""
_ENDINGS = frozenset({".yaml", ".yml", ".json"})
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class PlanError(Exception):
    """What keeps a plan from being made at all, and the remedy, as one line."""


class _Loader(yaml.CSafeLoader):
    """A loader that leaves times as they are written, as kubectl does."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the library's own attribute
        first: [(tag, pattern) for tag, pattern in found if tag != _TIMESTAMP]
        for first, found in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


@dataclass(frozen=True, slots=True)
class Declared:
    """One resource of a file, its namespace filled in."""

    controller: Controller[CustomResource]
    manifest: Object


def texts(sources: Iterable[str], stdin: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Give name and text of each file; a directory stands for the manifests in it.

    Raises PlanError for what cannot be read.
    """
    for source in sources:
        if source == STDIN:
            yield "standard input", "".join(stdin)
            continue
        path = Path(source)
        found = sorted(p for p in path.iterdir() if p.suffix in _ENDINGS) if path.is_dir() else None
        for file in [path] if found is None else found:
            try:
                yield str(file), file.read_text("utf-8")
            except UnicodeDecodeError as error:
                raise PlanError(f"{file}: it is no text in UTF-8; give YAML or JSON") from error


def declared(name: str, text: str, namespace: str) -> Iterator[Declared | str]:
    """Give the hedgerow resources of a text, and for each other object its name.

    `namespace` is for those that name none; empty to have none filled in. Raises PlanError.
    """
    if len(text) > LARGEST:
        raise PlanError(f"{name}: it is larger than {LARGEST // 1024**2} MiB")
    try:
        documents = list(yaml.load_all(text, _Loader))
    except (yaml.YAMLError, RecursionError) as error:
        raise PlanError(f"{name}: it is no YAML: {error}") from error
    for document in documents:
        for obj in _objects(name, document):
            yield _read(name, obj, namespace)


def _objects(name: str, document: Any) -> Iterator[Object]:
    if document is None:
        return
    if not isinstance(document, dict):
        raise PlanError(f"{name}: it holds no Kubernetes object: a document has no fields")
    obj = cast("Object", document)
    items = obj.get("items")
    if obj.get("kind") == "List" and isinstance(items, list):
        for item in cast("list[Any]", items):
            yield from _objects(name, item)
    else:
        yield obj


def _read(name: str, obj: Object, namespace: str) -> Declared | str:
    meta: Any = obj.get("metadata")
    named = cast("Object", meta).get("name") if isinstance(meta, dict) else None
    title = f"{obj.get('kind')}/{named}"
    controller = _controller(str(obj.get("apiVersion")), str(obj.get("kind")))
    if controller is None:
        return title
    if not isinstance(named, str) or not named:
        raise PlanError(f"{name}: a {obj['kind']} has no metadata.name")
    known = cast("Object", meta)
    place = str(known.get("namespace") or namespace)
    return Declared(controller, {**obj, "metadata": {**known, "namespace": place}})


def _controller(group_version: str, kind: str) -> Controller[CustomResource] | None:
    wanted = (group_version, kind)
    found = (
        c
        for c in CONTROLLERS.values()
        if (c.resource.api.group_version, c.resource.api.kind) == wanted
    )
    return next(found, None)


def controllers_of(word: str) -> tuple[Controller[CustomResource], ...]:
    """Give the controllers whose kind a word may mean, as for kubectl; all for an empty one."""
    name, _, rest = word.lower().partition(".")
    return tuple(
        controller
        for controller in CONTROLLERS.values()
        if not word or (name in _names(controller) and rest in _places(controller))
    )


def _names(controller: Controller[CustomResource]) -> set[str]:
    resource = controller.resource
    return {resource.api.plural, resource.api.kind.lower(), *resource.definition.short_names}


def _places(controller: Controller[CustomResource]) -> set[str]:
    api = controller.resource.api
    return {"", api.group, f"{api.version}.{api.group}"}
