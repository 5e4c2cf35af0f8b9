"""Situations: what other programs and people do to what hedgerow declares, and what is shown then.

Each happens to a resource of its own, named after it. `contested` is what its status says
afterwards: object, path, manager, operation, subresource. `kept` reads what was done: it stays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hedgerow_testing.api import Object
from hedgerow_testing.waiting import eventually
from support.cluster.bluegreens import bluegreen
from support.cluster.memcacheds import World

Contested = tuple[str, str, str | None, str | None, str | None]
BLUE = '.spec.template.spec.containers[name="blue"]'


@dataclass(frozen=True)
class Situation:
    """One of them; `kind` is the resource's, `spec` adds to its usual one."""

    name: str
    act: Callable[[World, str], None]
    kept: Callable[[World, str], object]
    expected: object
    contested: tuple[Contested, ...] = ()
    kind: str = "BlueGreen"
    spec: Object | None = None

    def begin(self, world: World) -> None:
        """Make the resource."""
        if self.kind == "Memcached":
            world.make(self.name, 2)
            return
        manifest = bluegreen(world.namespace, self.name, **(self.spec or {}))
        world.api.apply(manifest, "user").must()

    def __str__(self) -> str:
        return self.name


def deployment(name: str) -> str:
    return f"{name}blue-deployment"


def pod_spec(world: World, name: str) -> Object:
    return world.get("Deployment", deployment(name))["spec"]["template"]["spec"]


def image(world: World, name: str) -> str:
    return next(c["image"] for c in pod_spec(world, name)["containers"] if c["name"] == "blue")


def replicas(world: World, name: str) -> int:
    return world.get("Deployment", name)["spec"]["replicas"]


def containers(world: World, name: str) -> list[str]:
    return sorted(c["name"] for c in pod_spec(world, name)["containers"])


def blue(**container: Any) -> Object:
    """Return a template with the container of ours."""
    return {"template": {"spec": {"containers": [{"name": "blue", **container}]}}}


def forced(world: World, name: str) -> None:
    body = {**world.target("Deployment", deployment(name)), "spec": blue(image="helm/echo:9")}
    world.api.apply(body, "helm", force=True).must()


def edited(world: World, name: str) -> None:
    world.edit("Service", name, {"spec": {"selector": {"app.kubernetes.io/phase": "Grey"}}})


def restarted(world: World, name: str) -> None:
    world.kubectl("rollout", "restart", f"deployment/{deployment(name)}")


def joined(world: World, name: str) -> None:
    side = {"name": "side", "image": "example/side:1"}
    body = {"spec": {"template": {"spec": {"containers": [side]}}}}
    target = world.target("Deployment", deployment(name))
    world.api.merge(target, body, "injector", kind="strategic-merge").must()


def port_renamed(world: World, name: str) -> None:
    ports = [{**port, "name": "web"} for port in world.get("Service", name)["spec"]["ports"]]
    world.edit("Service", name, {"spec": {"ports": ports}})


def item_removed(world: World, name: str) -> None:
    body = {"spec": blue(env=[{"name": "A", "$patch": "delete"}])}
    target = world.target("Deployment", deployment(name))
    world.api.merge(target, body, "remover", kind="strategic-merge").must()


def scalar_removed(world: World, name: str) -> None:
    """Take a scalar of ours away, as `kubectl edit` does; and once more when it was put back."""
    for _ in range(2):
        eventually(lambda: pod_spec(world, name).get("hostname") == "ours")
        world.edit("Deployment", deployment(name), NO_HOSTNAME)


def autoscaled(world: World, name: str) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    spec = {"scaleTargetRef": target, "minReplicas": 3, "maxReplicas": 3}
    manifest = {**world.target("HorizontalPodAutoscaler", name), "spec": spec}
    world.api.apply(manifest, "user").must()


def scaled(count: int, target: Callable[[str], str] = str) -> Callable[[World, str], None]:
    """Return what scales a Deployment as people do."""

    def act(world: World, name: str) -> None:
        world.kubectl("scale", f"deployment/{target(name)}", f"--replicas={count}")

    return act


def image_set(world: World, name: str) -> None:
    world.set_image(deployment(name), "blue", "set/echo:9")


def hostname(world: World, name: str) -> object:
    return pod_spec(world, name).get("hostname")


def ports(world: World, name: str) -> list[str]:
    return [port["name"] for port in world.get("Service", name)["spec"]["ports"]]


def environment(world: World, name: str) -> object:
    return pod_spec(world, name)["containers"][0]["env"]


def taken(target: str, path: str, manager: str | None, operation: str | None = "Update",
          subresource: str | None = None) -> tuple[Contested, ...]:  # fmt: skip
    """Return that one field is contested; of a colour's Deployment if only its owner is named."""
    found = target if "/" in target else f"Deployment/{deployment(target)}"
    return ((found, path, manager, operation, subresource),)


NO_HOSTNAME = {"spec": {"template": {"spec": {"hostname": None}}}}
ENV = {"containers": [{"name": "blue", "image": "a", "env": [{"name": "A", "value": "1"}]}]}
NAMED = {"blueSpec": {**ENV, "hostname": "ours"}}
SITUATIONS = (
    Situation("scale", scaled(3), replicas, 3,
              taken("Deployment/scale", ".spec.replicas", "kubectl", subresource="scale"),
              kind="Memcached"),
    Situation("autoscaler", autoscaled, replicas, 3,
              taken("Deployment/autoscaler", ".spec.replicas", "kube-controller-manager",
                    subresource="scale"),
              kind="Memcached"),
    Situation("set-image", image_set, image, "set/echo:9",
              taken("set-image", f"{BLUE}.image", "kubectl-set")),
    Situation("restart", restarted, image, "example/echo:1"),
    Situation("join", joined, containers, ["blue", "side"]),
    Situation("remove-item", item_removed, environment, [{"name": "A", "value": "1"}],
              spec={"blueSpec": ENV}),
)  # fmt: skip
"""Those whose way to write no model knows: kubectl's own, autoscalers', and strategic merges."""
OF_TRIALS = (
    Situation("edit-map", edited, lambda world, name: world.selected(name), "Grey"),
    Situation("apply-force", forced, image, "helm/echo:9"),
    Situation("rename-port", port_renamed, ports, ["web"]),
    Situation("remove-scalar", scalar_removed, hostname, None, spec=NAMED),
)
"""Those that only remedies are tried in; what is told of them, memory proves."""
