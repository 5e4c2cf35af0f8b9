"""Who may ask a controller of a built-in kind for something, by the policy of the overlays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from hedgerow.controllers.scaler.windows import HOLDS, OUT_REPLICAS
from hedgerow.deploy import authors
from hedgerow.deploy.admission_policies import WIDEST
from hedgerow.deploy.names import Names
from hedgerow.plan.yield_and_claim import CLAIM, YIELD
from hedgerow.sandbox.cluster import Sandbox
from hedgerow.testing.api import Api, Object, Reply
from hedgerow.testing.waiting import eventually
from support.cluster.policies import Impersonated
from support.cluster.rights import grant
from support.operator.registered import ALL

pytestmark = pytest.mark.cluster

LABELS = {"app": "web"}
POD = {"containers": [{"name": "c", "image": "i"}]}
SPEC: Object = {
    "selector": {"matchLabels": LABELS},
    "template": {"metadata": {"labels": LABELS}, "spec": POD},
}
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
    made = authors.policy(names, ALL.chosen(("scaler", "secretsync")))
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


def is_refused(reply: Reply) -> bool:
    return reply.status == 403 and POLICY in reply.body["message"]


class TestScaler:
    """One expression of the policy is for both kinds and all keys: later tests have one of them."""

    @pytest.mark.parametrize("kind", MORE)
    @pytest.mark.parametrize("key", [CLAIM, OUT_REPLICAS, HOLDS])
    def test_who_may_not_write_autoscalers_does_not_ask(self, tenant: Author, kind: str, key: str):
        assert is_refused(tenant.asks(kind, **asking(key)))
        assert tenant.asks(kind).ok
        refusal = tenant.asks(kind, **asking(key))
        assert is_refused(refusal)
        assert "right to patch horizontalpodautoscalers there" in refusal.body["message"]

    def test_who_may_does(self, team: Author):
        assert team.asks(**asking(CLAIM)).ok
        assert team.asks(**asking(CLAIM, "4")).ok

    def test_what_others_asked_stays_and_is_not_changed(self, team: Author, tenant: Author):
        assert team.asks(**asking(CLAIM)).ok

        assert tenant.asks(**asking(CLAIM), more="x").ok
        assert is_refused(tenant.asks(**asking(CLAIM, "9")))

    def test_who_wants_less_needs_no_right(self, team: Author, tenant: Author):
        assert team.asks(**asking(CLAIM)).ok

        live = {"apiVersion": "apps/v1", "kind": "Deployment"}
        live["metadata"] = {"name": "web", "namespace": tenant.namespace}
        assert tenant.api.merge(live, {"metadata": {"annotations": {CLAIM: None}}}, "author").ok

    def test_nor_by_way_of_the_status(self, admin: Api, tenant: Author):
        status = {**WORKLOADS, "resources": ["deployments/status", "statefulsets/status"]}
        rules = [{**WORKLOADS, "verbs": VERBS}, {**status, "verbs": ["patch"]}]
        grant(admin, "tenant", rules, tenant.namespace)
        live = tenant.asks().must()
        patch = {"metadata": {"annotations": {CLAIM: "3"}}}

        written = admin.merge(live, patch, "x", "status").must()
        assert written["metadata"]["annotations"][CLAIM] == "3"  # so that the test can fail
        admin.merge(live, {"metadata": {"annotations": None}}, "x").must()
        assert is_refused(tenant.api.merge(live, patch, "author", "status"))


def test_in_another_namespace_a_right_counts_for_nothing(admin: Api, team: Author, tenant: Author):
    grant(admin, "tenant", [{**AUTOSCALERS, "verbs": ["patch"]}, {**WORKLOADS, "verbs": VERBS}],
          "default")  # fmt: skip

    assert is_refused(tenant.asks(**asking(CLAIM)))
    assert team.asks(**asking(CLAIM)).ok


def test_a_claim_on_the_copies_takes_the_right_to_patch_secrets_there(
    admin: Api, sandbox: Sandbox, namespace: str
):
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
    others = {YIELD: "x", "example.com/ars.44smkn.github.io": "x"}
    many = others | {f"example.com/{number}": "" for number in range(WIDEST - len(others))}

    assert tenant.asks(**many).ok
    assert is_refused(tenant.asks(**many, one="more"))
    assert team.asks(**many, one="more").ok
    assert tenant.asks(**many, one="more").ok
