"""Secretsync on a real API server, with the rights and the policy that are printed.

The operator is a second installation, so that it shares no account with other tests, and copies
only to namespaces with a label, as others have namespaces there too.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from hedgerow.controllers.secretsync.sources import SOURCE, TARGET_NAME, TARGET_TYPE
from hedgerow.deploy.names import Names
from hedgerow.deploy.overlays import parts
from hedgerow_testing.api import Api
from hedgerow_testing.audit_log import AuditLog, must_be_unforced_applies
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.waiting import eventually
from support.cluster.granted import denied, requests
from support.operator.registered import ALL
from support.operator.running import Operator
from support.programs.typed import answer

pytestmark = pytest.mark.cluster

Object = dict[str, Any]
NAMES = Names("syncs")
ACCOUNT = f"system:serviceaccount:{NAMES.namespace}:{NAMES.base}"
COPIES = "hedgerow-syncs-secretsync"
ACCESS = (
    *("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
)
HOME = "synced"
TYPE = "k8s.ziwon.dev/secretsync"
OPTIONS = {"namespace": HOME, "selector": "sync=yes"}
MARKER = "pl4nted-m4rker"


def coded(value: str) -> str:
    return b64encode(value.encode()).decode()


def secret(name: str, namespace: str, **meta: Any) -> Object:
    metadata = {"name": name, "namespace": namespace, **meta}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


class World:
    """Sources and namespaces, seen and edited as people do."""

    def __init__(self, api: Api, prefix: str) -> None:
        self.api, self.prefix = api, prefix
        self._open = set[str]()

    def open(self, name: str, **labels: str) -> str:
        full = f"{self.prefix}-{name}"
        self._label(full, labels or {"sync": "yes"})
        self._open.add(full)
        return full

    def close(self) -> None:
        """Let no later source be copied to the namespaces that were opened."""
        for full in self._open:
            self._label(full, {"sync": "no"})

    def _label(self, name: str, labels: dict[str, str]) -> None:
        meta = {"name": name, "labels": labels}
        self.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": meta}, "admin").must()

    def source(self, name: str, data: dict[str, str], target: str = "", **more: Any) -> Object:
        annotations = more.pop("annotations", {}) | ({TARGET_NAME: target} if target else {})
        annotated = {"annotations": annotations} if annotations else {}
        body = {
            **secret(f"{self.prefix}-{name}", HOME, **annotated),
            "type": TYPE,
            "data": {key: coded(value) for key, value in data.items()},
            **more,
        }
        return self.api.apply(body, "user", force=True).must()

    def put(self, name: str, namespace: str, data: dict[str, str], by: str = "somebody") -> None:
        coding = {key: coded(value) for key, value in data.items()}
        self.api.apply({**secret(name, namespace), "data": coding}, by, force=True).must()

    def get(self, name: str, namespace: str) -> Object | None:
        reply = self.api.get(secret(name, namespace))
        return reply.body if reply.ok else None

    def data(self, name: str, namespace: str) -> Object | None:
        found = self.get(name, namespace)
        return None if found is None else found.get("data", {})

    def delete(self, name: str, namespace: str = HOME) -> None:
        self.api.delete(secret(name, namespace)).must()

    def told(self, name: str) -> dict[str, str]:
        """The notes of the Events about a source, by reason."""
        full = f"{self.prefix}-{name}"
        path = f"/apis/events.k8s.io/v1/namespaces/{HOME}/events"
        found = self.api.raw("GET", path).must()["items"]
        return {one["reason"]: one["note"] for one in found if one["regarding"]["name"] == full}

    def soon(self, name: str, namespace: str, data: dict[str, str] | None) -> None:
        wanted = None if data is None else {key: coded(value) for key, value in data.items()}
        what = f"{namespace}/{name} with {sorted(data or ())}"
        eventually(lambda: self.data(name, namespace) == wanted, 60, what)


def printed() -> list[Object]:
    """Return the rights and the policy of the installation, as they are printed."""
    chosen = ALL.configured({"secretsync": OPTIONS}).limited(["secretsync"])
    made = parts("cluster", "none", chosen, names=NAMES)
    found = [o for part in made for o in part.objects if o["kind"] in ACCESS]
    # Roles for people have the program's name alone: those of two installations are the same.
    return [o for o in found if o["kind"] != "ClusterRole" or _is_named(o)]


def _is_named(manifest: Object) -> bool:
    return str(manifest["metadata"]["name"]).startswith(NAMES.base)


@pytest.fixture(scope="module")
def api(sandbox: Sandbox) -> Iterator[Api]:
    """The administrator, once the rights and the policy are there."""
    api = Api(sandbox.kubeconfig)
    api.namespace(HOME)
    made = printed()
    for manifest in made:
        api.apply(manifest, "kubectl").must()
    yield api
    for manifest in made:
        if manifest["kind"] not in ("Namespace", "ServiceAccount"):
            api.delete(manifest).must()
    api.close()


@pytest.fixture(scope="module")
def operator(
    api: Api, sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    """The operator with its ServiceAccount's token, and no controllers but these."""
    log = tmp_path_factory.mktemp("operator") / "log"
    kubeconfig = anyio.run(sandbox.kubeconfig_for_service_account, NAMES.namespace, NAMES.base)
    given = [f"--secretsync-{name}={value}" for name, value in OPTIONS.items()]
    chosen = ("--controllers", "secretsync", "--instance", NAMES.instance, *given)
    with Operator(kubeconfig, log, *chosen) as operator:
        yield operator


@pytest.fixture
def world(api: Api, operator: Operator, namespace: str) -> Iterator[World]:
    """A prefix for names, with the operator at work."""
    if not operator.running:
        operator.start()
    world = World(api, namespace)
    yield world
    world.close()


def test_a_source_is_copied_pruned_and_removed_with_its_copies(world: World, audit_log: AuditLog):
    """Fact: the printed rights and the policy let all writes of copies pass."""
    mark = audit_log.mark()
    one, two = world.open("a"), world.open("b")
    left_out = world.open("c", sync="no")
    made = world.source("app", {"user": "one", "password": MARKER})
    name = made["metadata"]["name"]
    for namespace in (one, two):
        world.soon(name, namespace, {"user": "one", "password": MARKER})
    copy = world.get(name, one) or {}
    assert copy["metadata"]["annotations"][SOURCE] == f"{HOME}/{name}"
    assert copy["type"] == TYPE
    assert world.get(name, HOME) == made

    world.put(name, one, {"theirs": "kept"})
    world.source("app", {"password": f"{MARKER}-2"})
    world.soon(name, one, {"password": f"{MARKER}-2", "theirs": "kept"})
    world.soon(name, two, {"password": f"{MARKER}-2"})
    three = world.open("d")
    world.soon(name, three, {"password": f"{MARKER}-2"})
    assert world.get(name, left_out) is None

    world.delete(name)
    assert world.get(name, HOME) is None
    world.soon(name, two, None)
    world.soon(name, one, {"theirs": "kept"})

    written = audit_log.writes(mark, user=ACCOUNT, resource="secrets")
    must_be_unforced_applies(written, COPIES)
    assert not [w for w in written if w["objectRef"]["namespace"] == HOME]
    assert audit_log.writes(mark, user=ACCOUNT, resource="namespaces") == []


def team_only(namespace: str) -> tuple[Object, Object]:
    """A policy that refuses new Secrets without a label in a namespace, and its binding."""
    api = "admissionregistration.k8s.io/v1"
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["secrets"],
    }
    there = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    policy = {
        "apiVersion": api,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": namespace},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "'team' in object.metadata.?labels.orValue({})"}],
        },
    }
    binding = {
        "apiVersion": api,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": namespace},
        "spec": {
            "policyName": namespace,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": there},
        },
    }
    return policy, binding


FULL = {"hard": {"count/secrets": "1"}, "used": {"count/secrets": "1"}}


def quota(namespace: str) -> Object:
    """A quota for one Secret in a namespace."""
    meta = {"name": "secrets", "namespace": namespace}
    spec = {"hard": FULL["hard"]}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": spec}


def test_no_copy_is_deleted_for_one_that_the_server_would_not_create(
    world: World, audit_log: AuditLog
):
    """Fact: validation, policies and quotas answer in a dry run as they would later."""
    plain, judged, full = world.open("plain"), world.open("judged"), world.open("full")
    name = f"{world.prefix}-app"
    world.source("app", {"password": "one"})
    for namespace in (plain, judged, full):
        world.soon(name, namespace, {"password": "one"})
    uid = (world.get(name, plain) or {})["metadata"]["uid"]
    mark = audit_log.mark()

    world.source("app", {"password": "one"}, annotations={TARGET_TYPE: "kubernetes.io/tls"})
    stays = f'stays as it is: Secret "{name}" is invalid: [data[tls.crt]: Required value'
    eventually(lambda: stays in world.told("app").get("Rejected", ""), 60, "Rejected")
    assert (world.get(name, plain) or {})["metadata"]["uid"] == uid

    policy = team_only(judged)
    for manifest in policy:
        world.api.apply(manifest, "admin").must()
    probe = {**secret("probe", judged), "type": "Opaque"}
    eventually(
        lambda: not world.api.apply(probe, "admin", dry_run=True).ok, 60, "the policy is at work"
    )
    limit = world.api.apply(quota(full), "admin").must()
    # As the controller of quotas would count, which does not run here.
    counted = {**limit, "metadata": {"name": "secrets", "namespace": full}, "status": FULL}
    world.api.apply(counted, "counter", subresource="status", force=True).must()
    probe = {**secret("probe", full), "type": "Opaque"}
    eventually(
        lambda: not world.api.apply(probe, "admin", dry_run=True).ok, 60, "the quota is at work"
    )
    world.source("app", {"password": "one"}, annotations={TARGET_TYPE: "Opaque"})
    eventually(lambda: (world.get(name, plain) or {}).get("type") == "Opaque", 60, "made anew")
    eventually(lambda: "refused with 403" in world.told("app").get("Forbidden", ""), 60, "quota")
    for namespace in (judged, full):
        assert (world.get(name, namespace) or {})["type"] == TYPE
    deleted = {
        entry["objectRef"]["namespace"]
        for entry in audit_log.writes(mark, user=ACCOUNT, resource="secrets")
        if entry["verb"] == "delete" and entry["objectRef"]["name"] == name
    }
    assert plain in deleted
    assert not {judged, full} & deleted

    for manifest in (*policy, quota(full)):
        world.api.delete(manifest).must()
    world.delete(name)
    for namespace in (plain, judged, full):
        world.soon(name, namespace, None)


def test_no_value_leaves_the_process(
    world: World,
    operator: Operator,
    sandbox: Sandbox,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
):
    """Fact: the server's refusals repeat values of Secrets."""
    namespace, name = world.open("a"), f"{world.prefix}-app"
    world.source("app", {"password": f"{MARKER}-3", "user": "one"})
    world.soon(name, namespace, {"password": f"{MARKER}-3", "user": "one"})
    world.put(name, namespace, {"password": f"{MARKER}-theirs"})
    world.source("app", {"password": f"{MARKER}-4", "user": "one"}, annotations={TARGET_TYPE: "x"})
    eventually(lambda: "Immutable" in world.told("app"), 60, "told")
    manifest = tmp_path / "source.json"
    body = {**secret(name, HOME), "type": TYPE, "data": {"password": coded(f"{MARKER}-5")}}
    manifest.write_text(json.dumps(body), "utf-8")
    commands = [
        ("owners", f"secret/{name}", "-n", namespace),
        ("owners", f"secret/{name}", "-n", namespace, "-o", "json"),
        ("owners", f"secret/{name}", "-n", HOME),
        ("tree", f"secret/{name}", "-n", namespace),
        ("plan", "-f", str(manifest), "--field-manager", "user"),
    ]
    where = ("--kubeconfig", str(sandbox.kubeconfig))
    answers = [answer(capsys, *words, *where) for words in commands]
    assert [told.code for told in answers] == [0, 0, 0, 0, 2]
    told = [f"{one.out}{one.err}" for one in answers]
    told += [json.dumps(operator.entries())]
    for path in (f"/apis/events.k8s.io/v1/namespaces/{one}/events" for one in (HOME, namespace)):
        told.append(json.dumps(world.api.raw("GET", path).must()))
    told.append(json.dumps((world.get(name, namespace) or {})["metadata"]))
    assert all(told)
    for text in told:
        for number in ("3", "4", "5", "theirs"):
            value = f"{MARKER}-{number}"
            assert value not in text
            assert coded(value) not in text
    world.delete(name)
    eventually(lambda: name not in str(world.data(name, namespace)), 60, "given back")


def test_no_request_was_refused(operator: Operator, audit_log: AuditLog):
    """Fact: RBAC and the policy refused no request of the audit log."""
    asked = requests(audit_log, 0, ACCOUNT)
    assert denied(one for one in asked if "dryRun=All" not in one["requestURI"]) == []
    usual = ("problem", "refused", "others cannot see that this operator is at work")
    assert [one for one in operator.complaints() if one["event"] not in usual] == []
