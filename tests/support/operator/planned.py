"""Planned: what a plan says and what then happens, told in the same words so as to be compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast, get_args

from hedgerow.contract import Controller
from hedgerow.kube.cluster import Cluster
from hedgerow.kube.watch import Snapshot
from hedgerow.objects import PLACEHOLDER, controller_of, metadata
from hedgerow.plan.status import said
from hedgerow_schemas.base import Resource
from hedgerow_testing.memory.inmemory import any_claims
from hedgerow_testing.memory.life import operator
from hedgerow_tools.fields.diff import DifferenceKind, Line, difference
from hedgerow_tools.fields.forecast import Forecast
from hedgerow_tools.fields.structure import Structure

Object = dict[str, Any]
_ALLOCATED = (".spec.clusterIP", ".spec.healthCheckNodePort", ".metadata.finalizers")
"""A digest that the resource's uid is part of, which is not known before."""
_COPY = "kubectl.kubernetes.io/last-applied-configuration"
"""What client-side apply keeps of the last manifest: a plan does not tell of it."""
_OF_ITS_UID = ("controller-uid",)
MOST = 8
KINDS = frozenset(get_args(DifferenceKind))


class FixedClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return 0.0

    def elapsed(self) -> float:
        return 0.0

    def jitter(self) -> float:
        return 0.5

    def move(self, by: timedelta) -> None:
        self._now += by


@dataclass(frozen=True)
class Told:
    """What becomes of a resource: lines of each object, what is contested, and its conditions."""

    objects: dict[str, tuple[str, frozenset[Any]]]
    contested: frozenset[tuple[str, str, str]] = frozenset()
    conditions: frozenset[tuple[str, str, str]] = frozenset()


@dataclass
class Operator:
    """One operator, just started, that makes its passes when it is told to."""

    cluster: Cluster
    controller: Controller[Resource]
    clock: FixedClock
    namespace: str

    async def settle(self, name: str) -> None:
        """Make passes until one changes nothing."""
        runner = operator(
            cast("Any", self.cluster),
            self.controller,
            self.clock,
            any_claims,
            namespaces=(self.namespace,),
            server_time=lambda: None,
        )
        for _ in range(MOST):
            before = await self._watch(runner)
            runner.queue.add((self.namespace, name))
            await runner.step()
            assert not runner.failures
            if await self._watch(runner) == before:
                return
        raise AssertionError(f"{name} does not settle")

    async def children(self, uid: str) -> dict[str, Object]:
        """Return the resource's children as they are, by kind and name."""
        found: dict[str, Object] = {}
        for kind in self.controller.owns:
            listing = await self.cluster.list(kind.api, self.namespace)
            ours = (obj for obj in listing.items if controller_of(obj).get("uid") == uid)
            found |= {f"{kind.api.kind}/{metadata(obj)['name']}": obj for obj in ours}
        return found

    async def _watch(self, runner: Any) -> list[object]:
        seen: list[object] = []
        for source in runner.cache:
            listing = await self.cluster.list(
                source.api, self.namespace, labels=source.labels, reduce=source.reduce
            )
            for _ in runner.watches.store_event(source, Snapshot(listing.items, listing.version)):
                pass
            seen += [metadata(obj).get("resourceVersion") for obj in listing.items]
        return seen


def str_of(obj: Object) -> str:
    """Write an object as kubectl takes it."""
    return f"{obj['kind']}/{metadata(obj)['name']}"


def foretold(forecast: Forecast, uid: str) -> Told:
    """Return what a plan says; `uid` is the resource's, as far as it had one."""
    return Told(
        {
            str(found): (found.action, _lines(found.lines, PLACEHOLDER, uid))
            for found in forecast.objects
            if found.action in ("created", "configured", "deleted")
        },
        frozenset((f.object, f.path, f.manager) for f in (one.field for one in forecast.contested)),
        frozenset((c.type, c.status, c.reason) for c in forecast.conditions.after),
    )


def happened(
    before: dict[str, Object],
    after: dict[str, Object],
    resource: Object,
    managers: dict[str, str],
    structures: dict[str, Structure | None],
) -> Told:
    """Return what became of objects; `managers` names by kind whose applies are looked at."""
    uid = metadata(resource)["uid"]
    objects: dict[str, tuple[str, frozenset[Any]]] = {}
    for name in (*before, *(name for name in after if name not in before)):
        old, new = before.get(name), after.get(name)
        if new is not None and metadata(new).get("deletionTimestamp"):
            new = None
        kind = name.partition("/")[0]
        manager = managers.get(kind, managers[""])
        lines = _lines(difference(old, new, manager, structures.get(kind)), uid)
        action = "created" if old is None else "configured" if new is not None else "deleted"
        counts = {"added", "changed", "removed", "moved"} if name == str_of(resource) else KINDS
        if action != "configured" or any(line[0] in counts for line in lines):
            objects[name] = (action, lines)
    status = said(resource)
    return Told(
        objects,
        frozenset((c.object, c.path, c.manager) for c in status.contested),
        frozenset((c.type, c.status, c.reason) for c in status.conditions),
    )


def _lines(lines: Iterable[Line], *uids: str) -> frozenset[Any]:
    return frozenset(
        (
            line.kind,
            _anonymous(line.path, uids),
            _anonymous(str(line.old), uids),
            _anonymous(str(line.new), uids),
            tuple(sorted(holder.manager for holder in line.after)),
        )
        for line in lines
        if not line.path.startswith(_ALLOCATED) and not any(w in line.path for w in _OF_ITS_UID)
        if _COPY not in line.path
        if not any(word in str(line.new) for word in _OF_ITS_UID)
    )


def _anonymous(text: str, uids: Iterable[str]) -> str:
    for uid in uids:
        text = text.replace(uid, "UID")
    return text
