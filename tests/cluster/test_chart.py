"""The chart: what it makes of values, and Helm 4 and 3 on a real server while the operator runs."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from typer.testing import CliRunner

from hedgerow.cli import app
from hedgerow.version import version
from hedgerow_schemas.crd import CRD, crd_name
from hedgerow_testing.api import Api, Object
from hedgerow_testing.audit_log import WRITES, AuditLog
from hedgerow_testing.sandbox.cluster import Options, Sandbox
from hedgerow_testing.sandboxes import running
from hedgerow_testing.waiting import eventually
from support.cluster.granted import granted
from support.helm.chart import CHART, NAMESPACE, RELEASE, ROOT, Helm, given, identity, previous
from support.helm.programs import HELM_3, HELM_4
from support.operator.registered import ALL, RESOURCES
from support.operator.running import Operator

pytestmark = pytest.mark.cluster

PROGRAMS = (HELM_3, HELM_4)
CONFIGURATION: Object = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "hedgerow"},
}
CHOOSABLE = [name for name in ALL.names if not ALL.unknown([name])]
OPT_IN = ("guestbook", "scaler", "secretsync")
SECRETSYNC = {
    "controllers": ["secretsync"],
    "secretsync": {"namespace": "vault", "skip": ["a", "b"]},
}


@pytest.fixture
def helm(helm_programs: Mapping[str, Path], tmp_path: Path) -> Helm:
    """Helm 4, at no server."""
    return Helm(helm_programs[HELM_4], tmp_path)


class TestTemplates:
    @pytest.mark.parametrize(
        ("values", "words"),
        [
            ({}, ()),
            ({"webhooks": False, "policy": False}, ("--overlay", "no-webhook")),
            (
                {"namespaces": ["shop", "shop-test"], "policy": False},
                ("--overlay", "namespaced", "--namespace", "shop,shop-test"),
            ),
            (SECRETSYNC, ("--secretsync-namespace", "vault", "--secretsync-skip", "a,b")),
            *(({"controllers": [name]}, ()) for name in CHOOSABLE),
            ({"controllers": CHOOSABLE}, ()),
            ({"crds": {"install": False}}, ("--no-crds",)),
            (
                {"shards": 3, "namespaces": ["shop"], "policy": False},
                ("--shards", "3", "--overlay", "namespaced", "--namespace", "shop"),
            ),
            ({"shards": 2}, ("--shards", "2")),
        ],
    )
    def test_the_objects_are_those_that_hedgerow_prints(self, helm, values, words):
        """Fact: what Helm's own engine makes of the templates."""
        chosen = [f"--controllers={name}" for name in values.get("controllers", ())]
        printed = {identity(obj): obj for obj in manifests(*words, *chosen)}
        made = {key: obj for key, one in helm.rendered(values).items() if (obj := without(one))}
        # Helm makes the namespace; nothing but its own objects is a chart's business.
        del printed["Namespace", "", NAMESPACE]

        assert made.keys() == printed.keys()
        for key, obj in printed.items():
            assert comparable(made[key]) == comparable(obj), key

    def test_both_helms_make_the_same_of_it(self, helm_programs, tmp_path):
        """Fact: Helm 3 and 4 render templates by engines of their own."""
        four, three = (Helm(helm_programs[name], tmp_path) for name in (HELM_4, HELM_3))
        values = {"controllers": list(OPT_IN), "extraLabels": {"team": "one"}}

        assert four.rendered(values) == three.rendered(values)

    def test_values_reach_what_they_are_about(self, helm):
        """Fact: Helm merges values with those of the chart."""
        labels = {"team": "one", "example.com/part": "2"}
        resources = {"requests": {"cpu": 0.5}, "limits": {"memory": "1Gi"}}
        tolerations = [{"key": "spot", "operator": "Exists"}]
        made = helm.rendered(
            {
                "image": {
                    "repository": "registry.example:5000/hedgerow",
                    "digest": "sha256:" + "0" * 64,
                    "pullPolicy": "Always",
                    "pullSecrets": ["pull"],
                },
                "replicas": 3,
                "existingServiceAccount": "theirs",
                "resources": resources,
                "environment": {"HEDGEROW_LOG_FORMAT": "json"},
                "nodeSelector": {"disk": "ssd"},
                "tolerations": tolerations,
                "extraLabels": labels,
            }
        )
        deployment = made["Deployment", NAMESPACE, "hedgerow"]["spec"]
        template = deployment["template"]
        pod, [container] = template["spec"], template["spec"]["containers"]
        selector = deployment["selector"]["matchLabels"]

        assert container["image"] == f"registry.example:5000/hedgerow@sha256:{'0' * 64}"
        assert container["imagePullPolicy"] == "Always"
        assert pod["imagePullSecrets"] == [{"name": "pull"}]
        assert deployment["replicas"] == 3
        assert container["resources"] == {
            "requests": {"cpu": 0.5, "memory": "128Mi"}, "limits": {"memory": "1Gi"},
        }  # fmt: skip
        assert {"name": "HEDGEROW_LOG_FORMAT", "value": "json"} in container["env"]
        assert (pod["nodeSelector"], pod["tolerations"]) == ({"disk": "ssd"}, tolerations)
        assert [
            key for key, obj in made.items() if not labels.items() <= labels_of(obj).items()
        ] == []
        assert labels.items() <= template["metadata"]["labels"].items()
        assert selector.keys().isdisjoint(labels)
        assert pod["serviceAccountName"] == "theirs"
        assert ("ServiceAccount", NAMESPACE, "hedgerow") not in made
        subjects = [one["name"] for obj in made.values() for one in obj.get("subjects", ())]
        assert {*subjects} == {"theirs"}
        policies = {n: obj for (k, _, n), obj in made.items() if k == "ValidatingAdmissionPolicy"}
        del policies["hedgerow-authors"]  # it is about everybody
        assert len(policies) == 3
        for policy in policies.values():
            assert f'"system:serviceaccount:{NAMESPACE}:theirs"' in str(policy)

    def test_each_shard_has_the_replicas_and_labels_that_are_given(self, helm):
        """Fact: Helm's loops make an object for each shard."""
        made = helm.rendered({"replicas": 3, "shards": 2, "extraLabels": {"team": "one"}})
        deployments = {name: obj for (kind, _, name), obj in made.items() if kind == "Deployment"}

        assert deployments.keys() == {"hedgerow-shard-0-of-2", "hedgerow-shard-1-of-2"}
        for name, one in deployments.items():
            labels = one["spec"]["template"]["metadata"]["labels"]
            assert one["spec"]["replicas"] == 3
            assert labels["team"] == "one"
            assert labels["app.kubernetes.io/component"] == name.removeprefix("hedgerow-")

    def test_nothing_of_what_the_operator_writes_is_declared(self, helm):
        """Fact: what Helm renders by default is what it would own."""
        made = helm.rendered({})

        assert not {"Secret", "Lease"} & {kind for kind, _, _ in made}
        hooks = [hook for obj in made.values() for hook in obj.get("webhooks", ())]
        assert len(hooks) >= 3
        assert "caBundle" not in str(hooks)

    def test_it_is_packaged_with_the_version_of_the_project(self, helm, tmp_path):
        """Fact: Helm reads and lints the archive that we make."""
        archive = package(tmp_path)
        shown = helm("show", "chart", archive).stdout

        assert archive.name == f"hedgerow-{version()}.tgz"
        assert f"\nversion: {version()}\n" in f"\n{shown}"
        assert helm.rendered({}, archive) == helm.rendered({})
        assert helm("lint", "--strict", archive).returncode == 0
        assert archive.read_bytes() == package(tmp_path / "again").read_bytes()


class TestValues:
    @pytest.mark.parametrize(
        ("values", "named"),
        [
            ({"replica": 2}, "replica"),
            ({"image": None}, "'image'"),
            ({"secretsync": {"namespace": "vault"}}, "secretsync.namespace"),
            ({"namespaces": ["shop"], "controllers": ["secretsync"]}, "namespaces"),
            ({"namespaces": ["shop", "hedgerow-system"]}, "nothing in hedgerow-system"),
        ],
    )
    def test_a_wrong_one_is_refused_by_its_name(self, helm, values, named):
        """Fact: Helm checks values by the chart's JSON Schema, and names what is wrong."""
        assert named in helm.refusal(values)


def manifests(*words: str) -> list[Object]:
    """Return what `hedgerow manifests` prints."""
    result = CliRunner().invoke(app, ["manifests", *words])
    assert result.exit_code == 0, result.output
    return [one for one in yaml.load_all(result.stdout, yaml.CSafeLoader) if one]


def without(obj: Object) -> Object:
    """Return an object without webhooks that are never called; nothing if it has no other."""
    if "webhooks" not in obj:
        return obj
    called = [hook for hook in obj["webhooks"] if "rules" in hook]
    return obj | {"webhooks": called} if called else {}


def comparable(obj: Object) -> Object:
    """Return an object as it is compared.

    Rules count for what they grant: a chart has those of each controller, `hedgerow manifests` has
    them folded together. That Helm keeps a definition is a matter of its own.
    """
    meta = obj["metadata"]
    kept = {key: value for key, value in meta.items() if key != "annotations"}
    rest = {key: value for key, value in obj.items() if key != "rules"}
    if "rules" in obj and "nonResourceURLs" not in str(obj["rules"]):
        rest["rules"] = granted([obj])
    elif "rules" in obj:
        rest["rules"] = obj["rules"]
    return rest | {"metadata": kept}


def labels_of(obj: Object) -> Object:
    return obj["metadata"].get("labels", {})


def package(directory: Path) -> Path:
    """Return the archive that `task chart` makes."""
    command = [sys.executable, ROOT / ".ci" / "release" / "chart.py", "--output", directory]
    made = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return Path(made.stdout.strip())


@pytest.fixture(scope="module")
def cluster(kubernetes: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A server of this module's own: nobody answers for the webhooks, which would bar others."""
    root = tmp_path_factory.mktemp("chart")
    options = Options(kubernetes=kubernetes, nodes=1, audit=root / "audit.log")
    with running(root / "cluster", options) as up:
        yield up


@pytest.fixture
def api(cluster: Sandbox) -> Iterator[Api]:
    api = Api(cluster.kubeconfig)
    yield api
    api.close()


class TestOnAServer:
    def test_a_release_lives_while_the_operator_runs(self, helm_programs, cluster, api, tmp_path):
        """Fact: Helm's upgrades meet what the operator writes in the same objects."""
        three, four = (Helm(helm_programs[name], tmp_path, cluster.kubeconfig) for name in PROGRAMS)
        audit = AuditLog(cluster.directory.with_name("audit.log"))
        mark, everywhere = audit.mark(), everything(api) - kept(MORE)

        # By Helm 3, the previous version, and this one over it.
        three("install", *AT, "--create-namespace", previous(tmp_path))
        assert not has_priority(api)
        with operator(cluster, three, {}, tmp_path, **PATIENT) as runs:
            eventually(lambda: all_trust(api), what="caBundle")
            eventually(lambda: holder(api), what="a leader")
            three("upgrade", *AT, CHART)
            assert has_priority(api)
            assert untrusting(api) == []

            assert size_of_release(api) < LARGEST_SECRET / 2

            # Other values: a release of Helm 3 becomes one that is applied server-side.
            four("upgrade", *AT, CHART, "--server-side=true", *given(MORE))
            assert {name.split(".")[-3] for name in untrusting(api)} == {"guestbook"}
            assert api.get(DEPLOYMENT).must()["spec"]["replicas"] == 3
            assert runs.stop() == 0
            assert complaints(runs) == []
        with operator(cluster, four, MORE, tmp_path, **PATIENT) as runs:
            eventually(lambda: all_trust(api), what="caBundle of all")
            eventually(lambda: holder(api), what="a leader")

            # Back to the previous version and fewer controllers, and on again.
            four("rollback", RELEASE, "1", "--namespace", NAMESPACE)
            assert not has_priority(api)
            assert api.get(DEPLOYMENT).must()["spec"]["replicas"] == 2
            assert untrusting(api) == []
            four("upgrade", *AT, CHART, "--server-side=true", *given(MORE))
            assert has_priority(api)
            eventually(lambda: all_trust(api), what="caBundle of all again")
            assert holder(api).startswith(socket.gethostname())
            assert complaints(runs) == []
            four("uninstall", *AT)
        assert conflicts(audit, mark) == []
        stays(api, everywhere | kept(MORE))

        # With the definitions that were kept, and then without them.
        lose_namespace(api)
        stays(api, everywhere | {one for one in kept(MORE) if NAMESPACE not in one})
        values = given({"controllers": MORE["controllers"]})
        four("install", *AT, "--create-namespace", CHART, *values)
        four("upgrade", *AT, CHART, *values, *given({"webhooks": False}))
        assert api.get(CONFIGURATION).status == 404
        four("upgrade", *AT, CHART, *given({"controllers": ["bluegreen"]}))
        four("upgrade", *AT, CHART, *given({"crds": {"install": False}}))
        four("rollback", RELEASE, "3", "--namespace", NAMESPACE)
        assert kept(MORE) <= everything(api)
        four("uninstall", *AT)
        lose_namespace(api)
        stays(api, everywhere | {one for one in kept(MORE) if NAMESPACE not in one})
        api.raw("DELETE", DEFINITIONS_OF_HEDGEROW).must()
        stays(api, everywhere)


MORE = {
    "controllers": ["bluegreen", "cronjob", "memcached", "guestbook"],
    "replicas": 3,
    "extraLabels": {"team": "one"},
}
LARGEST_SECRET = 1024**2
DEFINITIONS_OF_HEDGEROW = (
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    "?labelSelector=app.kubernetes.io/part-of%3Dhedgerow"
)
PATIENT = {
    "HEDGEROW_LEASE_DURATION": "60s",
}
"""However slowly the server answers while Helm writes; who stops in good order releases it."""
AT = ("--namespace", NAMESPACE, RELEASE)
DEPLOYMENT = {
    "apiVersion": "apps/v1", "kind": "Deployment",
    "metadata": {"name": "hedgerow", "namespace": NAMESPACE},
}  # fmt: skip
LEASE = {
    "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
    "metadata": {"name": "hedgerow", "namespace": NAMESPACE},
}  # fmt: skip
NAMES_ALONE = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
NOBODYS = {"apiservices", "events", "endpointslices", "endpoints", "replicasets", "pods", "nodes"}
"""Plurals of what Kubernetes itself makes, and removes in its own time."""


def operator(
    cluster: Sandbox, helm: Helm, values: Mapping[str, Any], directory: Path, **environment: str
) -> Operator:
    """Return the operator as a pod of the release is run, with nothing but its rights."""
    account = anyio.run(cluster.kubeconfig_for_service_account, NAMESPACE, "hedgerow")
    pod = helm.rendered(values)["Deployment", NAMESPACE, "hedgerow"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    told = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    nowhere = "--webhook-bind-address=127.0.0.1:0"
    flags = (*container["args"][1:], nowhere)
    return Operator(account, directory / "log", *flags, **told, **environment)


def complaints(runs: Operator) -> list[Object]:
    """Return what the operator warned of, but for watches that begin anew with a definition."""
    return [one for one in runs.complaints() if "is (re)initializing" not in str(one)]


def hooks(api: Api) -> list[Object]:
    """Return the webhooks that are called."""
    found = api.get(CONFIGURATION).body.get("webhooks", ())
    return [hook for hook in found if hook.get("rules")]


def untrusting(api: Api) -> list[str]:
    """Return the webhooks that trust nobody."""
    return [hook["name"] for hook in hooks(api) if not hook["clientConfig"].get("caBundle")]


def all_trust(api: Api) -> bool:
    """Return whether there are webhooks, and each trusts somebody."""
    return bool(hooks(api)) and untrusting(api) == []


def size_of_release(api: Api) -> int:
    """Return the size of the Secret in which Helm keeps the chart and what it made of it."""
    path = f"/api/v1/namespaces/{NAMESPACE}/secrets/sh.helm.release.v1.{RELEASE}.v1"
    return len(api.raw("GET", path).must()["data"]["release"])


def holder(api: Api) -> str:
    """Return the Lease's holder, if it has one."""
    return api.get(LEASE).body.get("spec", {}).get("holderIdentity", "")


def has_priority(api: Api) -> bool:
    """Return whether the definition is that of this version, not of the previous one."""
    [memcached] = [one for one in RESOURCES if one.api.kind == "Memcached"]
    kind = {"apiVersion": CRD.group_version, "kind": CRD.kind}
    live = api.get({**kind, "metadata": {"name": crd_name(memcached)}}).must()
    return "priorityClassName" in str(live)


def everything(api: Api) -> set[str]:
    """Return the paths of all objects, but for what comes and goes by itself."""
    found: set[str] = set()
    for root in ("/api/v1", *group_versions(api)):
        for resource in api.raw("GET", root).must()["resources"]:
            plural = resource["name"]
            if "/" in plural or "list" not in resource["verbs"] or plural in NOBODYS:
                continue
            # Not the definitions' megabytes, which are of no interest.
            reply = api.raw("GET", f"{root}/{plural}", headers=NAMES_ALONE)
            for one in reply.must()["items"] or ():
                meta = one["metadata"]
                found.add(f"{plural} {meta.get('namespace', '')}/{meta['name']}")
    return found


def lose_namespace(api: Api) -> None:
    """Delete the namespace of the release, and wait until it is gone."""
    path = f"/api/v1/namespaces/{NAMESPACE}"
    api.raw("DELETE", path).must()
    eventually(lambda: api.raw("GET", path).status == 404, 60, "the namespace is gone")


def stays(api: Api, wanted: set[str]) -> None:
    """Wait until these objects are there, and no others."""
    odd = [wanted]

    def are_there() -> bool:
        # A custom resource that is being deleted may be named and no longer listed.
        with suppress(AssertionError):
            odd.append(everything(api) ^ wanted)
        return not odd[-1]

    with suppress(AssertionError):
        eventually(are_there, 60)
    assert sorted(odd[-1]) == []


def group_versions(api: Api) -> list[str]:
    groups = api.raw("GET", "/apis").must()["groups"]
    return [f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups]


def kept(values: Mapping[str, Any]) -> set[str]:
    """Return what an uninstallation leaves behind."""
    defined = {crd_name(one.resource) for one in ALL.limited(values["controllers"]).controllers}
    return {
        f"namespaces /{NAMESPACE}",
        f"serviceaccounts {NAMESPACE}/default",
        f"configmaps {NAMESPACE}/kube-root-ca.crt",
        *(f"customresourcedefinitions /{name}" for name in defined),
    }


def conflicts(audit: AuditLog, mark: int) -> list[tuple[str, str]]:
    """Return which writes of Helm and the operator were in conflict with others, or forced."""
    return [
        (entry["userAgent"], entry["requestURI"])
        for entry in audit.since(mark, verbs=WRITES)
        if entry["userAgent"].lower().startswith(("helm", "hedgerow"))
        and ("force=true" in entry["requestURI"] or is_conflict(entry["responseStatus"]))
    ]


def is_conflict(answer: Object) -> bool:
    return (answer["code"], answer.get("reason")) == (409, "Conflict")
