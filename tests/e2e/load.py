"""Load: resources that change all the time, so that the operator always has something to write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self

import httpx

from e2e.background import Background
from e2e.node.images import MEMCACHED, PAUSE_IMAGE, PYTHON
from e2e.node.node import Node
from e2e.pods import container, user
from hedgerow_testing.api import Api, Object, Reply
from hedgerow_testing.waiting import eventually
from support.cluster.bluegreens import World, bluegreen

COLOURS = ("Blue", "Green")
SIZES = (1, 2)
_BLUEGREENS = 4
_SOON = 120.0
_PAUSE = 0.02
"""Seconds between two requests of a writer: the operator has the machine too."""
_RESIZED_EVERY = 100
_MEMCACHED = "memcached.cache.example.com/v1"


@dataclass
class Answers:
    """What became of requests that go through the webhooks."""

    served: int = 0
    failed: list[str] = field(default_factory=list[str])

    def take(self, ask: Callable[[], Reply]) -> bool:
        """Make a request and count it; tell whether it was served."""
        try:
            reply = ask()
        except httpx.HTTPError as error:
            self.failed.append(repr(error))
            return False
        if not reply.ok:
            self.failed.append(f"{reply.status} {reply.body.get('message')}")
            return False
        self.served += 1
        return True


class Writer(Background):
    """Makes one request after the other, over connections of its own."""

    def __init__(self, node: Node, once: Callable[[Api, int], object]) -> None:
        self._api = Api(node.kubeconfig)
        super().__init__(lambda turn: once(self._api, turn), _PAUSE)

    def __exit__(self, *raised: object) -> None:
        try:
            super().__exit__(*raised)
        finally:
            self._api.close()


class Load:
    """BlueGreens that change their colour and a Memcached that changes its size, in a namespace.

    While entered each change is applied as soon as the one before was answered.
    """

    def __init__(self, node: Node, api: Api, namespace: str) -> None:
        self.answers = Answers()
        self.names = [f"load{number}" for number in range(_BLUEGREENS)]
        self._world = World(api, namespace)
        self.api = api
        self._wanted = {name: self._coloured(name, "Blue") for name in self.names}
        self._wanted["cache"] = self._sized(SIZES[0])
        self._thread = Writer(node, self._change)

    def __enter__(self) -> Self:
        """Begin with resources whose children are all there."""
        for manifest in self._wanted.values():
            self.api.apply(manifest, "user").must()
        self.carried_out()
        self._thread.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._thread.__exit__(*raised)

    def goes_on(self, changes: int = 20) -> None:
        """Wait until so many more changes have been taken by the API server."""
        enough = self.answers.served + changes
        eventually(lambda: self.answers.served >= enough, _SOON, "changes of resources")

    def repeat(self) -> None:
        """Apply what is wanted once more, for those whose last change was refused."""
        for manifest in self._wanted.values():
            eventually(lambda m=manifest: self.api.apply(m, "user").ok, _SOON, "an apply")

    def carried_out(self) -> None:
        """Wait until everything is as it was last applied, and its status speaks of that."""
        eventually(lambda: not self._left(), _SOON, "all changes carried out")
        assert not self._left()

    def uids(self) -> dict[str, str]:
        """Return the uid of each child."""
        return {
            f"{kind}/{name}": self._child(kind, name)["metadata"]["uid"]
            for kind, name in self._children()
        }

    def _left(self) -> Sequence[str]:
        """Name the resources that are not yet what is wanted."""
        late = [name for name in self.names if not self._switched(name)]
        return late if self._resized() else [*late, "cache"]

    def _switched(self, name: str) -> bool:
        wanted = self._wanted[name]
        live = self._world.get("BlueGreen", name) or {}
        service = self._world.selected(name)
        return _current(live, wanted) and service == wanted["spec"]["routeTo"]

    def _resized(self) -> bool:
        wanted = self._wanted["cache"]
        live = self.api.get(wanted).body
        deployment = self._world.get("Deployment", "cache") or {}
        size = deployment.get("spec", {}).get("replicas")
        return _current(live, wanted) and size == wanted["spec"]["size"]

    def _children(self) -> list[tuple[str, str]]:
        made = [("Service", "cache"), ("Deployment", "cache")]
        for name in self.names:
            made += [("Service", name)]
            made += [("Deployment", f"{name}{c.lower()}-deployment") for c in COLOURS]
        return made

    def _child(self, kind: str, name: str) -> Object:
        found = self._world.get(kind, name)
        assert found, f"there is no {kind} {name}"
        return found

    def _change(self, api: Api, turn: int) -> None:
        """Change the next one; what was refused is not wanted."""
        name, again = self.names[turn % _BLUEGREENS], turn // _BLUEGREENS
        manifest = self._coloured(name, COLOURS[(again + 1) % 2])
        if turn % _RESIZED_EVERY == _RESIZED_EVERY - 1:
            name, manifest = "cache", self._sized(SIZES[turn // _RESIZED_EVERY % 2])
        if self.answers.take(lambda: api.apply(manifest, "user")):
            self._wanted[name] = manifest

    def _coloured(self, name: str, colour: str) -> Object:
        pods = user(container(PAUSE_IMAGE), restartPolicy="Always")
        spec = {"blueSpec": pods, "greenSpec": pods}
        return bluegreen(self._world.namespace, name, colour, **spec)

    def _sized(self, size: int) -> Object:
        metadata = {"namespace": self._world.namespace, "name": "cache"}
        spec = {"size": size, "image": MEMCACHED}
        return {"apiVersion": _MEMCACHED, "kind": "Memcached", "metadata": metadata, "spec": spec}


def asking(node: Node, namespace: str, answers: Answers) -> Writer:
    """Have a CronJob judged again and again, by dry runs that change nothing."""
    asked = cronjob(namespace)

    def ask(api: Api, turn: int) -> None:
        asked["metadata"]["annotations"] = {"turn": str(turn)}
        answers.take(lambda: api.apply(asked, "user", dry_run=True))

    return Writer(node, ask)


def cronjob(namespace: str) -> Object:
    """Return a CronJob that starts nothing for a long time."""
    pod = {"spec": user(container(PYTHON))}
    return {
        "apiVersion": "batch.tutorial.kubebuilder.io/v1",
        "kind": "CronJob",
        "metadata": {"namespace": namespace, "name": "asked"},
        "spec": {"schedule": "0 0 29 2 *", "jobTemplate": {"spec": {"template": pod}}},
    }


def _current(live: Object, wanted: Object) -> bool:
    """Return whether the live object is what is wanted, and its status has seen that."""
    key = "routeTo" if wanted["kind"] == "BlueGreen" else "size"
    same = live.get("spec", {}).get(key) == wanted["spec"][key]
    seen = live.get("status", {}).get("observedGeneration")
    return same and seen == live["metadata"]["generation"]
