"""Programs: generated sequences of requests to one object, for the model and the real server."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from hypothesis import strategies as st

from hedgerow.kube import errors
from hedgerow_testing.memory.answers import Refused
from hedgerow_testing.memory.kinds import BUILTIN
from hedgerow_testing.memory.schema import Object
from hedgerow_testing.memory.server import Server
from model.bodies import NAMESPACE
from model.ours import bluegreen, cronjob, memcached
from model.subjects import SUBJECTS, Subject

APPLIERS = ("one", "two", "three")
MANAGED = ("metadata", "managedFields")
UPDATERS = ("kubectl-edit", "operator", "one")


@dataclass(frozen=True)
class Outcome:
    """What came of a request: HTTP status (0: nothing was asked), the object or the Status.

    `error` is the class of `hedgerow.kube.errors` that the Status stands for, `conflicts` are the
    fields that other managers hold. `causes` are the fields of an invalid object.
    """

    code: int
    body: Object | None = None
    error: str = ""
    conflicts: tuple[str, ...] = ()
    causes: frozenset[str] = frozenset()

    @property
    def version(self) -> str:
        return self.must()["metadata"]["resourceVersion"]

    def must(self) -> Object:
        assert self.body is not None, self
        return self.body


def refused(code: int, status: Object) -> Outcome:
    """Return the outcome that a Status object tells of."""
    causes = status.get("details", {}).get("causes", [])
    fields = {c["field"] for c in causes if c["reason"] == "FieldManagerConflict"}
    error = errors.from_status({**status, "code": code})
    terminating = ".terminating" if getattr(error, "terminating", False) else ""
    told = frozenset(cause["field"] for cause in causes if code == 422)
    return Outcome(code, None, type(error).__name__ + terminating, tuple(sorted(fields)), told)


class World(Protocol):
    """A server to run a program on."""

    def apply(
        self,
        body: Object,
        manager: str,
        *,
        subresource: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> Outcome: ...
    def create(self, body: Object, manager: str) -> Outcome: ...
    def put(self, body: Object, manager: str) -> Outcome: ...
    def merge(
        self, target: Object, patch: Object, manager: str, subresource: str = ""
    ) -> Outcome: ...
    def delete(self, target: Object, *, uid: str = "", version: str = "") -> Outcome: ...
    def open_namespace(self, name: str) -> None: ...
    def terminate(self, namespace: str) -> None: ...
    def get(self, target: Object) -> Object | None: ...


class ModelWorld:
    """The model as a world."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def apply(
        self,
        body: Object,
        manager: str,
        *,
        subresource: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> Outcome:
        return _asked(
            lambda: self.server.apply(
                body, manager, subresource=subresource, force=force, dry_run=dry_run
            )
        )

    def create(self, body: Object, manager: str) -> Outcome:
        return _asked(lambda: (self.server.create(body, manager), True))

    def put(self, body: Object, manager: str) -> Outcome:
        return _asked(lambda: (self.server.update(body, manager), False))

    def merge(self, target: Object, patch: Object, manager: str, subresource: str = "") -> Outcome:
        return _asked(lambda: (self.server.merge(target, patch, manager, subresource), False))

    def delete(self, target: Object, *, uid: str = "", version: str = "") -> Outcome:
        return _asked(lambda: (self.server.delete(target, uid=uid, version=version), False))

    def open_namespace(self, name: str) -> None:
        self.server.open_namespace(name)

    def terminate(self, namespace: str) -> None:
        self.server.terminate(namespace)

    def get(self, target: Object) -> Object | None:
        return self.server.get(target)


def opened(kind: str) -> tuple[ModelWorld, Object]:
    """Return an empty cluster, and the object to be."""
    kinds = (*BUILTIN, bluegreen(), memcached(), cronjob())
    metadata = {"name": "x", "namespace": NAMESPACE}
    target = {"apiVersion": SUBJECTS[kind].api_version, "kind": kind, "metadata": metadata}
    return ModelWorld(Server(kinds, [NAMESPACE])), target


def _asked(act: Callable[[], tuple[Any, bool]]) -> Outcome:
    try:
        body, created = act()
    except Refused as error:
        return refused(error.code, error.status)
    return Outcome(201 if created else 200, body)


@dataclass(frozen=True)
class Apply:
    """An applied configuration, its identity still to be filled in."""

    body: Object
    manager: str
    force: bool = False
    subresource: str = ""

    def run(self, world: World, target: Object) -> Outcome:
        body = laid(target, self.body)
        return world.apply(body, self.manager, subresource=self.subresource, force=self.force)


@dataclass(frozen=True)
class Put:
    """The live object with one place changed; None takes it away. Nothing if it is not there."""

    path: tuple[Any, ...]
    value: Any
    manager: str

    def run(self, world: World, target: Object) -> Outcome:
        live = world.get(target)
        if live is None or not _changed(live, self.path, self.value):
            return Outcome(0)
        return world.put(live, self.manager)


@dataclass(frozen=True)
class Merge:
    """A JSON merge patch."""

    patch: Object
    manager: str
    subresource: str = ""

    def run(self, world: World, target: Object) -> Outcome:
        return world.merge(target, self.patch, self.manager, self.subresource)


@dataclass(frozen=True)
class Delete:
    """A delete without preconditions."""

    def run(self, world: World, target: Object) -> Outcome:
        return world.delete(target)


Request = Apply | Put | Merge | Delete


def laid(target: Object, body: Object) -> Object:
    """Return a body the identity of a target."""
    metadata = {**body.get("metadata", {}), **target["metadata"]}
    return {**copy.deepcopy(body), **target, "metadata": metadata}


def nested(path: tuple[Any, ...], value: Any) -> Any:
    """Return the configuration that declares one place, and the list keys on the way to it."""
    if not path:
        return value
    below = nested(path[1:], value)
    return [{**path[0], **below}] if isinstance(path[0], dict) else {path[0]: below}


def requests(subject: Subject) -> st.SearchStrategy[Request]:
    """Any request to an object of that kind."""
    managers, updaters = st.sampled_from(APPLIERS), st.sampled_from(UPDATERS)
    force = st.sampled_from((False, False, True))
    edits = [(path, value) for path, values in subject.edits for value in values]
    claims = [nested(path, value) for path, value in edits if value is not None and path != MANAGED]
    puts = st.builds(lambda edit, who: Put(*edit, who), st.sampled_from(edits), updaters)
    labels = st.builds(Merge, st.just({"metadata": {"labels": {"a": "9"}}}), updaters)
    weighted = {
        st.builds(Apply, subject.bodies, managers, force): 5,
        st.builds(Apply, st.sampled_from(claims), managers, force): 6,
        puts: 5,
        labels: 1,
        st.just(Delete()): 1,
    }
    if subject.status is not None:
        status = subject.status.map(lambda value: {"status": value})
        weighted[st.builds(Merge, status, updaters, st.just("status"))] = 1
        weighted[st.builds(Apply, status, managers, force, st.just("status"))] = 1
    if subject.scale:
        # Another count than others write: a scale that changes nothing splits an updater's entry.
        scale = st.sampled_from((3, 5)).map(lambda count: {"spec": {"replicas": count}})
        weighted[st.builds(Merge, scale, updaters, st.just("scale"))] = 1
    kinds = st.sampled_from([which for which, weight in weighted.items() for _ in range(weight)])

    @st.composite
    def drawn(draw: st.DrawFn) -> Request:
        return draw(draw(kinds))

    return drawn()


@cache
def programs(subject: Subject, longest: int = 8) -> st.SearchStrategy[list[Request]]:
    """Sequences that begin with an apply that succeeds."""
    return st.lists(requests(subject), min_size=1, max_size=longest).map(
        lambda rest: [Apply(subject.first, APPLIERS[0]), *rest]
    )


def _changed(live: Any, path: tuple[Any, ...], value: Any) -> bool:
    for step in path[:-1]:
        if isinstance(step, dict):
            live = next((item for item in live if step.items() <= item.items()), None)
        else:
            live = live.get(step)
        if live is None:
            return False
    if value is None:
        return live.pop(path[-1], None) is not None
    live[path[-1]] = copy.deepcopy(value)
    return True
