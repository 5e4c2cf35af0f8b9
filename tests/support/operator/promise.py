"""Promise: a resource is planned first, then let loose, and what is said is what then happens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from controllers.subject import Subject
from hedgerow.kube.cluster import Cluster
from hedgerow.objects import metadata
from hedgerow.plan.yield_and_claim import CLAIM, YIELD
from hedgerow_tools.planning.dry_run import UserApply
from hedgerow_tools.planning.resource_forecasts import ResourceForecaster
from model.programs import World
from support.operator.planned import FixedClock, Operator, Told, foretold, happened

Object = dict[str, Any]
USER = "kubectl"
WAYS = ("steal", "steal", "steal", "label", "scale", "delete", "unlabel")
EDITS = st.lists(st.tuples(st.sampled_from(WAYS), st.integers(0, 3)), max_size=3)
TERMS = st.sampled_from(
    [{}, {CLAIM: "*/*: **"}, {CLAIM: "*/*: **"}, {YIELD: "*/*: **"}, {CLAIM: "*/x: junk junk"}]
)
COMMON = frozenset({"created", "configured"})
RARER = frozenset({"deleted", "contested", "claimed", "yielded"})
"""Of which the examples have to bring about some, or the promise would be an empty one."""

Drawn = tuple[Object | None, list[tuple[str, int]], Object | None, Object]


def drawn(subject: Subject) -> st.SearchStrategy[Drawn]:
    """Draw what is there first, what others do to its children, what is planned, and its terms."""
    # Mostly something is there already: what others did to it is what may be told wrongly.
    first = st.one_of(st.none(), subject.resources, subject.resources)
    return st.tuples(first, EDITS, st.none() | subject.resources, TERMS)


@dataclass
class Trial:
    """One resource in a namespace of its own; `met` is what came about so far."""

    subject: Subject
    cluster: Cluster
    world: World
    clock: FixedClock
    namespace: str
    met: set[str] = field(default_factory=set[str])

    async def run(self, found: Drawn) -> None:
        """Bring the first about, edit its children, plan the second, and let it happen."""
        first, edits, second, terms = found
        second = second or first
        if second is None:
            return
        name = second["metadata"]["name"]
        planned = self._manifest(second, name, terms)
        controller = self.subject.controller
        operator = Operator(self.cluster, controller, self.clock, self.namespace)
        before: dict[str, Object] = {}
        if first is not None and self._submit(manifest := self._manifest(first, name)):
            await operator.settle(name)
            uid = metadata(self._stored(manifest))["uid"]
            for what, which in edits:
                self._edit(what, which, await operator.children(uid))
            before = await operator.children(uid)
            before[f"{controller.resource.api.kind}/{name}"] = self._stored(manifest)
            self.clock.move(timedelta(hours=1))
        applier = UserApply()
        forecaster = ResourceForecaster(self.cluster, self.clock, applier=applier)
        plan = await forecaster.of_manifest(controller, planned)
        if not self._submit(planned):
            assert [found.action for found in plan.objects] == ["refused"]
            return
        await operator.settle(name)
        resource = self._stored(planned)
        after = await operator.children(metadata(resource)["uid"])
        after[f"{controller.resource.api.kind}/{name}"] = resource
        self.met |= {found.action for found in plan.objects}
        self.met |= {"contested"} if plan.contested else set()
        self.met |= {"claimed"} if plan.claims else set()
        self.met |= {"yielded"} if plan.yields else set()
        managers = {
            "": f"hedgerow-{controller.name}",
            controller.resource.api.kind: applier.manager,
        }
        uid = metadata(resource)["uid"]
        apis = (controller.resource.api, *(kind.api for kind in controller.owns))
        known = {api.kind: await forecaster.structures.of(api) for api in apis}
        must_equal(foretold(plan, uid), happened(before, after, resource, managers, known))

    def _manifest(self, body: Object, name: str, annotations: Object | None = None) -> Object:
        meta = {"name": name, "namespace": self.namespace}
        if annotations:
            meta["annotations"] = annotations
        return {key: body[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": meta}

    def _submit(self, manifest: Object) -> bool:
        """Apply a resource as its user does; return whether it was taken."""
        return self.world.apply(manifest, USER).body is not None

    def _stored(self, manifest: Object) -> Object:
        found = self.world.get(manifest)
        assert found is not None
        return found

    def _edit(self, what: str, which: int, children: dict[str, Object]) -> None:
        """Write to a child as somebody else does."""
        if not children:
            return
        child = children[sorted(children)[which % len(children)]]
        target = {key: child[key] for key in ("apiVersion", "kind")}
        target["metadata"] = {key: child["metadata"][key] for key in ("name", "namespace")}
        if what == "delete":
            self.world.delete(target)
        elif what == "scale" and child["kind"] == "Deployment":
            self.world.merge(target, {"spec": {"replicas": 3}}, "kubectl", "scale").must()
        elif what == "unlabel":
            labels = {"metadata": {"labels": {"hedgerow.dev/controller": None}}}
            self.world.merge(target, labels, "other").must()
        elif what == "steal" and child["kind"] in STOLEN:
            self.world.merge(target, {"spec": STOLEN[child["kind"]](child["spec"])}, "other")
        else:
            self.world.merge(target, {"metadata": {"labels": {"x": "y"}}}, "other").must()


def _other_image(spec: Object) -> Object:
    first, *rest = spec["template"]["spec"]["containers"]
    containers = [{**first, "image": "stolen:1"}, *rest]
    return {"template": {"spec": {"containers": containers}}}


STOLEN: dict[str, Callable[[Object], Object]] = {
    "Deployment": _other_image,
    "Service": lambda _: {"selector": {"stolen": "yes"}},
    "PodDisruptionBudget": lambda _: {"maxUnavailable": 2},
}


def must_equal(said: Told, seen: Told) -> None:
    """Fail where a plan and what happened differ, object by object."""
    assert {n: a for n, (a, _) in said.objects.items()} == {
        n: a for n, (a, _) in seen.objects.items()
    }
    for name, (_, lines) in said.objects.items():
        if seen.objects[name][0] != "deleted":
            assert lines == seen.objects[name][1], name
    assert said.contested == seen.contested
    assert said.conditions == seen.conditions
