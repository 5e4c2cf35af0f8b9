"""`hedgerow adopt`, as typed on a real server where no operator runs."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
import yaml

from hedgerow.kube.client import connect
from hedgerow.kube.cluster import Cluster
from hedgerow.kube.errors import Stale
from hedgerow.testing.api import Object
from hedgerow_schemas.base import ApiResource
from support.cluster.bluegreens import FIELD_MANAGER
from support.programs.typed import Garden, Typing, body, typing

pytestmark = pytest.mark.cluster

CHILD = f"deploy/{Garden.NAME}"
IMAGE = '.spec.template.spec.containers[name="c"].image'
ARGS = '.spec.template.spec.containers[name="c"].args'
DEPLOYMENT = ApiResource("apps/v1", "Deployment", "deployments")


@pytest.fixture
def typed(sandbox, namespace, capsys) -> Typing:
    return typing(sandbox.kubeconfig, namespace, capsys)


@pytest.fixture
def garden(api, namespace) -> Garden:
    return Garden(api, namespace)


@pytest.fixture
def contested(garden: Garden) -> Garden:
    """What another operator made, of which hedgerow declares another image."""
    garden.original()
    garden.half()
    garden.contest(IMAGE)
    return garden


def others(live: Object) -> list[tuple[str, ...]]:
    keys = ("manager", "operation", "subresource")
    entries = live["metadata"].get("managedFields", [])
    return [tuple(filter(None, map(e.get, keys))) for e in entries]


@pytest.mark.oldest
class TestMoves:
    def test_contested_and_shared_fields_are_the_controllers_then(self, contested, typed):
        before = contested.live()

        told = typed("adopt", CHILD, "--from", "manager")

        assert told.code == 0, told.err
        after = contested.live()
        assert body(after) == body(before)
        assert others(after) == [(FIELD_MANAGER, "Apply")]
        assert contested.held("image") == contested.held("selector") == {FIELD_MANAGER}
        assert contested.held("args") == contested.held("replicas") == set()
        assert "no value changed" in told.out
        assert "as soon as the operator runs" in told.out

    def test_the_controllers_next_apply_meets_no_conflict(self, contested, typed):
        typed("adopt", CHILD, "--from", "manager")

        live = contested.declare()

        spec = live["spec"]["template"]["spec"]["containers"][0]
        assert (spec["image"], spec["args"]) == ("example/echo:1", ["x"])

    def test_they_are_shown_first_and_nothing_is_written(self, contested, typed, audit_log):
        mark = audit_log.mark()

        told = typed("adopt", CHILD, "--from", "manager", "--dry-run", "-o", "json")

        rows = told.rows()
        assert rows[IMAGE] == f"taken {FIELD_MANAGER}"
        assert rows[".spec.selector"] == f"shared {FIELD_MANAGER}"
        assert rows[ARGS] == rows[".spec.replicas"] == "unowned"
        assert told.json["dryRun"] is True
        assert audit_log.writes(mark, namespace=contested.namespace) == []
        table = typed("adopt", CHILD, "--from", "manager", "--dry-run").out
        assert "FIELD" in table
        assert "old:1" in table
        assert "would move" in table

    def test_one_field_leaves_the_rest_where_it_is(self, contested, typed):
        field = 'spec.template.spec.containers[name="c"].image'

        assert typed("adopt", CHILD, "--from", "manager", "--field", field).code == 0

        assert contested.held("image") == {FIELD_MANAGER}
        assert contested.held("args") == contested.held("replicas") == {"manager"}
        assert contested.held("selector") == {"manager", FIELD_MANAGER}

    def test_to_a_manager_that_is_named_goes_all(self, contested, typed):
        before = contested.live()

        assert typed("adopt", CHILD, "--from", "manager", "--to", "team-a").code == 0

        assert body(contested.live()) == body(before)
        assert contested.held("args") == contested.held("replicas") == {"team-a"}
        assert contested.held("selector") == {"team-a", FIELD_MANAGER}

    def test_another_manager_s_apply_is_moved_too(self, garden, typed):
        garden.declare()
        spec = {"template": {"spec": {"containers": [garden.container(image="example/echo:1")]}}}
        garden.api.apply({**garden.target, "spec": spec}, "argocd").must()

        assert typed("adopt", CHILD, "--from", "argocd", "--operation", "Apply").code == 0

        assert garden.held("image") == {FIELD_MANAGER}


@pytest.mark.oldest
class TestSeveralEntries:
    @pytest.fixture
    def scaled(self, garden: Garden) -> Garden:
        """One manager with three entries: its apply, its update and its scale."""
        garden.declare(replicas=2)
        garden.api.apply({**garden.target, "spec": {"minReadySeconds": 1}}, "kubectl").must()
        garden.api.merge(garden.target, {"spec": {"paused": True}}, "kubectl").must()
        scale = {"spec": {"replicas": 4}}
        garden.api.merge(garden.target, scale, "kubectl", "scale").must()
        garden.contest(".spec.replicas", manager="kubectl")
        return garden

    def test_all_go_in_one_write(self, scaled, typed, audit_log):
        mark = audit_log.mark()

        assert typed("adopt", CHILD, "--from", "kubectl").code == 0

        assert others(scaled.live()) == [(FIELD_MANAGER, "Apply")]
        assert scaled.live()["spec"]["replicas"] == 4
        writes = audit_log.writes(mark, namespace=scaled.namespace)
        assert [w["requestURI"].partition("?")[2].partition("&")[0] for w in writes] == [
            f"fieldManager={FIELD_MANAGER}",
            "fieldManager=hedgerow-cli",
        ]

    def test_one_is_chosen_by_operation_and_subresource(self, scaled, typed):
        words = ("--operation", "Update", "--subresource", "scale")

        assert typed("adopt", CHILD, "--from", "kubectl", *words).code == 0

        assert scaled.held("replicas") == {FIELD_MANAGER}
        assert scaled.held("paused") == scaled.held("minReadySeconds") == {"kubectl"}

    def test_one_that_is_not_there_is_told_with_those_that_are(self, scaled, typed):
        told = typed("adopt", CHILD, "--from", "kubectl", "--subresource", "status")

        assert told.code == 1
        assert "it has Apply, Update, Update scale" in told.err


class TestStatus:
    def test_the_status_of_a_resource_is_adopted_from_an_original_operator(self, garden, typed):
        live = garden.api.get(garden.owner_target).must()
        live["status"] = {"routeTo": "Green"}
        garden.api.put(live, "manager", "status").must()
        garden.contest(".status.routeTo", of="BlueGreen/demo")

        told = typed("adopt", "bluegreen/demo", "--from", "manager")

        assert told.code == 0, told.err
        after = garden.api.get(garden.owner_target).must()
        assert after["status"]["routeTo"] == "Green"
        assert (FIELD_MANAGER, "Apply", "status") in others(after)
        assert not any(one[0] == "manager" for one in others(after))
        assert garden.held("routeTo", after) == {"user", FIELD_MANAGER}

    def test_what_is_not_status_of_it_is_refused(self, garden, typed):
        told = typed("adopt", "bluegreen/demo", "--from", "user")

        assert told.code == 1
        assert "declares nothing of BlueGreen/demo but its status" in told.err


class TestClientSide:
    def test_what_kubectl_applied_is_adopted_and_its_annotation_stays(
        self, garden, typed, sandbox, tmp_path
    ):
        import subprocess

        file = tmp_path / "d.yaml"
        pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [garden.container()]}}
        meta = {**garden.target["metadata"], "ownerReferences": [garden.reference]}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": pod, "replicas": 2}
        file.write_text(yaml.safe_dump({**garden.target, "metadata": meta, "spec": spec}))
        command = [str(sandbox.kubectl), "--kubeconfig", str(sandbox.kubeconfig)]
        subprocess.run([*command, "apply", "-f", str(file)], check=True, capture_output=True)
        garden.declare()
        before = garden.live()

        told = typed("adopt", CHILD, "--from", "kubectl-client-side-apply")

        assert told.code == 0, told.err
        assert body(garden.live()) == body(before)
        assert garden.held("image") == {FIELD_MANAGER}
        last = "kubectl.kubernetes.io/last-applied-configuration"
        assert garden.held(last) == set()
        assert last in garden.live()["metadata"]["annotations"]
        assert "kubectl apply --server-side" in told.out


class TestEmptied:
    @pytest.fixture
    def emptied(self, garden: Garden) -> Garden:
        """A child whose records somebody wiped."""
        garden.original()
        patch = [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]
        garden.api.merge(garden.target, patch, "x", kind="json").must()
        assert "managedFields" not in garden.live()["metadata"]
        return garden

    def test_what_is_contested_of_it_is_taken_and_the_rest_is_nobody_s(self, emptied, typed):
        emptied.contest(IMAGE, manager="before-first-apply")
        before = emptied.live()

        shown = typed("adopt", CHILD, "--from", "before-first-apply", "--dry-run", "-o", "json")
        assert shown.rows()[IMAGE] == f"taken {FIELD_MANAGER}"
        told = typed("adopt", CHILD, "--from", "before-first-apply")

        assert told.code == 0, told.err
        assert body(emptied.live()) == body(before)
        assert others(emptied.live()) == [(FIELD_MANAGER, "Apply")]

    def test_what_the_operator_applied_since_stays_its_own(self, emptied, typed):
        emptied.half()
        emptied.contest(IMAGE, manager="before-first-apply")

        assert typed("adopt", CHILD, "--from", "before-first-apply").code == 0

        assert others(emptied.live()) == [(FIELD_MANAGER, "Apply")]
        assert emptied.held("image") == emptied.held("selector") == {FIELD_MANAGER}


class TestRefused:
    def test_an_object_that_hedgerow_has_nothing_to_do_with(self, garden, typed):
        meta = {"name": "x", "namespace": garden.namespace}
        other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "b"}}
        garden.api.create(other, "manager").must()

        assert "--to" in typed("adopt", "cm/x", "--from", "manager").err
        assert typed("adopt", "cm/x", "--from", "manager", "--to", "me").code == 0
        assert others(garden.api.get(other).must()) == [("me", "Apply")]

    def test_a_user_without_the_right(self, contested, typed, sandbox):
        before = contested.live()
        nobody = anyio.run(sandbox.kubeconfig_for, "nobody-at-all")

        told = typed("adopt", CHILD, "--from", "manager", kubeconfig=nobody)

        assert told.code == 1
        assert contested.live() == before


class TestTheOneWrite:
    """What the server refuses of it, so that nothing is removed that was not looked at."""

    @pytest.fixture
    def remove(self, sandbox):
        def removing(live: Object, edits: dict[int, Any]) -> Object:
            async def sent() -> Object:
                async with connect(kubeconfig=str(sandbox.kubeconfig)) as cluster:
                    return await cluster.replace_managed_fields(DEPLOYMENT, live, edits)

            return anyio.run(sent)

        return removing

    def test_another_uid(self, contested, remove):
        live = contested.live()
        other = {**live, "metadata": {**live["metadata"], "uid": "another"}}

        with pytest.raises(Stale):
            remove(other, {1: ()})
        assert contested.live() == live

    def test_an_object_that_has_changed_since(self, contested, remove):
        live = contested.live()
        contested.api.merge(contested.target, {"spec": {"paused": True}}, "kubectl").must()
        changed = contested.live()

        with pytest.raises(Stale):
            remove(live, {1: ()})
        assert contested.live() == changed

    def test_another_entry_at_that_place(self, contested, remove):
        live = contested.live()
        entries = [{**e, "time": "2020-01-01T00:00:00Z"} for e in live["metadata"]["managedFields"]]
        other = {**live, "metadata": {**live["metadata"], "managedFields": entries}}

        with pytest.raises(Stale):
            remove(other, {1: ()})
        assert contested.live() == live


class TestMeanwhile:
    """What happens while it is at work."""

    def test_a_change_in_between_is_looked_at_and_it_is_begun_anew(
        self, contested, typed, monkeypatch
    ):
        sent, replace = [], Cluster.replace_managed_fields

        async def late(self: Cluster, api: Any, live: Object, edits: Any, **named: Any) -> Object:
            sent.append(live)
            if len(sent) == 1:
                pause = {"spec": {"minReadySeconds": 9}}
                contested.api.merge(contested.target, pause, "kubectl").must()
            return await replace(self, api, live, edits, **named)

        monkeypatch.setattr(Cluster, "replace_managed_fields", late)

        assert typed("adopt", CHILD, "--from", "manager").code == 0

        assert len(sent) == 2
        assert contested.live()["spec"]["minReadySeconds"] == 9
        assert contested.held("minReadySeconds") == {"kubectl"}
        assert contested.held("image") == {FIELD_MANAGER}

    def test_an_operator_that_gives_up_each_time_what_it_sees_contested_does_not_prevent_it(
        self, contested, typed, monkeypatch
    ):
        replace = Cluster.replace_managed_fields

        async def late(self: Cluster, api: Any, live: Object, edits: Any, **named: Any) -> Object:
            contested.half()
            return await replace(self, api, live, edits, **named)

        monkeypatch.setattr(Cluster, "replace_managed_fields", late)

        assert typed("adopt", CHILD, "--from", "manager").code == 0

        assert contested.held("image") == set()
        assert others(contested.live()) == [(FIELD_MANAGER, "Apply")]

    def test_an_object_that_is_made_anew_is_left_alone(self, contested, typed, monkeypatch):
        replace = Cluster.replace_managed_fields

        async def late(self: Cluster, api: Any, live: Object, edits: Any, **named: Any) -> Object:
            contested.api.delete(contested.target).must()
            contested.original()
            return await replace(self, api, live, edits, **named)

        monkeypatch.setattr(Cluster, "replace_managed_fields", late)

        told = typed("adopt", CHILD, "--from", "manager")

        assert told.code == 1
        assert "deleted and created again" in told.err
        assert contested.held("image") == {"manager"}
