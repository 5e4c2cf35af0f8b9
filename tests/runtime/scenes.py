"""Scenes: what several of the reconciler's tests begin with, upset, and look at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hedgerow.kube import errors
from hedgerow.plan.yield_and_claim import CLAIM, YIELD
from hedgerow_testing.memory.cluster import Sent
from runtime.shop import Shop
from runtime.world import World

Object = dict[str, Any]

BLUE, GREEN = "Deployment default/demoblue-deployment", "Deployment default/demogreen-deployment"
CREATION = [
    f"apply {BLUE}",
    f"apply {GREEN}",
    "apply Service default/demo",
    "apply BlueGreen default/demo/status",
]
MOST_REPEATS = 8
"""So often is one write undone, within ten minutes, before it is said that it does not settle."""
IMAGE = '.spec.template.spec.containers[name="blue"].image'

# A PodSpec that the server spells in its own way, and one with everything that may be empty.
RESPELLED = {
    "containers": [
        {
            "name": "blue",
            "image": "example/echo:1",
            "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}},
            "env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "ports": [{"containerPort": 80}],
        }
    ],
    "volumes": [{"name": "scratch", "emptyDir": {}}],
    "securityContext": {},
}
DISK = {"disk": "ssd"}


async def settled(**spec: Any) -> World:
    world = World()
    world.apply(**spec)
    await world.settle()
    return world


async def flipped_during(number: int) -> World:
    """Return a world whose resource was flipped while the request of that number was made."""
    world = World()
    world.apply()
    world.deliver()

    def flip() -> None:
        world.apply(routeTo="Green")
        world.deliver(kind="BlueGreen")

    world.during(number, flip)
    await world.work()
    return world


async def writes_of(world: World, act: Callable[[], Any]) -> list[str]:
    """What the operator writes because of `act`."""
    before = len(world.writes)
    act()
    await world.settle()
    assert world.failures == []
    return world.writes[before:]


async def fight(world: World, undo: Callable[[], Any] = lambda: None, minutes: int = 4) -> None:
    """Have somebody undo what the operator writes, as long as it writes it."""
    for _ in range(minutes * 60):
        undo()
        world.deliver()
        await world.work()
        world.server.now += 1


def take_image(world: World, colour: str = "blue", image: str = "theirs:9") -> None:
    container = {"name": colour, "image": image}
    body = {"spec": {"template": {"spec": {"containers": [container]}}}}
    target = world.target("Deployment", f"demo{colour}-deployment")
    world.server.apply({**target, **body}, "helm", force=True)


def take_service_name(world: World) -> None:
    """Somebody else's Service stands where ours is to stand."""
    world.delete("Service")
    world.server.create(
        {**world.target("Service", "demo"), "spec": {"ports": [{"port": 1, "protocol": "TCP"}]}},
        "kubectl-create",
    )


def annotate(world: World, **field_policy: str | None) -> None:
    """Write the resource's annotations of what it yields and claims; None takes one away."""
    names = {"yields": YIELD, "claims": CLAIM}
    notes = {names[name]: value for name, value in field_policy.items()}
    world.edit("BlueGreen", "demo", {"metadata": {"annotations": notes}}, "user-annotate")


def refuse(
    world: World | Shop,
    error: errors.KubeError,
    name: str = "",
    *,
    times: int = 1000,
    verb: str = "",
    kind: str = "",
) -> list[Sent]:
    """Let the server answer so to writes whose line ends in that name; return what it refused."""
    refused: list[Sent] = []

    async def hook(sent: Sent) -> None:
        meant = verb in (sent.verb, "") and kind in (sent.api.kind, "") and sent.writes
        if meant and len(refused) < times and str(sent).endswith(name):
            refused.append(sent)
            raise error

    world.cluster.before = hook
    return refused


def occupy(world: World, **spec: Any) -> Object:
    """Give the Service's name to somebody else's."""
    body = {**world.target("Service", "demo"), "spec": {"ports": [{"port": 1}], **spec}}
    return world.server.create(body, "kubectl-create")


def everything(world: World) -> dict[str, Any]:
    """All objects but Events, without what time and chance gave them."""
    found = {}
    for key, live in world.server.all().items():
        if key[1] != "Event":
            spec = {k: v for k, v in live["spec"].items() if not k.startswith("clusterIP")}
            conditions = [
                (c["type"], c["status"], c["reason"])
                for c in live.get("status", {}).get("conditions", [])
            ]
            found["/".join(key)] = (spec, conditions, live["metadata"].get("labels"))
    return found
