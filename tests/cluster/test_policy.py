"""The admission policy on the real server: what it refuses the operator, and what it lets pass."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from hedgerow_testing.api import Api, Object
from hedgerow_testing.sandbox.cluster import Sandbox
from support.cluster.bluegreens import ROOT
from support.cluster.policies import (
    ACCOUNT,
    CLAIMS,
    DIRECTORY,
    MANAGER,
    TAKINGS,
    USER,
    Taking,
    container,
    deployment,
    manifest,
    must_refuse,
    settings,
)

pytestmark = [pytest.mark.cluster, pytest.mark.oldest]


def dry_run(sandbox: Sandbox, directory: Path, *flags: str) -> CompletedProcess[str]:
    """Apply a kustomize directory as the guide says to, for the server to look at only."""
    command = [sandbox.kubectl, "--kubeconfig", sandbox.kubeconfig, "apply", "--server-side"]
    return subprocess.run(
        [*command, "--dry-run=server", *flags, "-k", directory],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


class TestManifests:
    def test_kubectl_takes_the_directory(self, sandbox: Sandbox):
        """Fact: kubectl builds, and the server validates, the policy."""
        ended = dry_run(sandbox, DIRECTORY)

        assert ended.stdout.count("serverside-applied (server dry run)") == 2
        assert ended.stderr == ""

    def test_kubectl_takes_the_patch_of_the_guide(self, sandbox: Sandbox, tmp_path: Path):
        """Fact: kubectl's kustomize applies the patch of the guide."""
        shutil.copytree(DIRECTORY, tmp_path / "policy")
        guide = (ROOT / "docs" / "guides" / "policy.md").read_text("utf-8")
        (tmp_path / "mine").mkdir()
        patched = guide.partition("```yaml\n")[2].partition("```")[0]
        (tmp_path / "mine" / "kustomization.yaml").write_text(patched, "utf-8")

        ended = dry_run(sandbox, tmp_path / "mine", "-o", "yaml")

        assert "system:serviceaccount:caches:hedgerow" in ended.stdout
        assert ACCOUNT not in ended.stdout


class TestOwnWrites:
    def test_making_changing_and_releasing_pass(self, us: Api, admin: Api, namespace: str):
        """Fact: the server's CEL judges managed fields before and after."""
        us.apply(settings(namespace, a="1", b="1"), MANAGER).must()
        admin.apply(settings(namespace, b="1", theirs="1"), "other").must()

        us.apply(settings(namespace, a="2", b="1"), MANAGER).must()
        us.apply(settings(namespace, a="3"), MANAGER).must()

        assert us.get(settings(namespace)).must()["data"] == {"a": "3", "b": "1", "theirs": "1"}
        us.apply(manifest("ConfigMap", namespace), MANAGER).must()
        assert us.get(settings(namespace)).must()["data"] == {"b": "1", "theirs": "1"}

    def test_another_instance_writes_under_its_own_name(self, us: Api, namespace: str):
        """Fact: the server's CEL matches a field manager's name."""
        assert us.apply(settings(namespace, a="1"), "hedgerow-x-bluegreen").status == 201

    def test_the_status_passes_whoever_holds_the_spec(self, us: Api, admin: Api, namespace: str):
        """Fact: the server shows a policy the entries of a status apart."""
        admin.apply(deployment(namespace, container("a")), "other").must()
        status = manifest("Deployment", namespace, "apps/v1", status={"replicas": 3})

        live = us.apply(status, MANAGER, subresource="status").must()

        assert live["status"]["replicas"] == 3

    def test_whether_something_could_be_created_may_be_asked_and_not_done(
        self, us: Api, namespace: str
    ):
        """Fact: the server tells a policy that a request is a dry run."""
        body = settings(namespace, a="1")
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        params = {"fieldManager": MANAGER, "dryRun": "All"}

        assert us.raw("POST", path, params=params, json=body).status == 201
        assert us.get(body).status == 404
        must_refuse(us.raw("POST", path, params={"fieldManager": MANAGER}, json=body), "apply only")

    def test_what_another_holds_may_be_deleted(self, us: Api, admin: Api, namespace: str):
        """Fact: the server's CEL lets deletions pass."""
        made = admin.apply(settings(namespace, theirs="1"), "other").must()

        assert us.delete(made, uid=made["metadata"]["uid"]).ok

    def test_a_lease_passes_between_replicas_and_from_nobody_else(
        self, us: Api, admin: Api, namespace: str
    ):
        """Fact: the server's CEL compares the holders of a Lease."""

        def lease(holder: str) -> Object:
            spec = {"holderIdentity": holder}
            return manifest("Lease", namespace, "coordination.k8s.io/v1", spec=spec)

        us.apply(lease("one"), "hedgerow-lease-one").must()
        us.apply(lease("two"), "hedgerow-lease-two", force=True).must()
        admin.apply(lease("three"), "other", force=True).must()

        must_refuse(us.apply(lease("two"), "hedgerow-lease-two", force=True), "other (Apply)")

    def test_an_event_passes(self, us: Api, namespace: str):
        """Fact: the server asks the policy about Events."""
        event = manifest(
            "Event",
            namespace,
            "events.k8s.io/v1",
            eventTime="2026-01-01T00:00:00.000000Z",
            reportingController="hedgerow.dev/bluegreen",
            reportingInstance="one",
            action="Apply",
            reason="Test",
            type="Normal",
            regarding={"kind": "ConfigMap", "name": "one", "namespace": namespace},
        )

        assert us.apply(event, MANAGER).status == 201

    def test_a_review_needs_no_field_manager(self, us: Api):
        """Fact: the server asks no policy about reviews, or shows them no manager."""
        group = "authorization.k8s.io"
        spec = {"resourceAttributes": {"verb": "get", "resource": "pods"}}
        review = {"apiVersion": f"{group}/v1", "kind": "SelfSubjectAccessReview", "spec": spec}

        assert us.raw("POST", f"/apis/{group}/v1/selfsubjectaccessreviews", json=review).ok


class TestTakeovers:
    def test_a_forced_apply_is_refused_with_holder_and_remedies(
        self, us: Api, admin: Api, namespace: str
    ):
        """Fact: the server's CEL names who held a field that is taken."""
        us.apply(settings(namespace, ours="1"), MANAGER).must()
        before = admin.apply(settings(namespace, theirs="1"), "other").must()

        refused = us.apply(settings(namespace, ours="1", theirs="2"), MANAGER, force=True)

        must_refuse(
            refused,
            f"{MANAGER} would take fields from other (Apply)",
            "hedgerow.dev/yield",
            f"{CLAIMS}=true",
        )
        assert us.get(before).must() == before

    def test_without_force_the_server_itself_names_the_conflict(
        self, us: Api, admin: Api, namespace: str
    ):
        """Fact: a conflict comes before admission."""
        admin.apply(settings(namespace, theirs="1"), "other").must()

        refused = us.apply(settings(namespace, theirs="2"), MANAGER)

        assert (refused.status, refused.conflicts) == (409, [".data.theirs"])

    def test_what_was_scaled_is_not_scaled_back(self, us: Api, admin: Api, namespace: str):
        """Fact: the server shows a policy the entry of a scale."""
        wanted = deployment(namespace, container("a"), replicas=2)
        us.apply(wanted, MANAGER).must()
        admin.merge(wanted, {"spec": {"replicas": 4}}, "kubectl", "scale").must()

        must_refuse(us.apply(wanted, MANAGER, force=True), "kubectl (Update scale)")
        scaled = us.merge(wanted, {"spec": {"replicas": 2}}, MANAGER, "scale")
        must_refuse(scaled, "no other subresource")

    @pytest.mark.parametrize("taking", TAKINGS, ids=lambda taking: taking.name)
    def test_what_is_no_apply_is_refused(self, us: Api, admin: Api, namespace: str, taking: Taking):
        """Fact: the server tells a policy how each kind of write was made."""
        us.apply(settings(namespace, ours="1"), MANAGER).must()
        before = admin.apply(settings(namespace, theirs="1"), "other").must()

        must_refuse(taking.send(us, before), taking.word)

        assert us.get(before).must() == before

    def test_a_post_is_refused(self, us: Api, namespace: str):
        """Fact: the server tells a policy that a request creates by POST."""
        must_refuse(us.create(settings(namespace, a="1"), MANAGER), "server-side apply only")

    @pytest.mark.parametrize("manager", ["kubectl", "hedgerow", "hedgerower-x"])
    def test_another_name_is_refused(self, us: Api, namespace: str, manager: str):
        """Fact: the server shows a policy the field manager of a request."""
        must_refuse(us.apply(settings(namespace, a="1"), manager), f"as field manager {manager}")

    def test_our_name_under_update_is_another(self, us: Api, admin: Api, namespace: str):
        """Fact: the server tells a policy's entries by operation, too."""
        admin.create(settings(namespace, a="1"), MANAGER).must()
        us.apply(settings(namespace, b="1"), MANAGER).must()

        refused = us.apply(settings(namespace, a="2"), MANAGER, force=True)

        must_refuse(refused, f"{MANAGER} (Update)")

    def test_an_item_that_another_changed_is_not_dropped_with_its_values(
        self, us: Api, admin: Api, namespace: str
    ):
        """Fact: the server lets an apply drop an item that others updated inside."""
        wanted = deployment(namespace, container("a"), container("b"))
        us.apply(wanted, MANAGER).must()
        image = "/spec/template/spec/containers/1/image"
        patch = [{"op": "replace", "path": image, "value": "example/theirs:9"}]
        admin.merge(wanted, patch, "kubectl-edit", kind="json").must()
        fewer = deployment(namespace, container("a"))

        must_refuse(us.apply(fewer, MANAGER), "kubectl-edit (Update)")
        unguarded = admin.apply(fewer, MANAGER).must()

        assert [c["name"] for c in unguarded["spec"]["template"]["spec"]["containers"]] == ["a"]

    def test_what_is_in_no_namespace_is_kept_too(self, us: Api, namespace: str):
        """Fact: the server asks the policy about cluster-wide kinds."""
        name = {"metadata": {"name": USER}}
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", **name}

        must_refuse(us.apply({**role, "rules": []}, MANAGER, force=True), "test (Apply)")

    def test_nobody_else_is_held_to_it(self, us: Api, admin: Api, namespace: str):
        """Fact: the server evaluates the policy for the operator's user alone."""
        us.apply(settings(namespace, ours="1"), MANAGER).must()
        admin.apply(settings(namespace, ours="2"), "other", force=True).must()

        admin.apply(settings(namespace, ours="3"), MANAGER, force=True).must()
        admin.merge(settings(namespace), {"data": {"ours": "4"}}, MANAGER).must()
