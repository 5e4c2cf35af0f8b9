"""Switching: a BlueGreen in a small world of its own, in which every write and step is seen.

The world has what the API server and the nodes do: applies, a rollout, endpoints, Jobs that end. A
pass may be cut off after any of its writes, as by a crash.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

from hedgerow.contract import Answers, Apply, Create, Desired, Notice, Observed
from hedgerow.controllers.bluegreen.controller import WATCHED, compose
from hedgerow.controllers.bluegreen.scene import CHECKING
from hedgerow_schemas.base import View
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.builtin import Deployment, EndpointSlice, Pod, Service
from hedgerow_schemas.job import Job

Object = dict[str, Any]
Change = Callable[[Object, Object], object]
"""A change of a template, and of our managed fields of it."""

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
COLOURS = ("Blue", "Green")
CHECKED: Object = {
    "promotion": "WhenChecked",
    "checks": [{"name": "smoke", "job": {"spec": {"template": {"spec": {"containers": []}}}}}],
}
SELECTED = "app.kubernetes.io/phase"
MANAGER = "hedgerow-bluegreen"
"""The field manager of the operator."""
FOREIGN: Object = {"app": "maintenance"}


def pods(image: str) -> Object:
    return {"containers": [{"name": "c", "image": image}]}


def ours(template: Object) -> Object:
    """Return the managed fields of a template that was applied as a whole."""
    containers = {
        f'k:{{"name":"{one["name"]}"}}': {".": {}, **{f"f:{field}": {} for field in one}}
        for one in template["spec"].get("containers", [])
    }
    of_spec = {f"f:{field}": {} for field in template["spec"]} | {"f:containers": containers}
    labels = {f"f:{name}": {} for name in template["metadata"]["labels"]}
    return {"f:metadata": {"f:labels": labels}, "f:spec": of_spec}


class SwitchWorld:
    """One BlueGreen named demo, and all there is of it."""

    def __init__(self, **spec: Any) -> None:
        both = {"blueSpec": pods("v1"), "greenSpec": pods("v2")}
        self.spec: Object = deepcopy({"routeTo": "Blue", **both, **spec})
        self.status: Object = {}
        self.now = START
        self.ahead = timedelta()
        """By how much the operator's clock is ahead of the API server's."""
        self.deployments: dict[str, Object] = {}
        self.services: dict[str, Object] = {}
        self.jobs: dict[str, Object] = {}
        self.births = 0
        self.created: dict[tuple[str, str], str] = {}
        """What the operator was answered of Jobs, and has not recorded yet; a crash loses it."""
        self.down: set[str] = set()
        """The colours whose pods are not ready."""
        self.late: set[str] = set()
        """The colours whose pods are in no EndpointSlice yet."""
        self.old: set[str] = set()
        """The colours of which EndpointSlices still show a pod of another template."""
        self.replicas: dict[str, int] = {}
        """How many pods of a colour are wanted, where it is not one."""
        self.conditions: list[Object] = []
        """Further conditions of the Deployments whose pods are not ready."""
        self.managed: dict[str, list[Object]] = {}
        """Managed fields, by the name of a Service."""
        self.extra: list[Object] = []
        """Further pods."""
        self.is_held = False
        """Whether somebody else holds the Service's selector."""
        self.history: list[tuple[str, ...]] = []
        """What the Service has selected, in order."""
        self.told: list[Notice] = []
        """The Events of all passes."""

    @property
    def resource(self) -> BlueGreen:
        meta = {"name": "demo", "namespace": "ns", "uid": "u"}
        found = {"metadata": meta, "spec": deepcopy(self.spec), "status": deepcopy(self.status)}
        return BlueGreen.model_validate(found)

    @property
    def selected(self) -> tuple[str, ...]:
        """The colours that the Service selects."""
        return self.selects("demo")

    @property
    def phase(self) -> str:
        return self.status.get("phase", "")

    def selects(self, name: str) -> tuple[str, ...]:
        if name not in self.services:
            return ()
        selector = self.services[name]["spec"]["selector"]
        if "app.kubernetes.io/name" not in selector:
            return ()
        phase = selector.get(SELECTED)
        return (phase,) if phase else COLOURS

    def image(self, colour: str) -> str:
        """What a colour's first container is made of."""
        template = self.deployments[colour]["spec"]["template"]
        return template["spec"]["containers"][0]["image"]

    def template(self, colour: str) -> str:
        """What a colour's pods are made of, as text."""
        live = self.deployments.get(colour)
        return repr(live["spec"]["template"]) if live else ""

    def why(self, kind: str = "Ready") -> str:
        return next(c["message"] for c in self.status["conditions"] if c["type"] == kind)

    def observed(self) -> Observed:
        children = [
            *(Deployment(self._deployment(colour)) for colour in self.deployments),
            *(Service(self._named(name, body)) for name, body in self.services.items()),
            *(Job(self._named(name, body)) for name, body in self.jobs.items()),
        ]
        related = [*map(Pod, (*self._pods(), *self.extra)), *map(EndpointSlice, self._slices())]
        return Observed(
            self.now + self.ahead,
            tuple(children),
            tuple(related),
            field_manager=MANAGER,
            server_time=self.now,
            answers=Answers("ns", created=dict(self.created)),
        )

    def compose(self) -> Desired:
        return compose(self.resource, self.observed())

    def do_pass(self, cut: int = 1000) -> Desired:
        """One pass, of which only the first `cut` writes are made; the status is the last one."""
        desired, answered = self.compose(), dict(self.created)
        self.told += desired.events
        # The Service moves only when no write to a Deployment is to be made.
        order = sorted(desired.children, key=lambda child: child.kind is Service)
        writes = [child for child in order if isinstance(child, Apply | Create)]
        for child in writes[:cut]:
            self._write(child)
        if cut <= len(writes):
            self.created.clear()
        if cut < len(writes):
            return desired
        kept = {child.name for child in desired.children}
        self.jobs = {name: job for name, job in self.jobs.items() if name in kept}
        self.services = {name: body for name, body in self.services.items() if name in kept}
        for colour in COLOURS:
            if f"demo{colour.lower()}-deployment" not in kept:
                self.deployments.pop(colour, None)
        if cut > len(writes) and desired.status is not None:
            self.status = desired.status.wire()
            for child in answered:
                del self.created[child]
        return desired

    def settle(self, passes: int = 30) -> SwitchWorld:
        """Run passes until one changes nothing, and let the time pass after which checks begin.

        While a Job of theirs is there, no time passes: it would run out.
        """
        for _ in range(passes):
            before = deepcopy((self.status, self.services, self.jobs, self.deployments))
            wait = self.do_pass().requeue_after
            if before == (self.status, self.services, self.jobs, self.deployments):
                if wait is None or self.phase not in CHECKING or self.jobs:
                    return self
                self.now += wait
        raise AssertionError(f"it does not come to rest: {self.status}")

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def finish(self, outcome: str = "Complete") -> SwitchWorld:
        """End every Job that has not ended."""
        for body in self.jobs.values():
            body.setdefault("status", {"conditions": [{"type": outcome, "status": "True"}]})
        return self

    def _write(self, child: Apply | Create) -> None:
        body = deepcopy(child.fields)
        if child.kind is Deployment:
            colour = "Blue" if "blue" in child.name else "Green"
            others = self.deployments.get(colour, {}).get("others", [])
            template = body["spec"]["template"]
            fields = ours(template)
            self.deployments[colour] = {**body, "others": others, "fields": fields}
            for change in others:
                change(template, fields)
        elif child.kind is Service:
            if child.name == "demo" and self.is_held and "demo" in self.services:
                body["spec"]["selector"] = self.services["demo"]["spec"]["selector"]
            self.services[child.name] = body
            if child.name == "demo" and (not self.history or self.history[-1] != self.selected):
                self.history.append(self.selected)
        elif child.name not in self.jobs:
            self.created["Job", child.name] = self.make_job(child.name, body, MANAGER)

    def make_job(self, name: str, body: Object, manager: str) -> str:
        """Somebody creates a Job; return its uid."""
        self.births += 1
        uid = f"uid-{self.births}"
        entry = {"manager": manager, "operation": "Apply", "fieldsV1": {"f:spec": {}}}
        meta = {**body.get("metadata", {}), "uid": uid, "managedFields": [entry]}
        self.jobs[name] = {**body, "metadata": meta}
        return uid

    def change(self, colour: str, change: Change) -> None:
        """Let another manager change a colour's template and our managed fields of it, and stay."""
        live = self.deployments[colour]
        live["others"] = [*live["others"], change]
        change(live["spec"]["template"], live["fields"])

    def take(self, selector: Object | None = None) -> None:
        """Another manager sets the Service's selector, and holds it."""
        service = self.services.setdefault("demo", {"spec": {}})
        service["spec"] = {**service["spec"], "selector": dict(selector or FOREIGN)}
        self.is_held = True

    def _named(self, name: str, body: Object) -> Object:
        meta = {**body.get("metadata", {}), "name": name, "namespace": "ns"}
        meta["managedFields"] = self.managed.get(name, meta.get("managedFields", []))
        spec = {"clusterIP": "10.0.0.1", **body["spec"]}
        return {**body, "metadata": meta, "spec": spec}

    def _deployment(self, colour: str) -> Object:
        up = colour not in self.down
        size = self.replicas.get(colour, 1)
        counts = {"replicas": size, "updatedReplicas": size, "availableReplicas": size * up}
        available = {"type": "Available", "status": str(up)}
        body = self.deployments[colour]
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": f"demo{colour.lower()}-deployment",
                "namespace": "ns",
                "managedFields": [
                    {
                        "manager": MANAGER,
                        "operation": "Apply",
                        "fieldsV1": {"f:spec": {"f:template": body["fields"]}},
                    }
                ],
            },
            "spec": {**body["spec"], "replicas": size},
            "status": {**counts, "conditions": [available, *(() if up else self.conditions)]},
        }

    def _pods(self) -> list[Object]:
        up = (colour for colour in self.deployments if colour not in self.down)
        return [self.ready_pod(colour, f"pod-{colour}") for colour in up]

    def ready_pod(self, colour: str, name: str) -> Object:
        labels = self.deployments[colour]["spec"]["selector"]["matchLabels"]
        return {
            "metadata": {"name": name, "namespace": "ns", "labels": labels},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }

    def _slices(self) -> list[Object]:
        return [
            {
                "metadata": {
                    "name": f"{name}-x",
                    "namespace": "ns",
                    "labels": {EndpointSlice.SERVICE: name},
                },
                "endpoints": [
                    {"targetRef": {"name": f"pod-{colour}"}, "conditions": {"ready": True}}
                    for colour in self.selects(name)
                    if colour in self.deployments and not {colour} & (self.down | self.late)
                ]
                + [
                    {"targetRef": {"name": f"old-{colour}"}, "conditions": {"ready": True}}
                    for colour in self.selects(name)
                    if colour in self.old
                ],
            }
            for name, body in self.services.items()
            if View(body).text("metadata", "labels", WATCHED)
        ]


def set_image(image: str) -> Change:
    """Return what `kubectl set image` does to a template, and to our managed fields of it."""

    def change(template: Object, fields: Object) -> None:
        template["spec"]["containers"][0]["image"] = image
        fields["f:spec"]["f:containers"]['k:{"name":"c"}'].pop("f:image", None)

    return change
