"""Checked: scenarios of a BlueGreen that is checked, overlaps and is watched.

Steps play who would: the kubelet, and the controllers of Deployments, Jobs and EndpointSlices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from faults.scenario import (
    CONTROLLER_MANAGER,
    JOBS,
    Object,
    People,
    Step,
    apply,
    at,
    both,
    contested,
    count,
    finish,
    give_back,
    jobs,
    observed,
    removal,
    roll_out,
    rolling_out,
    running,
    scale,
    take,
    target,
    value_at,
)

DEMO = target("app.demo.kakao.com/v1", "BlueGreen", "demo")
BLUE, GREEN = (target("apps/v1", "Deployment", f"demo{c}-deployment") for c in ("blue", "green"))
ROUTE, PREVIEW = (target("v1", "Service", name) for name in ("demo", "demo-preview"))
KUBELET = "kubelet"
_SERVICE, _PHASE = "kubernetes.io/service-name", "app.kubernetes.io/phase"
_PODS = {
    name: {"restartPolicy": "Never", "containers": [{"name": name, "image": f"example/{name}:1"}]}
    for name in ("front", "smoke")
}
_CHECKS = [
    # After a fault people wait for several minutes; no check may end by itself meanwhile.
    {"name": name, "timeoutSeconds": 3600, "job": {"spec": {"template": {"spec": pod}}}}
    for name, pod in _PODS.items()
]
_PORTS = [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080}]


def pods(name: str, image: str = "example/echo:1", **container: Any) -> Object:
    """Return a PodSpec of one container."""
    return {"containers": [{"name": name, "image": image, **container}]}


def serve(people: People) -> None:
    """Have every colour's Deployment rolled out, with a pod that is ready."""
    roll_out(BLUE, GREEN)(people)
    for deployment in (BLUE, GREEN):
        live = people.get(deployment)
        if not live:
            continue
        template = live["spec"]["template"]
        pod = target("v1", "Pod", f"{deployment['metadata']['name']}-5f-x")
        labels = template["metadata"]["labels"]
        containers = [{k: one[k] for k in ("name", "image")} for one in pods("c")["containers"]]
        pod["metadata"]["labels"] = labels
        people.apply({**pod, "spec": {"containers": containers}}, KUBELET)
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        status = {"status": {"phase": "Running", "conditions": [ready]}}
        people.edit(pod, status, KUBELET, subresource="status")
    follow(people)


def follow(people: People) -> None:
    """Have the EndpointSlices follow the Services."""
    pods = people.every({"apiVersion": "v1", "kind": "Pod"})
    for service in (ROUTE, PREVIEW):
        live = people.get(service)
        if not live:
            continue
        wanted = live["spec"]["selector"].items()
        chosen = [pod for pod in pods if wanted <= pod["metadata"].get("labels", {}).items()]
        name = live["metadata"]["name"]
        endpoints = [
            {
                "addresses": [f"10.1.0.{number}"],
                "conditions": {"ready": True},
                "targetRef": {"kind": "Pod", "name": pod["metadata"]["name"]},
            }
            for number, pod in enumerate(chosen, 1)
        ]
        identity = target("discovery.k8s.io/v1", "EndpointSlice", f"{name}-x")
        labels = {**live["metadata"].get("labels", {}), _SERVICE: name}
        identity["metadata"]["labels"] = labels
        body = {**identity, "addressType": "IPv4", "endpoints": endpoints}
        people.apply(body, CONTROLLER_MANAGER, force=True)


def fail(people: People) -> None:
    """Have the Job of the check `smoke` fail."""
    [job] = [job for job in running(people) if _container(job) == "smoke"]
    began = {"lastProbeTime": None, "lastTransitionTime": job["metadata"]["creationTimestamp"]}
    why = {"status": "True", "reason": "BackoffLimitExceeded", "message": "it failed", **began}
    conditions = [{"type": kind, **why} for kind in ("FailureTarget", "Failed")]
    status = {"startTime": began["lastTransitionTime"], "failed": 1, "conditions": conditions}
    identity = {**JOBS, "metadata": {"name": job["metadata"]["name"]}}
    people.edit(identity, {"status": status}, CONTROLLER_MANAGER, subresource="status")


def _container(job: Object) -> str:
    return job["spec"]["template"]["spec"]["containers"][0]["name"]


def _phase(name: str) -> Callable[[People], object]:
    return at(DEMO, "status", "phase", is_=name)


def _selects(phase: str | None) -> Callable[[People], object]:
    return both(at(ROUTE, "spec", "selector", _PHASE, is_=phase), lambda p: p.get(ROUTE))


def _routed(phase: str) -> Callable[[People], object]:
    return both(_phase("Routed"), _selects(phase), observed(DEMO))


def bluegreen_checked(overlap: int = 1) -> Iterator[Step]:
    """Two checks, one of which fails at first, an overlap there and back, and a bake."""
    spec: dict[str, Any] = {
        "routeTo": "Blue",
        "blueSpec": pods("blue"),
        "greenSpec": pods("green"),
        "promotion": "WhenChecked",
        "checks": _CHECKS,
        "switch": "Overlap",
        "overlapSeconds": overlap,
        "bakeSeconds": overlap + 1,
        "bakeUnavailableSeconds": 1,
        "ports": _PORTS,
    }
    nothing = both(observed(DEMO, Ready="False/WaitingForAvailability"), at(ROUTE, is_=None))
    yield Step("created", apply(DEMO, **spec), both(nothing, lambda people: people.get(PREVIEW)))
    checks = observed(DEMO, Ready="False/Checking", Checked="False/Checking")
    checking = both(checks, count(running, 2))
    yield rolling_out("rolled out", checking, BLUE, GREEN, act=serve)
    # What a check said is lost with the store in which it was: no step that ends one is undone.
    yield Step("scaled meanwhile", scale(GREEN, 2), checking)
    yield Step("checked", finish, both(_routed("Blue"), count(jobs, 0)))
    yield from _contested()

    def flip(people: People) -> None:
        serve(people)
        apply(DEMO, **{**spec, "routeTo": "Green"})(people)

    yield Step("flipped", flip, both(checking, _selects("Blue")))
    yield Step("a check failed", fail, both(_phase("CheckFailed"), _selects("Blue")))
    changed = {**spec, "routeTo": "Green", "greenSpec": pods("green", "example/echo:2")}
    waiting = both(_phase("WaitingForAvailability"), _selects("Blue"), count(jobs, 0))
    yield Step("changed, with checks to come", apply(DEMO, **changed), waiting)
    yield rolling_out("rolled out again", both(checking, _selects("Blue")), BLUE, GREEN, act=serve)
    yield Step("checked again", finish, both(_phase("Overlapping"), _selects(None)))
    yield Step("both are endpoints", follow, _routed("Green"))

    def change(people: People) -> None:
        follow(people)
        apply(DEMO, **{**changed, "greenSpec": pods("green", "example/echo:3")})(people)

    yield Step(
        "changed while routed",
        change,
        both(observed(DEMO, Ready="False/TemplateNotChecked"), _selects("Green")),
    )
    yield Step(
        "flipped back",
        apply(DEMO, **{**changed, "routeTo": "Blue"}),
        both(_phase("Overlapping"), _selects(None)),
    )
    yield Step("reversed in the middle", apply(DEMO, **changed), _routed("Green"))
    yield Step(
        "flipped back again",
        apply(DEMO, **{**changed, "routeTo": "Blue"}),
        both(_phase("Overlapping"), _selects(None)),
    )
    yield Step("both are endpoints again", follow, _routed("Blue"))
    yield removal(DEMO, "bluegreen")


def bluegreen_baked() -> Iterator[Step]:
    """A colour that is held, then routed, breaks while it is watched, and is not tried again."""
    spec: dict[str, Any] = {
        "routeTo": "Blue",
        "blueSpec": pods("blue"),
        "greenSpec": pods("green"),
        "promotion": "WhenAvailable",
        "hold": True,
        "bakeSeconds": 86400,
        "bakeUnavailableSeconds": 2,
        "ports": _PORTS,
    }
    first = both(observed(DEMO, Ready="False/Unavailable"), _selects("Blue"))
    yield Step("created", apply(DEMO, **spec), first)
    ready = both(_routed("Blue"), observed(DEMO, Ready="True/Serving"))
    yield rolling_out("rolled out", ready, BLUE, GREEN, act=serve)
    yield from _contested()
    spec = {**spec, "routeTo": "Green"}

    def promote(people: People) -> None:
        template = value_at(people.get(DEMO), ("status", "switch", "template"))
        people.apply({**DEMO, "spec": {"promoted": template}}, "hedgerow-promote", force=True)

    held = both(_phase("Held"), _selects("Blue"), observed(DEMO, Ready="False/Held"))
    yield Step("flipped", apply(DEMO, **spec), held)
    baking = both(_phase("Baking"), _selects("Green"), observed(DEMO, Ready="True/Baking"))
    yield Step("promoted", promote, baking)
    back = both(_phase("RolledBack"), _selects("Blue"), observed(DEMO, Ready="False/RolledBack"))
    yield Step("green breaks", _break, back)
    yield rolling_out("green is mended", back, BLUE, GREEN, act=serve)
    spec = {**spec, "greenSpec": pods("green", "example/echo:2")}
    waiting = both(_phase("WaitingForAvailability"), _selects("Blue"))
    yield Step("changed", apply(DEMO, **spec), waiting)
    yield rolling_out("rolled out again", held, BLUE, GREEN, act=serve)
    yield Step("promoted again", promote, baking)
    yield Step("its Service deleted", lambda people: people.delete(ROUTE), baking)
    yield removal(DEMO, "bluegreen")


def _contested() -> Iterator[Step]:
    theirs = {"spec": {"ports": [{"port": 80, "protocol": "TCP", "targetPort": 7070}]}}
    yield contested(DEMO, take(ROUTE, theirs))
    yield Step("given back", give_back(ROUTE), observed(DEMO, Contested="", Ready="True/Serving"))


def _break(people: People) -> None:
    """Have no pod of Green be available."""
    gone = {"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable"}
    counts = {"readyReplicas": 0, "availableReplicas": 0, "unavailableReplicas": 1}
    for message in ("", "Deployment does not have minimum availability."):
        body = {"status": {**counts, "conditions": [{**gone, "message": message}]}}
        people.edit(GREEN, body, CONTROLLER_MANAGER, subresource="status")
