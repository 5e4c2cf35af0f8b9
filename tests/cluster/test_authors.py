"""Who may have a controller write something on their behalf, by the policy of the overlays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from hedgerow.controllers.scaler.windows import HOLDS, OUT_REPLICAS
from hedgerow.deploy import authors
from hedgerow.deploy.admission_policies import WIDEST
from hedgerow.deploy.names import Names
from hedgerow.plan.yield_and_claim import CLAIM, YIELD
from hedgerow_testing.api import Api, Object, Reply
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.waiting import eventually
from support.cluster import cronjobs
from support.cluster.policies import Impersonated
from support.cluster.rights import grant
from support.operator.registered import ALL
from support.programs.typed import answer

pytestmark = pytest.mark.cluster

LABELS = {"app": "web"}
POD = {"containers": [{"name": "c", "image": "i"}]}
SPEC: Object = {
    "selector": {"matchLabels": LABELS},
    "template": {"metadata": {"labels": LABELS}, "spec": POD},
}
CRONJOBS = {"apiGroups": [cronjobs.GROUP], "resources": ["cronjobs"]}
MORE: Object = {"Deployment": {}, "StatefulSet": {"serviceName": "web"}}
WORKLOADS = {"apiGroups": ["apps"], "resources": ["deployments", "statefulsets"]}
AUTOSCALERS = {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"]}
VERBS = ["get", "create", "patch"]
POLICY = "'hedgerow-writers-authors'"


@dataclass(frozen=True)
class Author:
    """Somebody with rights in one namespace."""

    api: Api
    namespace: str

    def asks(self, kind: str = "Deployment", *, dry_run: bool = False, **notes: str) -> Reply:
        meta: Object = {"name": "web", "namespace": self.namespace, "annotations": notes}
        identity = {"apiVersion": "apps/v1", "kind": kind, "metadata": meta}
        body = {**identity, "spec": {**SPEC, **MORE[kind]}}
        return self.api.apply(body, "author", force=True, dry_run=dry_run)


def asking(key: str, value: str = "3") -> dict[str, Any]:
    return {key: value}


@pytest.fixture(scope="module")
def admin(sandbox: Sandbox) -> Iterator[Api]:
    """The administrator, while the policy is in force."""
    admin, names = Api(sandbox.kubeconfig), Names("writers")
    cronjobs.prepare(admin)
    made = authors.policy(names, ALL.chosen(("cronjob", "scaler", "secretsync")))
    for manifest in made:
        admin.apply(manifest, "kubectl").must()
    grant(admin, "prober", [{**WORKLOADS, "verbs": VERBS}], "default")
    probe = Author(Impersonated(sandbox.kubeconfig, "prober"), "default")
    try:
        eventually(
            lambda: is_refused(probe.asks(dry_run=True, **asking(CLAIM))),
            what="the policy in force",
        )
        yield admin
    finally:
        probe.api.close()
    for manifest in made:
        admin.delete(manifest).must()
    admin.close()


@pytest.fixture
def tenant(admin: Api, sandbox: Sandbox, namespace: str) -> Iterator[Author]:
    """Somebody who may write Deployments and StatefulSets, and no autoscaler."""
    grant(admin, "tenant", [{**WORKLOADS, "verbs": VERBS}], namespace)
    api = Impersonated(sandbox.kubeconfig, "tenant")
    yield Author(api, namespace)
    api.close()


@pytest.fixture
def team(admin: Api, sandbox: Sandbox, namespace: str) -> Iterator[Author]:
    """Somebody who may write both."""
    rules = [{**WORKLOADS, "verbs": VERBS}, {**AUTOSCALERS, "verbs": ["patch"]}]
    grant(admin, "team", rules, namespace)
    api = Impersonated(sandbox.kubeconfig, "team")
    yield Author(api, namespace)
    api.close()


@pytest.fixture
def editor(admin: Api, sandbox: Sandbox, namespace: str) -> Iterator[Api]:
    """Somebody who may write CronJobs of ours, and no Jobs."""
    grant(admin, "cronjob-editor", [{**CRONJOBS, "verbs": VERBS}], namespace)
    api = Impersonated(sandbox.kubeconfig, "cronjob-editor")
    yield api
    api.close()


@pytest.fixture
def owner(admin: Api, sandbox: Sandbox, namespace: str) -> Iterator[Api]:
    """Somebody who may write both."""
    jobs = {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["patch"]}
    grant(admin, "cronjob-owner", [{**CRONJOBS, "verbs": VERBS}, jobs], namespace)
    api = Impersonated(sandbox.kubeconfig, "cronjob-owner")
    yield api
    api.close()


def cronjob(namespace: str, *, suspend: bool = False, **notes: str) -> Object:
    meta: Object = {"name": "nightly", "namespace": namespace, "annotations": notes}
    spec = {"schedule": "0 0 30 2 *", "suspend": suspend, "jobTemplate": cronjobs.template()}
    return {"apiVersion": cronjobs.VERSION, "kind": "CronJob", "metadata": meta, "spec": spec}


def is_refused(reply: Reply) -> bool:
    return reply.status == 403 and POLICY in reply.body["message"]


class TestScaler:
    """One expression of the policy is for both kinds and all keys: later tests have one of them."""

    @pytest.mark.parametrize("kind", MORE)
    @pytest.mark.parametrize("key", [CLAIM, OUT_REPLICAS, HOLDS])
    def test_who_may_not_write_autoscalers_does_not_ask(self, tenant: Author, kind: str, key: str):
        """Fact: a policy asks the server's authorizer what the author may patch."""
        assert is_refused(tenant.asks(kind, **asking(key)))
        assert tenant.asks(kind).ok
        refusal = tenant.asks(kind, **asking(key))
        assert is_refused(refusal)
        assert "right to patch horizontalpodautoscalers there" in refusal.body["message"]

    def test_who_may_does(self, team: Author):
        """Fact: the authorizer lets a policy pass whom RBAC lets patch."""
        assert team.asks(**asking(CLAIM)).ok
        assert team.asks(**asking(CLAIM, "4")).ok

    def test_what_others_asked_stays_and_is_not_changed(self, team: Author, tenant: Author):
        """Fact: a policy sees the object as it was beside the one that is written."""
        assert team.asks(**asking(CLAIM)).ok

        assert tenant.asks(**asking(CLAIM), more="x").ok
        assert is_refused(tenant.asks(**asking(CLAIM, "9")))

    def test_who_wants_less_needs_no_right(self, team: Author, tenant: Author):
        """Fact: a policy's expression on removed annotations passes in the server."""
        assert team.asks(**asking(CLAIM)).ok

        live = {"apiVersion": "apps/v1", "kind": "Deployment"}
        live["metadata"] = {"name": "web", "namespace": tenant.namespace}
        assert tenant.api.merge(live, {"metadata": {"annotations": {CLAIM: None}}}, "author").ok

    def test_nor_by_way_of_the_status(self, admin: Api, tenant: Author):
        """Fact: a status of a built-in kind may change annotations, and a policy sees it."""
        status = {**WORKLOADS, "resources": ["deployments/status", "statefulsets/status"]}
        rules = [{**WORKLOADS, "verbs": VERBS}, {**status, "verbs": ["patch"]}]
        grant(admin, "tenant", rules, tenant.namespace)
        live = tenant.asks().must()
        patch = {"metadata": {"annotations": {CLAIM: "3"}}}

        written = admin.merge(live, patch, "x", "status").must()
        assert written["metadata"]["annotations"][CLAIM] == "3"  # so that the test can fail
        admin.merge(live, {"metadata": {"annotations": None}}, "x").must()
        assert is_refused(tenant.api.merge(live, patch, "author", "status"))


@pytest.mark.oldest
class TestCustomResources:
    """A claim has the operator take fields with its rights: who writes one needs them too."""

    def test_what_is_claimed_is_for_such_people_to_say(
        self, owner: Api, editor: Api, namespace: str
    ):
        """Fact: a policy compares the spec of a custom resource with the one before."""
        claimed = cronjob(namespace, **asking(CLAIM, "Job/*: **"))
        owner.apply(claimed, "owner").must()

        assert is_refused(editor.merge(claimed, {"spec": {"suspend": True}}, "editor"))
        assert is_refused(editor.merge(claimed, {"spec": {"timeZone": "Etc/UTC"}}, "editor"))
        assert editor.apply(claimed, "editor", force=True).ok
        assert editor.merge(claimed, {"metadata": {"labels": {"a": "b"}}}, "editor").ok
        assert owner.merge(claimed, {"spec": {"suspend": True}}, "owner").ok

    def test_who_wants_less_needs_no_right(self, owner: Api, editor: Api, namespace: str):
        """Fact: a policy lets a claim and a spec change together where the claim goes."""
        claimed = cronjob(namespace, **asking(CLAIM, "Job/*: **"))
        owner.apply(claimed, "owner").must()

        gone = {"metadata": {"annotations": {CLAIM: None}}, "spec": {"suspend": True}}
        assert editor.merge(claimed, gone, "editor").ok

    def test_a_finalizer_can_be_taken_off_what_is_being_deleted(
        self, admin: Api, owner: Api, editor: Api, namespace: str
    ):
        """Fact: a policy is asked about an object that is being deleted, too."""
        claimed = cronjob(namespace, **asking(CLAIM, "Job/*: **"))
        claimed["metadata"]["finalizers"] = ["example.com/waits"]
        owner.apply(claimed, "owner").must()
        path = f"/apis/{cronjobs.VERSION}/namespaces/{namespace}/cronjobs/nightly"
        admin.raw("DELETE", path).must()

        assert editor.merge(claimed, {"metadata": {"finalizers": None}}, "editor").ok

    def test_what_is_planned_is_refused_as_well(
        self, sandbox: Sandbox, editor: Api, namespace: str, tmp_path: Path, capsys
    ):
        """Fact: a policy is asked in a dry run, and its words come in the answer."""
        path = tmp_path / "claim.json"
        path.write_text(json.dumps(cronjob(namespace, **asking(CLAIM, "*/*: **"))), "utf-8")
        kubeconfig = anyio.run(sandbox.kubeconfig_for, "cronjob-editor")
        told = answer(capsys, "plan", "-f", str(path), "--kubeconfig", str(kubeconfig))

        assert told.code == 1
        assert "right to patch jobs there" in " ".join(told.out.split())


def test_in_another_namespace_a_right_counts_for_nothing(admin: Api, team: Author, tenant: Author):
    """Fact: the authorizer asks in the namespace of the request."""
    grant(admin, "tenant", [{**AUTOSCALERS, "verbs": ["patch"]}, {**WORKLOADS, "verbs": VERBS}],
          "default")  # fmt: skip

    assert is_refused(tenant.asks(**asking(CLAIM)))
    assert team.asks(**asking(CLAIM)).ok


def test_a_claim_on_the_copies_takes_the_right_to_patch_secrets_there(
    admin: Api, sandbox: Sandbox, namespace: str
):
    """Fact: a policy on namespaces asks about the namespace that is made."""
    names = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "create", "patch"]}
    grant(admin, "labeller", [names])
    api = Impersonated(sandbox.kubeconfig, "labeller")
    home = {"apiVersion": "v1", "kind": "Namespace"}
    plain = {**home, "metadata": {"name": namespace}}
    claim = {**home, "metadata": {"name": namespace, "annotations": {CLAIM: "Secret/a: data.b"}}}

    assert api.apply(plain, "labeller").ok
    assert is_refused(api.apply(claim, "labeller"))
    new = {**claim, "metadata": {**claim["metadata"], "name": f"{namespace}-new"}}
    assert is_refused(api.apply(new, "labeller"))
    grant(
        admin,
        "labeller",
        [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["patch"]}],
        namespace,
    )
    assert api.apply(claim, "labeller").ok
    api.close()


def test_among_too_many_annotations_none_is_looked_for(team: Author, tenant: Author):
    """Fact: a policy's costs are bounded by the server, by estimates of its own."""
    others = {YIELD: "x", "example.com/ars.44smkn.github.io": "x"}
    many = others | {f"example.com/{number}": "" for number in range(WIDEST - len(others))}

    assert tenant.asks(**many).ok
    assert is_refused(tenant.asks(**many, one="more"))
    assert team.asks(**many, one="more").ok
    assert tenant.asks(**many, one="more").ok
