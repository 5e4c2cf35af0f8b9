"""Store: the model's server with a log, a history and a clock that goes by itself."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from hedgerow.cli.install.objects import CLUSTER_ROLE
from hedgerow_schemas.base import ApiResource
from hedgerow_schemas.crd import CRD
from hedgerow_testing.memory import kinds
from hedgerow_testing.memory.answers import Refused
from hedgerow_testing.memory.kind import ServedKind
from hedgerow_testing.memory.schema import Atomic, Map, Object
from hedgerow_testing.memory.server import Server, StoredKey
from model import ours, scaled

PARTS = {"spec": Map(Atomic()), "status": Map(Atomic())}
DEFINITION = ServedKind(CRD, PARTS, status=True, generations=("spec",))
"""Enough to be read, applied and deleted; a new one changes nothing of what is served."""
ROLE = ServedKind(CLUSTER_ROLE, {"rules": Atomic()})
KINDS = (
    *kinds.BUILTIN,
    kinds.NAMESPACE,
    kinds.POD,
    DEFINITION,
    ROLE,
    kinds.ENDPOINT_SLICE,
    ours.bluegreen(),
    ours.cronjob(),
    ours.guestbook(),
    ours.memcached(),
    scaled.STATEFUL_SET,
    scaled.HORIZONTAL_POD_AUTOSCALER,
)


@dataclass(frozen=True)
class Entry:
    """One event of the log: what happened to an object, and what it was before."""

    version: int
    type: str
    key: StoredKey
    object: Object
    before: Object | None


class Editable(Server):
    """The model's server, which also takes a JSON patch."""

    def edit(self, target: Object, patch: list[Object]) -> Object:
        """Carry out a JSON patch of tests and replacements; it leaves no entry of its own."""
        there = copy.deepcopy(self._live(self._key(target)))
        for operation in patch:
            *steps, last = operation["path"].strip("/").split("/")
            place: Any = there
            for step in steps:
                place = place[_step(place, step)]
            if operation["op"] == "replace":
                place[_step(place, last)] = operation["value"]
            elif place[_step(place, last)] != operation["value"]:
                raise Refused(422, "Invalid", "the server rejected our request")
        return copy.deepcopy(self._put(self._key(target), there, "MODIFIED"))


class Store(Editable):
    """The model's server with a log, a history and a clock that goes by itself."""

    def __init__(self, wall: Callable[[], float], kinds: Iterable[ServedKind] = ()) -> None:
        self._wall = wall
        self.log: list[Entry] = []
        self.on_entry: Callable[[Entry], None] = lambda _entry: None
        super().__init__((*KINDS, *kinds), namespaces=("",))
        self.past: list[tuple[int, dict[StoredKey, Object]]] = [(self.version, {})]
        """Every version, and all there was at it."""

    @property
    def now(self) -> int:
        """The server's wall clock, in seconds."""
        return math.floor(self._wall())

    @now.setter
    def now(self, _second: int) -> None:
        """The clock goes by itself."""

    def fork(self) -> Store:
        other = super().fork()
        assert isinstance(other, Store)
        other.log, other.past = list(self.log), list(self.past)
        other.on_entry = lambda _entry: None
        return other

    def _append_event(self, event: Any, last: Object) -> None:
        key = self._key(last)
        before = self.past[-1][1].get(key)
        self.past.append((self.version, dict(self._objects)))
        entry = Entry(self.version, event, key, last, before)
        self.log.append(entry)
        self.on_entry(entry)

    def find(self, api: ApiResource, name: str, namespace: str = "") -> Object | None:
        """Return the object of a kind by its name; not to be changed."""
        return self._objects.get((api.group, api.kind, namespace, name))

    def drop(self, target: Object) -> None:
        """Have an object gone, whatever holds it."""
        self._remove(self._key(target), self._live(self._key(target)))

    def all(self) -> dict[StoredKey, Object]:
        """Every object there is; not to be changed."""
        return dict(self._objects)

    def at(self, version: int) -> dict[StoredKey, Object]:
        """All there was at a version."""
        for number, objects in reversed(self.past):
            if number <= version:
                return objects
        return {}

    def restore(self, version: int) -> None:
        """Go back to an earlier version, as an etcd that is restored from a snapshot does."""
        objects = self.at(version)
        self.version, self._objects = version, dict(objects)
        self.log = [entry for entry in self.log if entry.version <= version]
        self.past = [one for one in self.past if one[0] <= version]
        names = {key[3] for key in objects if key[1] == "Namespace"}
        self._namespaces = {"": "Active"} | {
            name: "Terminating" if self._is_going(name) else "Active" for name in names
        }

    def _is_going(self, namespace: str) -> bool:
        live = self._objects.get(("", "Namespace", "", namespace))
        return live is not None and "deletionTimestamp" in live["metadata"]


def _step(place: Any, step: str) -> Any:
    return int(step) if isinstance(place, list) else step
