"""Guestbook on a real API server, chosen by name, with the rights and the policy that are printed.

The operator is a second installation, so that it shares no account with other tests.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
import yaml

from hedgerow.deploy.names import Names
from hedgerow.deploy.overlays import parts
from hedgerow_schemas.guestbook import Guestbook
from hedgerow_testing.api import Api, Object
from hedgerow_testing.audit_log import AuditEntry, AuditLog, must_be_unforced_applies
from hedgerow_testing.generate import CRDS, crd_file
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.waiting import eventually
from support.cluster import bluegreens
from support.cluster.bluegreens import ROOT
from support.cluster.granted import denied, requests
from support.operator.registered import ALL
from support.operator.running import Operator

pytestmark = pytest.mark.cluster

NAMES = Names("guests")
ACCOUNT = f"system:serviceaccount:{NAMES.namespace}:{NAMES.base}"
FIELD_MANAGER = "hedgerow-guests-guestbook"
CERTIFICATES = "hedgerow-guests-certificates"
MANAGERS = {
    "leases": "hedgerow-guests-lease",
    "secrets": CERTIFICATES,
    "validatingwebhookconfigurations": CERTIFICATES,
}
"""The field managers of what is no Guestbook and none of its children."""
ACCESS = (
    *("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
)
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


class World(bluegreens.World):
    """One namespace of a cluster with Guestbooks, seen and edited as people do."""

    def make(self, name: str = "book", size: int = 2, config: str = "pages", **spec: Any) -> Object:
        given = {"size": size, "configMapName": config, **spec}
        return self.api.apply({**self.target("Guestbook", name), "spec": given}, "user").must()

    def target(self, kind: str, name: str) -> Object:
        if kind == "Guestbook":
            metadata = {"name": name, "namespace": self.namespace}
            return {"apiVersion": Guestbook.api.group_version, "kind": kind, "metadata": metadata}
        return super().target(kind, name)

    def status(self, name: str = "book") -> Object:
        return (self.get("Guestbook", name) or {}).get("status", {})

    def condition(self, kind: str, name: str = "book") -> str:
        return super().condition(kind, name)

    def pods(self, name: str = "book") -> list[str]:
        """Return the names of a Guestbook's pods that are not on their way out."""
        path = f"/api/v1/namespaces/{self.namespace}/pods?labelSelector=app=guestbook"
        found = self.api.raw("GET", path).must()["items"]
        meta = [pod["metadata"] for pod in found if "deletionTimestamp" not in pod["metadata"]]
        return sorted(m["name"] for m in meta if m["name"].startswith(f"{name}-"))


@pytest.fixture(scope="module")
def api(nodes_sandbox: Sandbox) -> Iterator[Api]:
    """The administrator, once the definition, the rights and the policy are there."""
    api = Api(nodes_sandbox.kubeconfig)
    crd = yaml.safe_load((ROOT / CRDS / crd_file(Guestbook)).read_text("utf-8"))
    api.apply(crd, "hedgerow-install", force=True).must()
    chosen = parts("cluster", "none", ALL.limited(["guestbook"]), names=NAMES)
    made = [o for part in chosen for o in part.objects if o["kind"] in ACCESS]
    for manifest in made:
        api.apply(manifest, "kubectl").must()
    api.served(Guestbook.api.group_version)
    yield api
    for manifest in made:
        if manifest["kind"] not in ("Namespace", "ServiceAccount"):
            api.delete(manifest).must()
    api.close()


@pytest.fixture(scope="module")
def begun(nodes_audit: AuditLog) -> int:
    """Return where what was asked before the operator began ends in the log."""
    return nodes_audit.mark()


@pytest.fixture(scope="module")
def operator(
    api: Api, nodes_sandbox: Sandbox, begun: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    """The operator with its ServiceAccount's token, and no controller but this one."""
    kubeconfig = anyio.run(
        nodes_sandbox.kubeconfig_for_service_account, NAMES.namespace, NAMES.base
    )
    log = tmp_path_factory.mktemp("operator") / "log"
    chosen = ("--controllers", "guestbook", "--instance", NAMES.instance)
    with Operator(kubeconfig, log, *chosen) as running:
        yield running


@pytest.fixture
def world(api: Api, operator: Operator, nodes_namespace: str) -> World:
    """A fresh namespace with the operator at work; it takes restricted pods only."""
    meta = {"name": nodes_namespace, "labels": RESTRICTED}
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": meta}, "admin").must()
    return World(api, nodes_namespace)


def ready(world: World, size: int, name: str = "book", within: float = 30) -> None:
    """Wait until it is Ready, one of its pods is active and all others stand by."""

    def settled() -> bool:
        status = world.status(name)
        told = sorted(filter(None, [status.get("active"), *status.get("standby", ())]))
        is_ready = world.condition("Ready", name) == "True/Serving"
        return is_ready and len(told) == size and told == world.pods(name)

    eventually(settled, within, f"{name} of {size}")


class TestConverging:
    def test_one_pod_is_active_and_the_others_take_over(self, world: World):
        """Fact: controllers replace a deleted pod, and a node runs the new one."""
        uid = world.make(size=3, alias="Phone")["metadata"]["uid"]

        ready(world, 3)
        for child in (("ConfigMap", "pages"), ("Deployment", "book")):
            (owner,) = world.get(*child)["metadata"]["ownerReferences"]
            named = [owner[key] for key in ("apiVersion", "kind", "name", "uid", "controller")]
            assert named == [Guestbook.api.group_version, "Guestbook", "book", uid, True]
        page = world.get("ConfigMap", "pages")["data"]["index.html"]
        assert "sign with your phone" in page
        first, *standby = (world.status()["active"], *world.status()["standby"])

        world.delete("Pod", first)

        eventually(lambda: world.status()["active"] in standby, what="another active pod")
        second = world.status()["active"]
        ready(world, 3)
        assert world.status()["active"] == second, "a new pod does not take over"


class TestConfigMap:
    def test_a_name_that_cannot_be_is_told_with_the_servers_reason(self, world: World):
        """Fact: the server's words for a name that cannot be."""
        world.make(config="Not_A_Name")

        eventually(lambda: world.condition("Stalled") == "True/Rejected")
        (stalled,) = (c for c in world.status()["conditions"] if c["type"] == "Stalled")
        assert "ConfigMap/Not_A_Name" in stalled["message"]
        assert "lowercase RFC 1123 subdomain" in stalled["message"]


class TestRefusals:
    def test_what_the_original_refuses_is_refused(self, world: World):
        """Fact: the server evaluates the definition's bounds and rules."""

        def tried(name: str = "book", **spec: Any) -> str:
            given = {"size": 1, "configMapName": "pages", **spec}
            full = {key: value for key, value in given.items() if value is not None}
            manifest = {**world.target("Guestbook", name), "spec": full}
            reply = world.api.apply(manifest, "user", dry_run=True)
            return "" if reply.ok else f"{reply.status} {reply.body['message']}"

        for word, said in {
            "at most 63 characters": [tried("a" * 64)],
            "spec.size": [tried(size=size) for size in (0, 11, None)],
            "spec.configMapName": [tried(configMapName=name) for name in ("", "a" * 16, None)],
            "spec.alias": [tried(alias="Fax")],
        }.items():
            assert [one for one in said if not (one.startswith("422 ") and word in one)] == []
        assert tried("a" * 63, size=10, configMapName="a" * 15, alias="Name") == ""

    def test_one_without_a_spec_is_accepted_and_told_what_is_missing(self, world: World):
        """Fact: the server takes a resource without a spec."""
        world.api.apply(world.target("Guestbook", "book"), "user").must()

        eventually(lambda: world.condition("Stalled") == "True/SpecMissing")


class TestRequests:
    def test_every_write_of_this_module_was_an_unforced_apply_and_none_was_refused(
        self, nodes_audit: AuditLog, begun: int
    ):
        """Fact: the audit log shows each request, and RBAC and policy refused none."""
        asked = requests(nodes_audit, begun, ACCOUNT)
        writes = nodes_audit.writes(begun, user=ACCOUNT)
        by_manager = defaultdict[str, list[AuditEntry]](list)
        for write in writes:
            by_manager[MANAGERS.get(write["objectRef"]["resource"], FIELD_MANAGER)].append(write)

        assert FIELD_MANAGER in by_manager
        for manager, by_it in by_manager.items():
            must_be_unforced_applies(by_it, manager)
        assert denied(asked) == []
