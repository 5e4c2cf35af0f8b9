"""People: users and other programs that edit what the operator manages, and what they wrote."""

from __future__ import annotations

import copy
from typing import Any

from faults.built_in import annotate
from faults.checked import DEMO
from faults.scenario import give_back, scale
from runtime.bluegreens import COLOURS, edit, in_pods, label, select, take_image
from runtime.stepwise import WorldPeople
from runtime.world import World, pods

Object = dict[str, Any]

SPECS: tuple[Object, ...] = (
    {},
    {"routeTo": "Green"},
    {"greenSpec": None},
    {"routeTo": "Green", "blueSpec": None},
    {"blueSpec": pods("blue", "mine:2"), "greenSpec": pods("green", "mine:2")},
    {"blueSpec": pods("blue", nodeSelector={"disk": "ssd"}), "routeTo": "Green"},
    {"promotion": "WhenAvailable"},
    {"promotion": "WhenAvailable", "routeTo": "Green"},
    {"ports": [{"name": "http", "port": 80, "targetPort": 8080}, {"name": "x", "port": 9}]},
    {"blueSpec": {**pods("blue"), "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1024Mi"}}]}},
)


class People:
    """Each method is one thing that somebody does; `wrote` is what must be found there after."""

    def __init__(self, world: World) -> None:
        self.world, self.people = world, WorldPeople(world)
        self.wrote: dict[tuple[str, str, str, str], Any] = {}

    def _name(self, colour: str) -> str:
        return f"demo{colour}-deployment"

    def act(self, name: str, *args: Any) -> None:
        """Do one thing; a write that changes nothing gives nobody anything to hold."""
        version, wrote = self.world.server.version, dict(self.wrote)
        getattr(self, name)(*args)
        if self.world.server.version == version:
            self.wrote = wrote

    def _note(self, kind: str, name: str, path: str, value: Any) -> None:
        live = self.world.the(kind, name)
        self.wrote[kind, name, live["metadata"]["uid"], path] = value

    def _hold(self, kind: str, name: str, path: str, value: Any) -> None:
        """Note a value; None is nothing to hold."""
        live = self.world.the(kind, name)
        self.wrote.pop((kind, name, live["metadata"]["uid"], path), None)
        if value is not None:
            self._note(kind, name, path, value)

    # --- the user -----------------------------------------------------------------------------

    def apply(self, number: int) -> None:
        self.world.apply(**SPECS[number])

    def touch(self, value: str) -> None:
        annotate(DEMO, touched=value)(self.people)

    def delete(self) -> None:
        self.world.delete("BlueGreen")

    # --- other programs -----------------------------------------------------------------------

    def force_image(self, colour: str, image: str) -> None:
        take_image(image, colour)(self.people)
        self._note("Deployment", self._name(colour), "image", image)

    def release_image(self, colour: str) -> None:
        live = self.world.the("Deployment", self._name(colour))
        self.wrote.pop(("Deployment", self._name(colour), live["metadata"]["uid"], "image"), None)
        give_back(COLOURS[colour], "helm")(self.people)

    def set_image(self, colour: str, image: str) -> None:
        live = self.world.the("Deployment", self._name(colour))
        for container in live["spec"]["template"]["spec"]["containers"]:
            if container["name"] == colour:
                container["image"] = image
        self.world.server.update(live, "kubectl-set")
        self._note("Deployment", self._name(colour), "image", image)

    def set_node_selector(self, colour: str, value: str | None) -> None:
        selector = {"disk": value} if value else None
        # A merge patch of a map merges: take it away first, so that the whole is theirs.
        for wanted in (None, selector):
            edit(COLOURS[colour], in_pods(nodeSelector=wanted))(self.people)
        self._hold("Deployment", self._name(colour), "nodeSelector", selector)

    def set_selector(self, phase: str) -> None:
        select(phase)(self.people)
        live = self.world.the("Service")
        self._note("Service", "demo", "selector", live["spec"]["selector"])

    def set_target_port(self, port: int) -> None:
        live = self.world.the("Service", "demo")
        for entry in live["spec"]["ports"]:
            if entry["port"] == 80:
                entry["targetPort"] = port
        self.world.server.update(live, "kubectl-edit")
        self._note("Service", "demo", "targetPort", port)

    def set_label(self, colour: str, value: str | None) -> None:
        label(COLOURS[colour], value)(self.people)
        self._hold("Deployment", self._name(colour), "label", value)

    def scale(self, colour: str, replicas: int) -> None:
        scale(COLOURS[colour], replicas)(self.people)
        self._note("Deployment", self._name(colour), "replicas", replicas)

    def delete_child(self, kind: str, colour: str) -> None:
        self.world.delete(kind, "demo" if kind == "Service" else self._name(colour))

    def orphan(self, colour: str) -> None:
        edit(COLOURS[colour], {"metadata": {"ownerReferences": None}})(self.people)

    def meddle_with_status(self, route_to: str) -> None:
        live = self.world.the("BlueGreen")
        status = {**live.get("status", {}), "routeTo": route_to}
        self.world.server.update({**live, "status": status}, "meddler", "status")

    def replace_status(self) -> None:
        live = self.world.the("BlueGreen")
        self.world.server.update({**live, "status": {"routeTo": "Blue"}}, "original", "status")

    def wipe_managed_fields(self, colour: str) -> None:
        edit(COLOURS[colour], {"metadata": {"managedFields": [{}]}}, "wiper")(self.people)

    # --- the cluster --------------------------------------------------------------------------

    def roll_out(self, colour: str, available: int) -> None:
        self.world.make_ready(colour, available=available)

    def collect(self) -> None:
        self.world.server.collect()

    # --- looks --------------------------------------------------------------------------------

    def overwritten(self) -> list[Any]:
        """What somebody wrote into an object that is still there, and is not there any more."""
        lost = []
        for (kind, name, uid, path), value in self.wrote.items():
            live = self.world.get(kind, name)
            if live is not None and live["metadata"]["uid"] == uid:
                found = _read(live, path, name)
                if found != value:
                    lost.append((kind, name, path, value, found))
        return lost


def _read(live: Object, path: str, name: str) -> Any:
    spec = live["spec"]
    template = spec.get("template", {}).get("spec", {})
    colour = next((c for c in COLOURS if c in name), "")
    match path:
        case "image":
            return next(c.get("image") for c in template["containers"] if c["name"] == colour)
        case "nodeSelector":
            return template.get("nodeSelector")
        case "selector":
            return spec["selector"]
        case "targetPort":
            return next(p.get("targetPort") for p in spec["ports"] if p["port"] == 80)
        case "replicas":
            return spec["replicas"]
        case _:
            return live["metadata"].get("labels", {}).get("hedgerow.dev/controller")


def declared(live: Object) -> dict[tuple[str, str], tuple[Any, str]]:
    """What a BlueGreen declares at the paths that people edit, and how these paths print."""
    spec = copy.deepcopy(live["spec"])
    found: dict[tuple[str, str], tuple[Any, str]] = {}
    for colour in COLOURS:
        pod = spec.get(f"{colour}Spec")
        if pod is None:
            continue
        name = f"Deployment/demo{colour}-deployment"
        root = ".spec.template.spec"
        (container,) = pod["containers"]
        found[name, "image"] = (container["image"], f'{root}.containers[name="{colour}"].image')
        if "nodeSelector" in pod:
            found[name, "nodeSelector"] = (pod["nodeSelector"], f"{root}.nodeSelector")
        found[name, "label"] = ("bluegreen", ".metadata.labels")
    for port in spec.get("ports", ()):
        if port["port"] == 80 and "targetPort" in port:
            path = '.spec.ports[port=80,protocol="TCP"].targetPort'
            found["Service/demo", "targetPort"] = (port["targetPort"], path)
    return found


def unreported(world: World) -> list[Any]:
    """Differences between what is declared and what is there that no status tells of."""
    live = world.get("BlueGreen")
    if live is None or "deletionTimestamp" in live["metadata"] or world.condition("Stalled"):
        return []
    told = world.contested()
    silent = []
    for (target, what), (want, path) in declared(live).items():
        kind, _, name = target.partition("/")
        child = world.get(kind, name)
        if child is None:
            silent.append((target, "is missing"))
        elif (there := _read(child, what, name)) != want and not any(
            o == target and f"{p}.".startswith(path) for o, p, _ in told
        ):
            silent.append((target, path, want, there))
    return silent
