"""The promise of `hedgerow plan`: what it says equals what then happens, whatever is planned."""

from __future__ import annotations

import json
import secrets
import subprocess
from datetime import timedelta
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from controllers.subject import Subject
from controllers.worlds import SUBJECTS
from hedgerow.cli.plan.planner import Planner
from hedgerow.cli.plan.submission import UserApply
from hedgerow.kube.client import connect
from hedgerow.objects import ObjectRef, metadata
from hedgerow.plan.yield_and_claim import CLAIM, YIELD
from hedgerow.runtime.clock import SystemClock
from hedgerow.sandbox.cluster import Sandbox
from hedgerow.testing.api import Api, Object
from support.cluster.bluegreens import World
from support.operator.planned import FixedClock, Operator, Told, foretold, happened

pytestmark = pytest.mark.cluster

USER = "kubectl"
WAYS = ("steal", "steal", "steal", "label", "scale", "delete", "unlabel")
EDITS = st.lists(st.tuples(st.sampled_from(WAYS), st.integers(0, 3)), max_size=3)
TERMS = st.sampled_from(
    [{}, {CLAIM: "*/*: **"}, {CLAIM: "*/*: **"}, {YIELD: "*/*: **"}, {CLAIM: "*/x: junk junk"}]
)


Drawn = tuple[Object | None, list[tuple[str, int]], Object | None, Object]


class Trial:
    """One resource in a namespace of its own: planned first, then let loose."""

    def __init__(self, api: Api, sandbox: Sandbox, subject: Subject, met: set[str]) -> None:
        self.api = api
        self.kubeconfig = str(sandbox.kubeconfig)
        self.kubectl = str(sandbox.kubectl)
        self.subject = subject
        self.met = met
        self.namespace = api.namespace(f"plan-{secrets.token_hex(5)}")
        World(api, self.namespace).allow_claims()
        # Before any resource comes to be: nothing new is due.
        self.clock = FixedClock(SystemClock().now().replace(microsecond=0) - timedelta(minutes=1))

    def manifest(self, drawn: Object, annotations: Object | None = None) -> Object:
        name = drawn["metadata"]["name"]
        meta = {"name": name, "namespace": self.namespace}
        if annotations:
            meta["annotations"] = annotations
        return {k: drawn[k] for k in ("apiVersion", "kind", "spec")} | {"metadata": meta}

    def submit(self, manifest: Object, *, by_client: bool) -> bool:
        """Apply a resource as its user does, by server-side or by client-side apply."""
        if not by_client:
            return self.api.apply(manifest, USER).ok
        command = [self.kubectl, "--kubeconfig", self.kubeconfig, "apply"]
        ended = subprocess.run(
            [*command, "-f", "-"],
            input=json.dumps(manifest),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.met |= {"by client"} if ended.returncode == 0 else set()
        return ended.returncode == 0

    def edit(self, what: str, which: int, children: dict[str, Object]) -> None:
        """Write to a child as somebody else does."""
        if not children:
            return
        name = sorted(children)[which % len(children)]
        child = children[name]
        target = {k: child[k] for k in ("apiVersion", "kind")}
        target["metadata"] = {k: child["metadata"][k] for k in ("name", "namespace")}
        if what == "delete":
            self.api.delete(target)
        elif what == "scale" and child["kind"] == "Deployment":
            self.api.merge(target, {"spec": {"replicas": 3}}, "kubectl", "scale").must()
        elif what == "unlabel":
            labels = {"metadata": {"labels": {"hedgerow.dev/controller": None}}}
            self.api.merge(target, labels, "other").must()
        elif what == "steal" and child["kind"] in STOLEN:
            self.api.merge(target, STOLEN[child["kind"]](child), "other", kind="strategic-merge")
        else:
            self.api.merge(target, {"metadata": {"labels": {"x": "y"}}}, "other").must()

    async def run(
        self,
        first: Object | None,
        edits: list[tuple[str, int]],
        second: Object,
        by_client: bool,
    ) -> None:
        """Bring the first about, edit its children, plan the second, and let it happen.

        `by_client`: both by `kubectl apply`, else by server-side apply.
        """
        controller, name = self.subject.controller, second["metadata"]["name"]
        async with connect(kubeconfig=self.kubeconfig) as cluster:
            operator = Operator(cluster, controller, self.clock, self.namespace)
            before: dict[str, Object] = {}
            made = first is not None and self.submit(first, by_client=by_client)
            if first is not None and made:
                await operator.settle(name)
                stored = self.api.get(first).must()
                for what, which in edits:
                    self.edit(what, which, await operator.children(metadata(stored)["uid"]))
                before = await operator.children(metadata(stored)["uid"])
                before[f"{controller.resource.api.kind}/{name}"] = self.api.get(first).must()
                self.clock.move(timedelta(hours=1))
            applier = UserApply(server_side=not by_client)
            planner = Planner(cluster, self.clock, applier=applier)
            plan = await planner.of_manifest(controller, second)
            if not self.submit(second, by_client=by_client):
                assert [found.action for found in plan.objects] == ["refused"]
                return
            await operator.settle(name)
            resource = self.api.get(second).must()
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
        must_equal(foretold(plan, uid), happened(before, after, resource, managers))


STOLEN: dict[str, Any] = {
    "Deployment": lambda child: {
        "spec": {
            "template": {
                "spec": {
                    "containers": [
                        {
                            "name": child["spec"]["template"]["spec"]["containers"][0]["name"],
                            "image": "stolen:1",
                        }
                    ]
                }
            }
        }
    },
    "Service": lambda _: {"spec": {"selector": {"stolen": "yes"}}},
    "PodDisruptionBudget": lambda _: {"spec": {"maxUnavailable": 2}},
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


ROUNDS = 5
"""Of examples, at most."""
COMMON = {"created", "configured", "by client"}
RARER = {"deleted", "contested", "claimed", "yielded"}
"""Of which the examples have to bring about some, or the promise would be an empty one."""


@pytest.mark.usefixtures("same_everywhere")
@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_what_is_planned_is_what_then_happens(subject: Subject, sandbox, api: Api):
    met: set[str] = set()
    # Mostly something is there already: what others did to it is what may be told wrongly.
    first = st.one_of(st.none(), subject.resources, subject.resources)
    pairs = st.tuples(first, EDITS, st.none() | subject.resources, TERMS)
    trials = st.tuples(pairs, st.booleans())

    @settings(
        max_examples=15,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(trials)
    def holds(drawn: tuple[Drawn, bool]) -> None:
        (first, edits, second, terms), by_client = drawn
        second = second or first
        if second is None:
            return
        trial = Trial(api, sandbox, subject, met)
        name = second["metadata"]["name"]
        if first is not None:
            first = trial.manifest({**first, "metadata": {"name": name}})
        anyio.run(trial.run, first, edits, trial.manifest(second, terms), by_client)

    for number in range(ROUNDS):
        seed(number)(holds)()
        if met >= COMMON and (len(met & RARER) > 1 or subject.lasting):
            return
    pytest.fail(f"the examples brought about no more than {met}")


def test_the_words_of_plan_and_cluster_can_tell_differences_apart():
    ref = ObjectRef(SUBJECTS[0].controller.owns[0].api, "n", "a")
    told = Told({str(ref): ("created", frozenset())})

    with pytest.raises(AssertionError):
        must_equal(told, Told({str(ref): ("deleted", frozenset())}))
