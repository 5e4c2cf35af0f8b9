"""The promise of `hedgerow plan --field-manager`: what it says is what the real apply does."""

from __future__ import annotations

import copy
import itertools
import logging
import os
import random
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from hedgerow.deploy.manifest import objects_in
from hedgerow.kube.client import connect
from hedgerow.kube.errors import KubeError, from_status
from hedgerow.objects import ObjectRef, metadata
from hedgerow.runtime.clock import SystemClock
from hedgerow_schemas.base import ApiResource
from hedgerow_testing.api import Api, Object, Reply
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_tools.fields.allocated import foreseen
from hedgerow_tools.fields.forecast import Forecast, worst
from hedgerow_tools.fields.relabelling import LAST_APPLIED
from hedgerow_tools.objects.files import texts
from hedgerow_tools.planning.command import EXITS
from hedgerow_tools.planning.dry_run import Submission, UserApply
from hedgerow_tools.planning.helm import Release
from hedgerow_tools.planning.object_forecasts import ObjectForecaster
from hedgerow_tools.planning.resource_forecasts import ResourceForecaster
from support.helm.chart import Helm
from support.helm.programs import HELM_3, HELM_4
from support.objects.drawn import (
    KINDS,
    WAYS,
    WIDGET,
    content,
    holders,
    must_be_refused,
    must_equal,
    told,
)

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
                stored = await cluster.read_object(self.ref.api, self.ref.name, self.ref.namespace)
                now = SystemClock().now()
                submission = Submission(self.ref, manifest, stored, applier, now)
                said = await submission.dry_run(cluster, absent=False)
                forecaster = ResourceForecaster(cluster, SystemClock(), applier=applier)
                forecast = await ObjectForecaster(forecaster, self.ref.namespace).forecast(manifest)
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
                must_say(forecast, stored, reply.body, MANAGER, structure)


def must_say(
    forecast: Forecast, stored: Object | None, real: Object, manager: str, structure: Any
) -> None:
    """Fail unless each value, holder, action, order and the exit code are as foretold."""
    [found] = forecast.objects
    lines = foreseen(stored, real, manager, structure)
    is_changed = stored is None or lines or holders(stored) != holders(real)
    changed = "configured" if is_changed else "unchanged"
    assert told(found.lines) == told(lines), str(forecast)
    assert found.action == ("created" if stored is None else changed), str(forecast)
    assert EXITS[forecast.verdict] == (2 if is_changed else 0)
    differs = stored is not None and value_of(stored) != value_of(real)
    assert stored is None or any(line.is_change for line in found.lines) is differs


def value_of(obj: Object) -> Object:
    """Return what an object says, without what the server counts and client-side apply copies."""
    annotations = {**(metadata(obj).get("annotations") or {}), LAST_APPLIED: ""}
    known = {**metadata(obj), "annotations": annotations, "generation": 0}
    return content({**obj, "metadata": known})


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


ROOT = Path(__file__).parents[2]
GIVEN = os.environ.get("HEDGEROW_BUNDLES", "")
BUNDLES = sorted(Path(GIVEN).iterdir()) if GIVEN else [ROOT / "manifests" / "base"]
"""A folder of bundles that others published, each a file or folder, or one of our own."""
APPLIERS = ("kubectl", "helm", "argocd-controller", "a-name-of-its-own")
"""Not Flux's: before it applies, it takes over what kubectl, which applies here, does not."""
IN_THE_WAY = ("admissionregistration.k8s.io", "apiregistration.k8s.io")
"""Groups whose objects would stand in the way of other requests, since nobody serves them."""
DEFINITION = "CustomResourceDefinition"


@dataclass
class Bundle:
    """The objects of a bundle, which four managers apply and change on a real server."""

    api: Api
    sandbox: Sandbox
    file: Path
    namespace: str
    objects: list[Object]
    drawn: random.Random = field(
        default_factory=lambda: random.Random(0)  # noqa: S311 - the same each time
    )
    met: Counter[str] = field(default_factory=Counter[str])

    def apply(self, *words: str) -> bool:
        """Run `kubectl apply` of all; return whether all were taken."""
        self.file.write_text(yaml.safe_dump_all(self.objects), "utf-8")
        config = yaml.safe_load(self.sandbox.kubeconfig.read_text("utf-8"))
        config["contexts"][0]["context"]["namespace"] = self.namespace  # -n would force it on all
        kubeconfig = self.sandbox.kubeconfig.with_name(self.namespace)
        kubeconfig.write_text(yaml.safe_dump(config), "utf-8")
        line = [str(self.sandbox.kubectl), "--kubeconfig", str(kubeconfig), "apply"]
        ended = subprocess.run(
            [*line, "-f", str(self.file), *words],
            capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
        return ended.returncode == 0

    def begin(self) -> None:
        """Make all by client-side apply, as far as the server takes it; forget the others."""
        for obj in self.objects:
            if metadata(obj).get("namespace"):
                self.api.namespace(metadata(obj)["namespace"])
        self.apply()
        for obj in self.objects:
            if obj["kind"] == DEFINITION:
                self.api.apply(obj, "kubectl")  # it may be too large for the annotation
                for version in (one for one in obj["spec"]["versions"] if one["served"]):
                    self.api.served(f"{obj['spec']['group']}/{version['name']}")
        self.objects = [obj for obj in self.objects if self.is_served(obj)]
        self.apply()
        self.objects = [obj for obj in self.objects if self.api.get(self.placed(obj)).ok]

    def is_served(self, obj: Object) -> bool:
        group_version = obj["apiVersion"]
        root = "apis" if "/" in group_version else "api"
        kinds = self.api.raw("GET", f"/{root}/{group_version}").body.get("resources", ())
        return any(kind["kind"] == obj["kind"] for kind in kinds)

    def placed(self, obj: Object) -> Object:
        return {**obj, "metadata": {"namespace": self.namespace, **metadata(obj)}}

    def scramble(self) -> None:
        """Have each manager write each object with some other values."""
        for obj, manager in itertools.product(map(self.placed, self.objects), APPLIERS):
            way = self.drawn.choice(["apply", "force", "update", "update"])
            changed = self.changed(obj, nulls=way == "update")
            changed["metadata"].setdefault("labels", {})["by"] = manager
            if way == "update":
                reply = self.api.merge(obj, changed, f"{manager}-edit")
            else:
                reply = self.api.apply(changed, manager, force=way == "force")
            self.met[f"{way} {'taken' if reply.ok else 'refused'}"] += 1

    def changed(self, obj: Object, *, nulls: bool) -> Object:
        """Return a manifest with other values at some places; `nulls` stand for what is gone."""
        whole = copy.deepcopy(obj)
        left_out = {"apiVersion", "kind", "metadata", "status"}
        content = {name: value for name, value in whole.items() if name not in left_out}
        if obj["kind"] != DEFINITION:  # a kind that changes would be another matter
            places = list(_places(content))
            for holder, key in self.drawn.sample(places, min(len(places), 2)):
                _change(holder, key, self.drawn, nulls=nulls)
        return {**whole, **content}

    async def planned(self, applier: UserApply) -> tuple[list[Forecast], list[Any]]:
        """Return the forecasts of all, and the structures of their kinds."""
        async with connect(kubeconfig=str(self.sandbox.kubeconfig)) as cluster:
            forecaster = ResourceForecaster(cluster, SystemClock(), applier=applier)
            planner = ObjectForecaster(forecaster, self.namespace)
            found = [await planner.forecast(obj) for obj in self.objects]
            kinds = planner.kinds
            apis: list[Any] = [await kinds.served(one.api_version, one.kind) for one in found]
            return found, [await forecaster.structures.of(api) for api in apis]

    def state(self) -> list[Object]:
        return [self.api.get(self.placed(obj)).must() for obj in self.objects]

    def by_kubectl(self, manager: str, *, force: bool = False) -> None:
        """Plan and compare what `kubectl apply --server-side` does."""
        words = ("--server-side", "--field-manager", manager)
        words += ("--force-conflicts",) if force else ()
        self.holds(UserApply(manager, takes=force), lambda: self.apply(*words))

    def holds(self, applier: UserApply, apply: Callable[[], bool]) -> None:
        """Plan an apply of all, make it, and compare."""
        manager = applier.manager
        forecasts, structures = anyio.run(self.planned, applier)
        before = self.state()
        taken = apply()
        for forecast, structure, old, new in zip(
            forecasts, structures, before, self.state(), strict=True
        ):
            [found] = forecast.objects
            self.met.update([found.action, *(line.kind for line in found.lines)])
            self.met.update({"contested"} if forecast.contested else ())
            self.met.update({"forced"} if forecast.claims else ())
            if found.action == "refused":
                assert told(foreseen(old, new, manager, structure)) == set(), str(forecast)
            else:
                must_say(forecast, old, new, manager, structure)
        assert taken is (EXITS[worst(forecasts)] in {0, 2})


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each place below a value, as what holds it and its key or index."""
    for key in list(value if isinstance(value, dict) else range(len(value))):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def _change(holder: Any, key: Any, drawn: random.Random, *, nulls: bool) -> None:
    try:
        value = holder[key]
    except (IndexError, KeyError):  # what held it is gone
        return
    if isinstance(value, bool):
        holder[key] = not value
    elif isinstance(value, int):
        holder[key] = value + 1
    elif isinstance(value, list) and value[1:]:
        value.reverse()
    elif isinstance(value, str) and drawn.random() < 0.7:
        holder[key] = f"{value}x"
    elif isinstance(holder, dict) and nulls:
        holder[key] = None
    else:
        del holder[key]


@pytest.mark.parametrize("path", BUNDLES, ids=lambda path: path.stem)
def test_a_bundle_that_four_managers_changed_is_planned_as_each_then_applies_it(
    api: Api, sandbox: Sandbox, path: Path, tmp_path: Path
):
    """Fact: what kubectl and the server make of manifests, whoever changed the objects."""
    found = [obj for text in texts(path, deep=True) for obj in objects_in(*text)]
    objects = [one for one in found if not one["apiVersion"].startswith(IN_THE_WAY)]
    place = api.namespace(f"bundle-{path.stem}")
    bundle = Bundle(api, sandbox, tmp_path / "bundle.yaml", place, objects)
    bundle.begin()
    for manager in APPLIERS:
        bundle.scramble()
        bundle.by_kubectl(manager)
        bundle.by_kubectl(manager, force=True)
    bundle.by_kubectl(manager)

    logging.getLogger(__name__).info(
        "%s: %d of %d objects, %s", path.stem, len(bundle.objects), len(found), dict(bundle.met)
    )
    assert bundle.met.keys() >= {"configured", "unchanged", "contested", "forced"}


CHART = """
apiVersion: v1
kind: ConfigMap
metadata: {name: shop}
data: {mode: {{ .Values.mode }}, {{ .Values.key }}: "1"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, labels: {app: shop}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: web, image: "nginx:1.29"}]}
"""


def test_a_release_is_planned_as_helm_then_upgrades_it(
    api: Api, sandbox: Sandbox, helm_programs: Mapping[str, Path], tmp_path: Path
):
    """Fact: what Helm 4 adds, and that it takes over what Helm 3 had only if told to apply."""
    place, chart = api.namespace("plan-helm"), tmp_path / "shop"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: shop, version: 0.1.0}", "utf-8")
    (chart / "templates" / "all.yaml").write_text(CHART, "utf-8")
    three, four = (
        Helm(helm_programs[name], tmp_path, sandbox.kubeconfig) for name in (HELM_3, HELM_4)
    )
    shop = UserApply("helm", release=Release("shop", place))
    bundle = Bundle(api, sandbox, tmp_path / "bundle.yaml", place, [])

    def run(helm: Helm, verb: str, key: str, replicas: int, *words: str) -> str:
        values = ("--set", f"mode=fast,key={key},replicas={replicas}")
        return helm(
            verb, "shop", chart, "-n", place, *values, *words, check=verb != "upgrade"
        ).stdout

    def upgrades(key: str, replicas: int, applier: UserApply, *words: str) -> Counter[str]:
        bundle.objects = list(objects_in("helm", run(four, "template", key, replicas)))
        bundle.met.clear()
        applied = ("--server-side=true", *words)
        bundle.holds(applier, lambda: bool(run(four, "upgrade", key, replicas, *applied)))
        return bundle.met

    run(three, "install", "a", 1)
    run(four, "upgrade", "a", 1)
    bundle.objects = list(objects_in("helm", run(four, "template", "a", 1)))
    assert {entry["operation"] for obj in bundle.state() for entry in managed(obj)} == {"Update"}

    assert upgrades("b", 2, shop) >= Counter({"configured": 2, "removed": 1, "changed": 1})
    assert upgrades("b", 2, shop) == Counter({"unchanged": 2})
    deployment = bundle.placed(bundle.objects[1])
    api.merge(deployment, {"spec": {"replicas": 5}}, "kubectl-edit").must()
    assert upgrades("b", 2, shop) >= Counter({"contested": 1})
    assert upgrades("b", 2, replace(shop, takes=True), "--force-conflicts") >= Counter(
        {"forced": 1}
    )


def managed(obj: Object) -> list[Object]:
    return metadata(obj)["managedFields"]
