"""The promise of `hedgerow plan --field-manager`: what it says is what the real apply does."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from hedgerow.kube.client import connect
from hedgerow.kube.errors import KubeError, from_status
from hedgerow.objects import ObjectRef
from hedgerow.runtime.clock import SystemClock
from hedgerow_schemas.base import ApiResource
from hedgerow_testing.api import Api, Object, Reply
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_tools.fields.diff import difference
from hedgerow_tools.planning.forecaster import Forecaster
from hedgerow_tools.planning.objects import ObjectForecaster
from hedgerow_tools.planning.submission import Submission, UserApply
from support.objects.drawn import KINDS, WAYS, WIDGET, must_be_refused, must_equal, told

pytestmark = pytest.mark.cluster

MANAGER = "helm"
OTHERS = ("argo", "flux", MANAGER, MANAGER)
EXAMPLES = 20
"""Few: tests/tools/planning/test_force.py draws widely in memory."""
MUST_OCCUR = {
    "created", "configured", "unchanged", "refused", "contested", "forced", "removed"
}  # fmt: skip


@dataclass
class Trial:
    """One object of a name of its own: brought about, planned, then applied."""

    api: Api
    kubeconfig: str
    ref: ObjectRef
    met: set[str] = field(default_factory=set[str])

    def manifest(self, drawn: Object) -> Object:
        meta = {**drawn.get("metadata", {}), "name": self.ref.name, "namespace": self.ref.namespace}
        api = self.ref.api
        return {**drawn, "apiVersion": api.group_version, "kind": api.kind, "metadata": meta}

    def write(self, manager: str, way: str, drawn: Object) -> None:
        """Write as somebody does; it may be refused."""
        manifest = self.manifest(drawn)
        if way == "update" and self.api.get(manifest).ok:
            self.api.merge(manifest, drawn, manager)
        elif way != "update":
            self.api.apply(manifest, manager, force=way == "force")

    async def holds(self, drawn: Object) -> None:
        """Plan an apply, unforced and forced; then make both, and compare."""
        manifest = self.manifest(drawn)
        async with connect(kubeconfig=self.kubeconfig) as cluster:
            for force in (False, True):
                applier = UserApply(MANAGER, takes=force)
                stored = await cluster.read(self.ref.api, self.ref.name, self.ref.namespace)
                now = SystemClock().now()
                submission = Submission(self.ref, manifest, stored, applier, now)
                said = await submission.dry_run(cluster, absent=False)
                forecaster = Forecaster(cluster, SystemClock(), applier=applier)
                forecast = await ObjectForecaster(forecaster, self.ref.namespace).of(manifest)
                reply = self.api.apply(manifest, MANAGER, force=force)
                assert said.merged == ""
                [found] = forecast.objects
                self.met |= {found.action, *(line.kind for line in found.lines)}
                self.met |= {"forced"} if said.taken else set()
                self.met |= {"contested"} if said.contested else set()
                if not reply.ok:
                    must_be_refused(said, error_of(reply))
                    assert found.action == "refused"
                    continue
                must_equal(said, reply.body)
                structure = await forecaster.structures.of(self.ref.api)
                lines = difference(stored, reply.body, MANAGER, structure)
                assert told(found.lines) == told(lines)
                assert found.action == (
                    "created" if stored is None else "configured" if lines else "unchanged"
                )


def error_of(reply: Reply) -> KubeError:
    return from_status({**reply.body, "code": reply.status})


@pytest.fixture(scope="module")
def place(api: Api) -> str:
    api.apply(WIDGET, "test", force=True).must()
    api.served("plan.example.com/v1")
    return api.namespace("plan-objects")


@pytest.mark.usefixtures("same_everywhere")
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_planned_is_what_the_apply_then_does(
    api: Api, sandbox: Sandbox, place: str, kind: str
):
    """Fact: what the server makes of an apply after any history."""
    group_version, drawn = KINDS[kind]
    path = api.path({"apiVersion": group_version, "kind": kind, "metadata": {"name": "x"}})
    resource = ApiResource(group_version, kind, path.split("/")[-2])
    history = st.lists(st.tuples(st.sampled_from(OTHERS), WAYS, drawn), max_size=4)
    met: set[str] = set()
    numbers = itertools.count()

    @seed(0)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(history, drawn)
    def holds(history: Any, wanted: Object) -> None:
        ref = ObjectRef(resource, place, f"{kind.lower()}-{next(numbers)}")
        trial = Trial(api, str(sandbox.kubeconfig), ref, met)
        for manager, way, body in history:
            trial.write(manager, way, body)
        anyio.run(trial.holds, wanted)

    holds()
    assert met >= MUST_OCCUR
