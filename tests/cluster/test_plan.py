"""`hedgerow plan`, as typed on a real server: what it says of each situation, and what it sends."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from hedgerow.kube.client import connect
from hedgerow.runtime.clock import SystemClock
from hedgerow_testing.api import Api, Object
from hedgerow_testing.audit_log import AuditLog
from hedgerow_testing.waiting import eventually
from support.cluster.bluegreens import World, bluegreen, pods
from support.objects import generated
from support.objects.definitions import KEPT
from support.objects.definitions import definition as custom
from support.operator.planned import FixedClock, Operator
from support.operator.registered import CONTROLLERS
from support.programs.typed import answer

pytestmark = pytest.mark.cluster

IMAGE = '.spec.template.spec.containers[name="blue"].image'
Typed = Callable[..., tuple[int, str, str]]


@pytest.fixture
def world(api: Api, namespace: str) -> World:
    return World(api, namespace)


@pytest.fixture
def typed(api: Api, sandbox, namespace: str, tmp_path: Path, capsys, monkeypatch) -> Typed:
    """Type `hedgerow plan …`; manifests given become a file. Give code, output and errors."""

    def run(
        *words: str | Object, kubeconfig: Path = sandbox.kubeconfig, width: int = 160
    ) -> tuple[int, str, str]:
        manifests = [word for word in words if isinstance(word, dict)]
        path = tmp_path / "manifests.yaml"
        path.write_text(yaml.safe_dump_all(manifests), "utf-8")
        line = ["plan", *(word for word in words if isinstance(word, str))]
        line += ["-f", str(path)] if manifests else ["-n", namespace]
        monkeypatch.setenv("COLUMNS", str(width))
        told = answer(capsys, *line, "--kubeconfig", str(kubeconfig))
        return told.code, told.out, told.err

    return run


def listed(told: tuple[int, str, str]) -> Object:
    """Read the JSON form of one resource."""
    [resource] = json.loads(told[1])["resources"]
    return resource


def fields(resource: Object, name: str) -> dict[str, Object]:
    """Return the lines of one object by path."""
    found = [o for o in resource["objects"] if f"{o['kind']}/{o['name']}" == name]
    return {line["path"]: line for o in found for line in o["fields"]}


def settle(world: World, kubeconfig: Path, name: str = "demo", kind: str = "bluegreen") -> None:
    """Let the operator's passes loose."""

    async def carry_out() -> None:
        async with connect(kubeconfig=str(kubeconfig)) as connected:
            clock = FixedClock(SystemClock().now())
            await Operator(connected, CONTROLLERS[kind], clock, world.namespace).settle(name)

    anyio.run(carry_out)


class TestAsKubectl:
    """What is said of an object is what `kubectl apply --server-side` of the file then gets."""

    @pytest.fixture
    def kubectl(self, sandbox, tmp_path: Path) -> Callable[..., tuple[bool, str]]:
        """Type `kubectl apply` of the file that `typed` wrote last; tell whether it was taken."""

        def apply(*words: str) -> tuple[bool, str]:
            line = [str(sandbox.kubectl), "--kubeconfig", str(sandbox.kubeconfig), "apply"]
            ended = subprocess.run(
                [*line, "-f", str(tmp_path / "manifests.yaml"), *words],
                capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip
            return ended.returncode == 0, ended.stdout + ended.stderr

        return apply

    @pytest.mark.parametrize(
        ("spec", "meta", "said"),
        [
            ({"routeTo": "Red"}, {}, 'spec.routeTo: Unsupported value: "Red"'),
            ({"routTo": "Blue"}, {}, ".spec.routTo: field not declared in schema"),
            ({}, {"namespace": "nowhere-at-all"}, 'namespaces "nowhere-at-all" not found'),
        ],
        ids=["value", "misspelt", "namespace"],
    )
    def test_what_is_refused_is_refused_in_its_words_and_under_its_own_name(
        self, namespace, typed, kubectl, spec, meta, said
    ):
        """Fact: the words in which kubectl and the server refuse a manifest."""
        manifest = bluegreen(namespace)
        manifest["spec"] = {k: v for k, v in {**manifest["spec"], **spec}.items() if v is not None}
        manifest["metadata"] |= meta
        name = manifest["metadata"]["name"]
        code, out, _ = typed(manifest, width=1000)
        taken, answer = kubectl("--server-side")

        assert (code, taken) == (1, False)
        assert f"✗ BlueGreen/{name} would be refused" in out
        assert said in out
        assert said in answer
        assert [word for word in re.findall(r'BlueGreen\S* "([^"]+)"', out) if word != name] == []

    @pytest.mark.parametrize(
        ("flags", "forced"),
        [((), ()), (("--field-manager", "team"), ("--force-conflicts",))],
        ids=["kubectl", "other"],
    )
    def test_it_takes_over_what_client_side_apply_held(
        self, world, namespace, typed, kubectl, flags, forced
    ):
        """Fact: kubectl gives its client-side entry to any manager that it applies as."""
        typed(bluegreen(namespace, promotion="WhenAvailable"))
        assert kubectl()[0]
        changed = bluegreen(namespace, greenSpec=None, blueSpec=pods("blue", "example/echo:2"))
        told = typed(changed, *flags, *(["--force"] if forced else []), "-o", "json")
        lines = fields(listed(told), "BlueGreen/demo")
        before = world.get("BlueGreen", "demo")["spec"]
        assert kubectl("--server-side", *flags, *forced)[0]
        after = world.get("BlueGreen", "demo")["spec"]

        assert told[0] == 2
        assert "greenSpec" in before
        assert "greenSpec" not in after
        assert any(path.startswith(".spec.greenSpec") for path in lines)
        assert lines['.spec.blueSpec.containers[name="blue"].image']["new"] == "example/echo:2"

    @pytest.mark.parametrize("other", ["v1", "v2"])
    def test_it_takes_over_only_what_is_recorded_in_its_version(
        self, api, namespace, typed, kubectl, other
    ):
        """Fact: kubectl drops what client-side apply held in another version, and it stays."""
        kind, versions = f"Twin{other}", ("v1", "v2")
        api.apply(definition(kind, *versions), "test").must()
        for version in versions:
            api.served(f"{kind.lower()}.example.com/{version}")
        old, new = (
            of_kind(f"{kind.lower()}.example.com/{version}", kind, "t", spec, namespace=namespace)
            for version, spec in ((other, {"spec": {"a": 1, "b": 1}}), ("v2", {"spec": {"a": 1}}))
        )
        typed(old)
        assert kubectl()[0]
        out = typed(new)[1]
        assert kubectl("--server-side")[0]

        assert ("- .spec.b: 1" in out) is (other == "v2")
        assert ("b" in api.get(new).must()["spec"]) is (other == "v1")

    @pytest.mark.parametrize(("kilobytes", "code"), [(1500, 2), (1540, 1)])
    def test_what_is_too_large_to_be_stored_is_refused(
        self, namespace, typed, kubectl, kilobytes, code
    ):
        """Fact: how much etcd takes of one object."""
        spec = pods("blue", "x" * (kilobytes * 1024))
        told = typed(bluegreen(namespace, blueSpec=spec, greenSpec=None))

        assert told[0] == code
        assert ("request is too large" in told[1]) is (code == 1)
        assert kubectl("--server-side")[0] is (code == 2)


class TestRefused:
    def test_a_job_that_a_template_would_make(self, api, namespace, typed):
        """Fact: the server refuses of a Job what it refuses of its own CronJob."""
        mounts = [{"name": "nope", "mountPath": "/x"}]
        pod = {"containers": [{"name": "c", "image": "busybox", "volumeMounts": mounts}]}
        template = {"spec": {"template": {"spec": {**pod, "restartPolicy": "Always"}}}}
        given = generated.cronjob(namespace, "yearly", schedule="0 0 1 1 *", jobTemplate=template)
        code, out, _ = typed(given)

        assert code == 1
        assert "+ CronJob/yearly would be created" in out
        assert "restartPolicy" in out
        assert 'volumeMounts[0].name: Not found: "nope"' in " ".join(out.split())
        theirs = {**given, "apiVersion": "batch/v1"}
        assert not api.apply(theirs, "user", dry_run=True).ok

    @pytest.mark.usefixtures("newest")  # older ones serve no MutatingAdmissionPolicy unasked
    def test_what_admission_rewrites_is_told(self, api, namespace, typed):
        """Fact: a mutating policy changes what a dry run answers."""
        rewrite(api, namespace)
        eventually(
            lambda: "RewrittenByAdmission" in typed(bluegreen(namespace))[1],
            what="the policy to be in force",
        )

        told = typed(bluegreen(namespace))  # that one may have begun before

        assert told[0] == 2
        assert f"{IMAGE}: mirror.example/echo:1" in told[1]
        assert "RewrittenByAdmission: not set -> True (ChangedOnTheWay)" in told[1]


def of_kind(version: str, kind: str, name: str, more: Object, **meta: str) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **meta}, **more}


def deployment(
    namespace: str, app: str = "web", image: str = "example/web:1", **spec: Any
) -> Object:
    template = {"metadata": {"labels": {"app": app}}, "spec": pods("web", image)}
    spec = {**spec, "selector": {"matchLabels": {"app": app}}, "template": template}
    return of_kind("apps/v1", "Deployment", "web", {"spec": spec}, namespace=namespace)


def definition(kind: str, *versions: str) -> Object:
    """Return the definition of a kind in `NAME.example.com`, stored in the last of its versions."""
    schema = {"type": "object", **KEPT}
    return custom(f"{kind.lower()}.example.com", kind, schema, *reversed(versions))


class TestAnyObject:
    """Objects of any kind, on a server on which hedgerow need not be installed."""

    HELM = ("--field-manager", "helm")

    def test_a_chart_that_is_not_there_is_planned_in_turn_and_nothing_is_written(
        self, api, namespace, typed, audit_log: AuditLog
    ):
        """Fact: what the server answers where namespace or kind is not there yet."""
        place, gadgets = f"{namespace}-new", definition("Gadget", "v1")
        chart = [
            of_kind("v1", "Namespace", place, {}),
            gadgets,
            of_kind("gadget.example.com/v1", "Gadget", "g", {"spec": {"a": 1}}, namespace=place),
            of_kind("v1", "ConfigMap", "inside", {"data": {"a": "1"}}, namespace=place),
            of_kind("v1", "ConfigMap", "outside", {"data": {"a": "1"}}, namespace=namespace),
            of_kind("rbac.authorization.k8s.io/v1", "ClusterRole", place, {"rules": []}),
            {"kind": "List", "apiVersion": "v1", "items": [deployment(namespace)]},
        ]
        mark = audit_log.mark()
        code, out, err = typed(*chart, *self.HELM)
        asked = audit_log.writes(mark, agent="hedgerow")

        assert (code, err) == (2, "")
        assert "7 to create, 0 to change, 0 to delete; nothing was written" in out
        assert out.count("its namespace does not exist yet") == 1
        assert out.count("its kind is defined earlier in the files") == 1
        assert f'+ ConfigMap {namespace}/outside would be created\n    + .data.a: "1"\n' in out
        assert len(asked) == 6
        assert [e["requestURI"] for e in asked if "dryRun=All" not in e["requestURI"]] == []
        assert not api.get(gadgets).ok

    def test_what_a_dry_run_makes_up_is_not_told(self, api, namespace, typed):
        """Fact: a dry run gives another node port and address than the apply."""
        spec = {"type": "NodePort", "selector": {"a": "b"}, "ports": [{"port": 80}]}
        service = of_kind("v1", "Service", "np", {"spec": spec}, namespace=namespace)
        made_up = api.apply(service, "helm", dry_run=True).must()["spec"]
        code, out, _ = typed(service, *self.HELM, "-o", "json")
        told = {
            line["path"]: line for line in json.loads(out)["resources"][0]["objects"][0]["fields"]
        }
        real = api.apply(service, "helm").must()["spec"]

        assert code == 2
        assert real["clusterIP"] != made_up["clusterIP"]
        for path in (".spec.clusterIP", '.spec.ports[port=80,protocol="TCP"].nodePort'):
            assert told[path]["new"] == "(known once applied)"


class TestPromise:
    def test_every_request_that_could_change_something_is_a_dry_run(
        self, sandbox, world, namespace, typed, audit_log: AuditLog
    ):
        """Fact: the server's audit log has every request that reached it."""
        world.api.apply(bluegreen(namespace), "kubectl").must()
        settle(world, sandbox.kubeconfig)
        world.set_image("demoblue-deployment", "blue", "example/echo:9")
        mark = audit_log.mark()
        typed(bluegreen(namespace, blueSpec=pods("blue", "x"), greenSpec=None))
        typed(bluegreen(namespace, "new"))
        typed(bluegreen(namespace, route_to="Green"), "--field-manager", "team", "--force")
        typed("demo")
        writes = audit_log.writes(mark, agent="hedgerow")

        assert len(writes) > 4
        assert {entry["verb"] for entry in writes} == {"patch"}
        assert any("force=true" in entry["requestURI"] for entry in writes)
        assert [e["requestURI"] for e in writes if "dryRun=All" not in e["requestURI"]] == []


ADMISSION = "admissionregistration.k8s.io/v1"


def rewrite(api: Api, namespace: str) -> None:
    """Have the images of Deployments rewritten in one namespace."""
    patch = (
        "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{"
        "containers: object.spec.template.spec.containers.map(c,"
        ' Object.spec.template.spec.containers{name: c.name, image: "mirror.example/echo:1"})}}}}'
    )
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": patch}}
    policy = {"mutations": [mutation], "reinvocationPolicy": "Never", "failurePolicy": "Fail"}
    bind(api, namespace, "Mutating", policy, {})


def bind(api: Api, namespace: str, kind: str, policy: Object, binding: Object) -> None:
    """Have an admission policy of that kind at work on the Deployments of one namespace."""
    rule = {
        "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"],
        "operations": ["CREATE", "UPDATE"],
    }  # fmt: skip
    chosen = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    matched = {"matchConstraints": {"resourceRules": [rule], "namespaceSelector": chosen}}
    specs = {
        f"{kind}AdmissionPolicy": {**matched, **policy},
        f"{kind}AdmissionPolicyBinding": {"policyName": namespace, **binding},
    }
    for name, spec in specs.items():
        meta = {"name": namespace}
        manifest = {"apiVersion": ADMISSION, "kind": name, "metadata": meta, "spec": spec}
        api.apply(manifest, "test").must()
