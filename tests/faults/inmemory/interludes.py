"""Interludes: what somebody does to a resource, its namespace or etcd between any two writes.

After that nothing is as the scenario has it, so it ends there; what is left has to be what a fresh
deployment of the same resource would be, or what there was when etcd's snapshot was taken.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import anyio
import httpx

from faults.inmemory.injector import Fault, Injector
from faults.inmemory.machine import Machine
from faults.inmemory.people import HOME, ModelPeople
from faults.inmemory.story import TAIL, Teller, everything
from faults.inmemory.trial import AFTER, BY_NAME, LOOKS, Trial, calm, difference
from faults.scenario import USER, Scenario, collect
from hedgerow.objects import digest
from hedgerow_testing.memory.schema import Object

SOON = 1.0
"""Seconds until the garbage collector, or the end of a namespace, comes."""
RESTORING = 20.0
"""Seconds that the API server is away while etcd is restored."""
ANEW = "resource made anew"
NAMESPACE = "namespace deleted and made anew"
RESTORED = "etcd restored"
WHENS = ("before", "after")
_GENERAL = {
    "_does_not_fail",
    "_writes_well",
    "_hits_what_it_means",
    "_routes_what_passed",
    "_starts_once",
    "_writes_alone",
}
"""What of a trial is looked at: the rest compares with a scenario that goes on."""


@dataclass(frozen=True)
class Interlude:
    """One run: what somebody does, before or after which write of a scenario."""

    scenario: str
    what: str
    when: str
    at: int

    def __str__(self) -> str:
        return f"{self.scenario}: {self.what} {self.when} write {self.at}"

    @property
    def _goes_on(self) -> bool:
        """Whether there are writes as time passes, whatever anybody does."""
        return self.scenario.startswith("cronjob")

    def run(self) -> list[str]:
        """Play it, and tell everything that must not be."""
        scenario = BY_NAME[self.scenario]
        machine = Machine(controllers=(scenario.controller,))
        fault = Fault(f"{self.when}: {self.what}", self.at)
        injector = Injector(machine, (fault,))

        applied = ""
        left = ""

        async def main() -> list[str]:
            nonlocal applied, left
            teller = Teller(machine, scenario)
            stage = _Stage(machine, scenario, teller.people, injector)
            injector.interludes[fault.what] = stage.acts[self.what]
            teller.stop = lambda: bool(injector.met)
            await teller.play()
            await anyio.sleep(3 * SOON)
            await teller.rest(lambda: TAIL)
            found = [*teller.ending.wrong]
            applied, left = stage.applied, everything(machine.api.store.all())
            before = len(teller.ending.writes)
            for process in machine.processes:
                process.kill()
            await anyio.sleep(2 * TAIL)
            later = [] if self._goes_on else teller.ending.writes[before:]
            found += [f"a new life writes {exchange}" for exchange in later]
            trial = Trial(scenario, (fault,), machine, injector, teller.ending)
            looks = [look for look in LOOKS if look.__name__ in _GENERAL]
            return found + [problem for look in looks for problem in look(trial)]

        found = machine.run(main)
        if applied and not self._goes_on:
            wanted = fresh(scenario.controller, applied)
            found += [] if left == wanted else [f"it ends otherwise: {difference(left, wanted)}"]
        return found


class _Stage:
    """What somebody does, and what is to come of it."""

    def __init__(
        self, machine: Machine, scenario: Scenario, people: ModelPeople, injector: Injector
    ) -> None:
        self._machine, self._scenario, self._people = machine, scenario, people
        self._injector = injector
        self._store = machine.api.store
        self.applied = ""
        """The resource that was applied anew."""
        self.acts = {
            ANEW: self.make_anew,
            NAMESPACE: self.delete_namespace,
            RESTORED: self.restore,
        }

    def make_anew(self) -> None:
        live = self._people.get(self._scenario.resource)
        if live is None:
            return
        self._people.delete(self._scenario.resource)
        self._apply(live)
        self._machine.later(SOON, lambda: collect(self._people, self._scenario.children))

    def delete_namespace(self) -> None:
        live = self._people.get(self._scenario.resource)
        self._store.terminate(HOME)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}
        held = {"metadata": {"finalizers": ["kubernetes"]}}
        self._store.merge(namespace, held, "kube-apiserver")
        self._store.delete(namespace)
        self._machine.later(SOON, lambda: self._end_namespace(namespace, live))

    def _end_namespace(self, namespace: Object, live: Object | None) -> None:
        for key, obj in self._store.all().items():
            if key[2] == HOME:
                self._store.merge(obj, {"metadata": {"finalizers": None}}, "namespace-controller")
                if self._store.peek(obj) is not None:
                    self._store.delete(obj)
        self._store.merge(namespace, {"metadata": {"finalizers": None}}, "namespace-controller")
        self._store.forget_namespace(HOME)
        self._people.open_namespace(HOME)
        if live is not None:
            self._apply(live)

    def restore(self) -> None:
        """Go back to a version of some writes ago, while the API server is away."""
        versions = [entry.version for entry in self._store.log if entry.key[1] != "Lease"]
        self._store.restore(versions[max(0, len(versions) - 4)])
        self._injector.away(RESTORING)
        raise httpx.ReadError("connection reset by peer")

    def _apply(self, live: Object) -> None:
        meta = live["metadata"]
        body: Object = {
            "apiVersion": live["apiVersion"],
            "kind": live["kind"],
            "metadata": {"name": meta["name"], "namespace": HOME},
            "spec": copy.deepcopy(live["spec"]),
        }
        if meta.get("annotations"):
            body["metadata"]["annotations"] = dict(meta["annotations"])
        self._store.apply(body, USER)
        self.applied = json.dumps(body)


@cache
def fresh(controller: str, body: str) -> str:
    """Return what a fresh deployment of a resource is."""
    machine = Machine(controllers=(controller,))

    async def main() -> str:
        people = ModelPeople(machine.api.store)
        people.settle_in()
        await anyio.sleep(SOON)
        machine.api.store.apply(json.loads(body), USER)
        await anyio.sleep(AFTER)
        return everything(machine.api.store.all())

    return machine.run(main)


def interludes() -> Iterator[Interlude]:
    """Return every interlude at every write of every scenario, in an order that says nothing.

    Where starts are made each second nothing comes to rest, and somebody's Service that is deleted
    with its namespace is no part of a fresh deployment.
    """
    found = [
        Interlude(name, what, when, at)
        for name in BY_NAME
        if name not in {"cronjob-forbidding", "cronjob-replacing", "bluegreen-names"}
        for at in range(len(calm(name).ending.writes))
        for what in (ANEW, NAMESPACE)
        for when in WHENS
    ]
    return iter(sorted(found, key=lambda interlude: digest(str(interlude))))
