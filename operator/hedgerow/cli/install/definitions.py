"""Definitions: CustomResourceDefinitions applied without force, and removed safely.

Fields of other managers are reported and left alone; resources are deleted only on request.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio

from hedgerow.backoff import backoff
from hedgerow.cli.install.losses import Loss, losses, stored_without
from hedgerow.encoding import decode as from_json
from hedgerow.encoding import encode
from hedgerow.errors import OneLineError
from hedgerow.kube.errors import Conflict, Forbidden, Missing, one_line
from hedgerow.kube.retry import RetryClock
from hedgerow.objects import PROGRAM, Installation
from hedgerow.texts import command_line
from hedgerow_schemas.base import CustomResource, Object, View
from hedgerow_schemas.crd import CRD, crd_name, render
from hedgerow_schemas.kubernetes_types import DOCUMENT_PATH, SchemaError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import Object


def field_manager(program: str) -> str:
    """Return the field manager under which a program installs its definitions."""
    return Installation(program=program).common_manager("install")


FIELD_MANAGER = field_manager(PROGRAM)
"""That of hedgerow itself."""
SERVED_TIMEOUT = 60.0
"""Seconds to wait until a definition is served, or gone."""

LONGEST_PAUSE = 2.0
"""The most seconds between two checks while waiting."""

SHOWN = 5
"""The most resources that an error names."""

APPLY_SECONDS: Final = 30.0
"""Seconds for one apply: a definition with descriptions has three quarters of a megabyte."""

LEFT: Final = ("conflicted", "refused")
"""What happened to a definition that stays as it is."""


class InstallError(OneLineError):
    """A problem and its remedy as one line."""


@dataclass(frozen=True, slots=True)
class HeldInDefinition:
    """A field of a definition that another field manager holds with another value."""

    path: str
    manager: str


@dataclass(frozen=True, slots=True)
class DefinitionChange:
    """What happened to one definition, or would happen.

    With `conflicts`, and where it is refused for its `losses`, nothing happened.
    """

    name: str
    action: Literal[
        "created", "configured", "unchanged", "conflicted", "refused", "deleted", "absent"
    ]
    definition: Object
    conflicts: tuple[HeldInDefinition, ...] = ()
    losses: tuple[Loss, ...] = ()

    def __str__(self) -> str:
        """Return it in kubectl's form: `customresourcedefinition/… created`."""
        return f"customresourcedefinition/{self.name} {self.action}"


@cache
def packaged_document() -> Object:
    """Return the packaged excerpt of the newest pinned Kubernetes's OpenAPI."""
    return from_json((files("hedgerow_schemas") / "openapi.json").read_bytes())


def plain(resource: type[CustomResource], program: str = PROGRAM) -> Object:
    """Return a resource's definition without descriptions of Kubernetes's own types."""
    return render(resource, packaged_document(), describe=False, program=program)


def rendered(
    resources: Iterable[type[CustomResource]], program: str, problem: Callable[[str], object]
) -> dict[type[CustomResource], Object]:
    """Return the `plain` definitions of resources.

    One that cannot be rendered is left out, and `problem` is told so in a line: it may be that of a
    package, and is not to stop the others.
    """
    definitions: dict[type[CustomResource], Object] = {}
    for resource in resources:
        try:
            definitions[resource] = plain(resource, program)
        except Exception as error:  # noqa: BLE001 - a model of somebody else may raise anything
            why = one_line(f"{type(error).__name__}: {error}")
            problem(f"{crd_name(resource)} is left out, its definition cannot be rendered: {why}")
    return definitions


def size(definition: Object) -> int:
    """Return the size of a definition as JSON, in bytes; an annotation would have the same size."""
    return len(encode(definition))


async def install(
    cluster: Cluster,
    resources: Sequence[type[CustomResource]],
    *,
    dry_run: bool = False,
    breaking: bool = False,
    program: str = PROGRAM,
    timing: RetryClock | None = None,
) -> list[DefinitionChange]:
    """Apply the definitions of the resources and wait until the server serves them.

    A definition with a conflict stays as it is, and, unless it may be `breaking`, one by which
    objects that are there would lose fields or become invalid; the others are still applied. With
    `dry_run` the server only validates. Returns what changed. Raises InstallError if a definition
    is being deleted or is not served in time, or if it is unknown what objects would lose, and
    KubeError for other refusals.
    """
    definitions = await render_for(cluster, resources, program)
    manager = field_manager(program)
    changes = [
        await _apply(cluster, crd, manager, dry_run=dry_run, breaking=breaking)
        for crd in definitions
    ]
    if not dry_run:
        waiting = zip(resources, changes, strict=True)
        for resource in (r for r, change in waiting if change.action not in LEFT):
            await _await_served(cluster, resource, timing or RetryClock())
    return changes


async def render_for(
    cluster: Cluster, resources: Sequence[type[CustomResource]], program: str = PROGRAM
) -> list[Object]:
    """Return the definitions that `install` applies; raises KubeError.

    The descriptions of Kubernetes's own types are the cluster's. They are left out if its OpenAPI
    cannot be read or understood.
    """
    try:
        document = await cluster.get(DOCUMENT_PATH)
        return [
            render(resource, document, describe=True, program=program) for resource in resources
        ]
    except (Missing, Forbidden, SchemaError):
        await anyio.to_thread.run_sync(packaged_document)
        return [plain(resource, program) for resource in resources]


async def uninstall(
    cluster: Cluster,
    resources: Sequence[type[CustomResource]],
    *,
    delete_resources: bool = False,
    program: str = PROGRAM,
    timing: RetryClock | None = None,
) -> list[DefinitionChange]:
    """Delete the definitions that `install` applied, and wait until they are gone.

    Nothing is deleted if one of them is not ours, or, without `delete_resources`, if any custom
    resource exists: InstallError then says which. Returns what changed.
    """
    time = timing or RetryClock()
    live = {resource: await cluster.read_object(CRD, crd_name(resource)) for resource in resources}
    there = {resource: crd for resource, crd in live.items() if crd is not None}
    for crd in there.values():
        _refuse_foreign(crd, program)
    if not delete_resources:
        await _refuse_used(cluster, there)
    return [await _delete(cluster, resource, crd, time) for resource, crd in live.items()]


async def _apply(
    cluster: Cluster, crd: Object, manager: str, *, dry_run: bool, breaking: bool
) -> DefinitionChange:
    """Apply a definition, unless objects that are there would lose by it; see `install`."""
    name = crd["metadata"]["name"]
    before = await cluster.read_object(CRD, name)
    if before is not None and View(before).text("metadata", "deletionTimestamp"):
        raise InstallError(f"{name} is being deleted", "wait until it is gone and try again")
    lost = () if before is None else await _losses(cluster, before, crd, breaking=breaking)
    if lost and not breaking:
        return DefinitionChange(name, "refused", crd, losses=lost)
    try:
        applied = await cluster.apply(
            CRD, crd, manager=manager, dry_run=dry_run, timeout=APPLY_SECONDS
        )
    except Conflict as conflict:
        held = tuple(HeldInDefinition(cause.field, cause.manager) for cause in conflict.causes)
        return DefinitionChange(name, "conflicted", crd, held, lost)
    if applied.created:
        return DefinitionChange(name, "created", crd)
    same = before is not None and _essence(before) == _essence(applied.object)
    return DefinitionChange(name, "unchanged" if same else "configured", crd, losses=lost)


async def _losses(
    cluster: Cluster, before: Object, after: Object, *, breaking: bool
) -> tuple[Loss, ...]:
    """Return what stored objects would lose. Raises InstallError if that cannot be found out.

    If it may be `breaking`, that is no error. If the API server would refuse the definition for
    what it stores, it always is.
    """
    name = after["metadata"]["name"]
    if gone := stored_without(before, after):
        raise InstallError(
            f"{name} may have objects that are stored in version {', '.join(gone)}, which the new"
            " definition does not have",
            "the API server refuses that as long as status.storedVersions of the definition names"
            " the version: keep it, or delete the objects and the definition",
        )
    try:
        return await losses(cluster, before, after)
    except (Missing, Forbidden) as error:
        if breaking:
            return ()
        raise InstallError(
            f"{name} would ask more of its objects than now, and it is unknown what they would"
            f" lose: {error}",
            "try again with the right to list them, or give --breaking",
        ) from error


def _essence(crd: Object) -> Object:
    """Return what an apply can change; a dry run does not change the resource version."""
    meta = crd["metadata"]
    kept = {key: meta.get(key) for key in ("labels", "annotations", "generation")}
    entries = [{**entry, "time": ""} for entry in _entries(crd)]
    return {"spec": crd.get("spec"), "metadata": kept, "entries": entries}


def _entries(crd: Object) -> list[Object]:
    """Return a definition's managed fields entries, without those of its status."""
    entries = crd["metadata"].get("managedFields", ())
    return [entry for entry in entries if entry.get("subresource") != "status"]


async def _await_served(
    cluster: Cluster, resource: type[CustomResource], timing: RetryClock
) -> None:
    name = crd_name(resource)

    async def served() -> bool:
        conditions = _conditions(await cluster.read_object(CRD, name))
        refused = conditions.get("NamesAccepted", {})
        if refused.get("status") == "False":
            remedy = "remove the definition that has the name"
            raise InstallError(f"{name} is not accepted: {refused.get('message')}", remedy)
        established = conditions.get("Established", {}).get("status") == "True"
        return established and await _listed(cluster, resource)

    if not await _until(served, timing):
        command = command_line("kubectl", "describe", "customresourcedefinition", name)
        remedy = f"see `{command}`"
        raise InstallError(f"{name} is not served after {SERVED_TIMEOUT:.0f} s", remedy)


async def _listed(cluster: Cluster, resource: type[CustomResource]) -> bool:
    """Return whether discovery lists the resource, which happens a moment after Established."""
    try:
        await cluster.resource(resource.api.group_version, resource.api.kind)
    except Missing:
        return False
    return True


def _conditions(crd: Object | None) -> dict[str, Any]:
    entries = View(crd or {}).items("status", "conditions")
    return {entry["type"]: entry for entry in entries}


def _refuse_foreign(crd: Object, program: str) -> None:
    managers = {entry["manager"] for entry in _entries(crd)}
    if field_manager(program) not in managers:
        name = crd["metadata"]["name"]
        known = ", ".join(sorted(managers)) or "nobody"
        problem = f"{name} was not installed by {program} (its field managers: {known})"
        command = command_line("kubectl", "delete", "customresourcedefinition", name)
        raise InstallError(problem, f"`{command}` removes it")


async def _refuse_used(cluster: Cluster, resources: Iterable[type[CustomResource]]) -> None:
    """Raise InstallError if resources exist; it names some of each kind."""
    problems: list[str] = []
    for resource in resources:
        try:
            count, names = await _instances(cluster, resource)
        except Missing as error:
            # Resources may be stored in a version that is not served, so this does not mean none.
            raise InstallError(
                f"it is unknown whether {resource.api.plural} exist: {error}",
                "try again, or give --delete-resources to lose them if they do",
            ) from error
        if count:
            problems.append(f"{count} {resource.api.plural} exist ({_shown(count, names)})")
    if problems:
        raise InstallError(
            ", ".join(problems),
            "delete them first, or give --delete-resources to lose them with their definitions",
        )


async def _instances(
    cluster: Cluster, resource: type[CustomResource]
) -> tuple[int, tuple[str, ...]]:
    """Return the number of a resource's objects in all namespaces, and the first few names."""
    api = resource.api
    path = f"/apis/{api.group_version}/{api.plural}"
    page = await cluster.get(path, params={"limit": str(SHOWN)})
    names = [View(item) for item in page["items"]]
    more = View(page).number("metadata", "remainingItemCount")
    return len(names) + more, tuple(f"{v.namespace}/{v.name}".lstrip("/") for v in names)


def _shown(count: int, names: Sequence[str]) -> str:
    return ", ".join(names) + (", …" if count > len(names) else "")


async def _delete(
    cluster: Cluster,
    resource: type[CustomResource],
    crd: Object | None,
    timing: RetryClock,
) -> DefinitionChange:
    name = crd_name(resource)
    if crd is None:
        return DefinitionChange(name, "absent", {})
    uid = crd["metadata"]["uid"]
    await cluster.delete(CRD, name, uid=uid)

    async def gone() -> bool:
        live = await cluster.read_object(CRD, name)
        return live is None or live["metadata"]["uid"] != uid

    if not await _until(gone, timing):
        command = command_line("kubectl", "get", name, "-A", "-o", "yaml")
        raise InstallError(
            f"{name} is still there after {SERVED_TIMEOUT:.0f} s",
            f"see which finalizers its resources wait for: `{command}`",
        )
    return DefinitionChange(name, "deleted", crd)


async def _until(condition: Callable[[], Awaitable[bool]], timing: RetryClock) -> bool:
    """Check a condition with growing pauses; return False if it is not met in time."""
    deadline = timing.now() + SERVED_TIMEOUT
    for looks in itertools.count(1):
        if await condition():
            return True
        if timing.now() >= deadline:
            break
        await timing.sleep(min(LONGEST_PAUSE, backoff(looks, timing.draw())))
    return False
