"""State: what a cluster has of what an installation needs, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hedgerow.cli.install.definitions import plain, render_for
from hedgerow.fields.ownership import covers
from hedgerow.fields.paths import is_list, is_map
from hedgerow.kube.errors import Forbidden, KubeError, Missing
from hedgerow.objects import PROGRAM
from hedgerow.process.lacking_rights import lacking_rights
from hedgerow.process.leaderelection.divisions import at_work
from hedgerow.process.leaderelection.record import LEASES, seen
from hedgerow.runtime.clock import SystemClock
from hedgerow.shard import is_lease_of, shard_of
from hedgerow.version import untested
from hedgerow_schemas.crd import CRD, crd_name
from hedgerow_tools.render.times import age

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator
    from datetime import datetime

    from hedgerow.kube.cluster import Cluster
    from hedgerow.registry import Registry
    from hedgerow.settings import Settings
    from hedgerow_schemas.base import CustomResource, Object


@dataclass(frozen=True, slots=True)
class StateLine:
    """One thing that was looked for, and what was found."""

    what: str
    finding: str
    is_well: bool = True

    def __str__(self) -> str:
        """Return it as a line."""
        return f"{'✓' if self.is_well else '✗'} {self.what}: {self.finding}"


async def state(
    cluster: Cluster, settings: Settings, registry: Registry, command: str = PROGRAM
) -> AsyncIterator[StateLine]:
    """Yield what is found of an installation; `command` is how remedies are typed.

    Raises KubeError only if the API server does not say its version.
    """
    server = await cluster.get("/version")
    release, warning = str(server.get("gitVersion", "?")), untested(server)
    yield StateLine("server", f"{release}: {warning}" if warning else release, not warning)
    chosen = registry.limited(settings.controllers)
    for resource in chosen.resources:
        yield await _definition(cluster, resource, settings.program, command)
    async for line in _operators(cluster, settings):
        yield line
    async for line in _rights(cluster, settings, chosen):
        yield line


async def _definition(
    cluster: Cluster, resource: type[CustomResource], program: str, command: str
) -> StateLine:
    """Return whether a definition is installed and that of this version."""
    what, remedy = f"definition {crd_name(resource)}", f"run `{command} install`"
    try:
        live = await cluster.read_object(CRD, crd_name(resource))
    except Forbidden:
        return await _served(cluster, resource, what, remedy)
    except KubeError as error:
        return StateLine(what, f"cannot be read: {error}", is_well=False)
    if live is None:
        return StateLine(what, f"not installed; {remedy}", is_well=False)
    try:
        for wanted in (plain(resource, program), *await render_for(cluster, [resource], program)):
            # The API server adds defaults.
            if covers(undescribed(wanted["spec"]), live.get("spec")):
                return StateLine(what, "installed, of this version")
    except KubeError as error:
        return StateLine(what, f"cannot be compared: {error}", is_well=False)
    return StateLine(what, f"installed, but not of this version; {remedy}", is_well=False)


async def _served(
    cluster: Cluster, resource: type[CustomResource], what: str, remedy: str
) -> StateLine:
    """Return whether a kind is served, for somebody who may not read definitions."""
    api = resource.api
    try:
        await cluster.resource(api.group_version, api.kind)
    except Missing:
        return StateLine(what, f"not served; {remedy}", is_well=False)
    except KubeError as error:
        return StateLine(what, f"cannot be read: {error}", is_well=False)
    return StateLine(what, "served; you may not read whether it is of this version")


def undescribed(value: Any) -> Any:
    """Return a definition, or a part of it, without descriptions: `install` adds some."""
    if is_map(value):
        kept = ((k, v) for k, v in value.items() if not (k == "description" and isinstance(v, str)))
        return {key: undescribed(below) for key, below in kept}
    return [undescribed(item) for item in value] if is_list(value) else value


async def _operators(cluster: Cluster, settings: Settings) -> AsyncIterator[StateLine]:
    """Yield who holds each Lease of the installation."""
    place, base = settings.system_namespace, settings.installation.base
    try:
        leases: Iterable[Object] = (await cluster.list(LEASES, place)).items
    except Forbidden:
        try:
            lease = await cluster.read_object(LEASES, base, place)
        except KubeError as error:
            yield StateLine("operator", f"its Lease cannot be read: {error}", is_well=False)
            return
        leases = () if lease is None else (lease,)
    except KubeError as error:
        yield StateLine("operator", f"its Lease cannot be read: {error}", is_well=False)
        return
    lines = list(_held(leases, base, place, cluster.server_time()))
    for line in lines or [StateLine("operator", f"no elected one: no Lease {place}/{base}")]:
        yield line


def _held(
    leases: Iterable[Object], base: str, place: str, server_time: datetime | None
) -> Iterator[StateLine]:
    now = SystemClock().now()
    for lease in leases:
        name, record = lease["metadata"]["name"], seen(lease)
        if record is None or not is_lease_of(base, name):
            continue
        shard = shard_of(base, name)
        what = f"operator of shard {shard}" if shard else "operator"
        holder, ago = record.holder, age(record.renewed, now)
        if record.vacant or not holder:
            yield StateLine(what, f"nobody; Lease {place}/{name} was released")
        elif at_work({name: record}, now, server_time):
            yield StateLine(what, f"{holder} (Lease {place}/{name}, renewed {ago} ago)")
        else:
            yield StateLine(what, f"nobody; {holder} renewed Lease {place}/{name} {ago} ago")


async def _rights(
    cluster: Cluster, settings: Settings, chosen: Registry
) -> AsyncIterator[StateLine]:
    """Yield the rights that the controllers need and that we lack."""
    controllers = chosen.controllers
    try:
        lacking = await lacking_rights(cluster, controllers, settings.namespaces)
    except KubeError as error:
        yield StateLine("rights", f"cannot be asked for: {error}", is_well=False)
        return
    for right in lacking:
        yield StateLine("rights", f"you lack {right}", is_well=False)
    if not lacking:
        names = ", ".join(chosen.names)
        yield StateLine("rights", f"you have all that {names} need")
