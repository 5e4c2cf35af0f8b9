"""`hedgerow owners`, as typed: what is asked of the cluster and what is printed of its answer."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from hedgerow_schemas.base import ApiResource
from hedgerow_testing.memory.kind import ServedKind
from support.objects.judged import Object
from support.server.apiserver import ApiServer, refusal
from support.server.store import Store
from tools.owners.owned import IMAGE, LIVE, OWNER

NODE = ServedKind(ApiResource("v1", "Node", "nodes", namespaced=False), {})
OWNER_IN_SHOP = {**OWNER, "metadata": {**OWNER["metadata"], "namespace": "shop"}}


PATH = "/apis/app.demo.kakao.com/v1/namespaces/shop/bluegreens/demo"
pytestmark = pytest.mark.usefixtures("cluster")
COMMAND = ("owners",)


@pytest.fixture
def cluster(server, monkeypatch) -> Store:
    """Return a store with a Deployment of a BlueGreen's in it."""
    monkeypatch.setenv("COLUMNS", "100")
    server.store.serve(NODE)
    server.store.put(LIVE)
    server.store.put(OWNER_IN_SHOP)
    return server.store


def reads(server: ApiServer) -> list[tuple[str, str, str]]:
    return [(kind, name, namespace) for kind, namespace, name in server.asked("read")]


class TestBuiltIn:
    """A resource of a built-in kind says in an annotation what is contested."""

    @staticmethod
    def deployment(about: str, path: str) -> Object:
        field = {"object": about, "path": path, "manager": "rival", "operation": "Apply"}
        told = {"hedgerow.dev/status": json.dumps({"contested": [field]})}
        meta = {"name": "web", "namespace": "shop", "uid": "u", "annotations": told}
        noted = {"f:metadata": {"f:annotations": {"f:hedgerow.dev/status": {}}}}
        entries = [
            {"manager": "rival", "operation": "Apply", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            {"manager": "hedgerow-scaler", "operation": "Apply", "fieldsV1": noted},
        ]
        return {
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {**meta, "managedFields": entries}, "spec": {"replicas": 3},
        }  # fmt: skip

    def test_its_own_fields_are_shown_with_what_settles_them(self, typed, cluster):
        cluster.put(self.deployment("Deployment/web", ".spec.replicas"))
        code, out, err = typed("deployment/web", "--contested")

        assert (code, err) == (0, "")
        assert "kubectl annotate deployments.apps web" in out
        assert "hedgerow.dev/claim=Deployment/web: spec.replicas" in out

    def test_those_of_an_object_that_it_claims_are_shown_too(self, typed, cluster, server):
        name = "HorizontalPodAutoscaler"
        cluster.put(self.deployment(f"{name}/hpa", ".spec.minReplicas"))
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        entry = {
            "manager": "rival", "operation": "Apply", "fieldsV1": {"f:spec": {"f:minReplicas": {}}}
        }  # fmt: skip
        cluster.put(
            {
                "apiVersion": "autoscaling/v2",
                "kind": name,
                "metadata": {"name": "hpa", "namespace": "shop", "managedFields": [entry]},
                "spec": {"scaleTargetRef": target, "minReplicas": 2},
            }
        )
        code, out, _ = typed("horizontalpodautoscaler/hpa", "--contested")

        assert code == 0
        assert reads(server) == [(name, "hpa", "shop"), ("Deployment", "web", "shop")]
        assert f"hedgerow.dev/claim={name}/hpa: spec.minReplicas" in out

    def test_one_that_says_nothing_is_anybodys(self, typed, cluster):
        live = self.deployment("Deployment/web", ".spec.replicas")
        del live["metadata"]["annotations"]
        cluster.put(live)

        assert "no field is contested" in typed("deployment/web", "--contested")[1]


class TestAsked:
    def test_the_object_is_read_where_the_context_says(self, typed, server):
        assert typed("deployment/web")[0] == 0
        assert reads(server) == [("Deployment", "web", "shop"), ("BlueGreen", "demo", "shop")]

    def test_flags_choose_cluster_and_namespace(self, typed, server):
        typed("deployment/web", "-n", "other", "--context", "there", "--kubeconfig", "file")

        assert reads(server)[0] == ("Deployment", "web", "other")
        assert server.logins[0]["context"] == "there"
        assert server.logins[0]["kubeconfig"] == "file"
        assert re.fullmatch(r"hedgerow/\d.*", server.logins[0]["user_agent"])

    def test_what_is_cluster_wide_is_read_without_namespace(self, typed, cluster, server):
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}}
        cluster.put(node)

        assert typed("node/x", "-n", "other")[0] == 0
        assert reads(server) == [("Node", "x", "")]

    def test_a_resource_of_ours_tells_itself_what_is_contested_in_it(self, typed, server):
        _, out, _ = typed("bluegreen/demo", "-o", "json")

        assert reads(server) == [("BlueGreen", "demo", "shop")]
        found = json.loads(out)
        assert [(one["path"], one["contested"]) for one in found["missing"]] == [
            (".status.routeTo", "BlueGreen/demo")
        ]
        assert found["contested"][0]["remedies"] == [
            {
                "effect": "To write it again",
                "command": "hedgerow adopt BlueGreen.app.demo.kakao.com/demo --from x -n shop",
            }
        ]

    @pytest.mark.parametrize("uid", ["", "another"])
    def test_an_owner_that_is_not_the_one_contests_nothing(self, typed, cluster, uid):
        cluster.drop(OWNER_IN_SHOP)
        if uid:
            cluster.put({**OWNER, "metadata": {**OWNER_IN_SHOP["metadata"], "uid": uid}})

        assert typed("deployment/web", "--contested")[1].endswith("no field is contested\n")

    @pytest.mark.parametrize("references", [[], [{"kind": "ReplicaSet", "controller": True}]])
    def test_an_owner_that_is_not_ours_is_not_read(self, typed, cluster, server, references):
        metadata = {**LIVE["metadata"], "ownerReferences": references}
        cluster.put({**LIVE, "metadata": metadata})
        typed("deployment/web")

        assert reads(server) == [("Deployment", "web", "shop")]

    def test_an_owner_that_cannot_be_read_is_told_and_the_rest_is_shown(self, typed, server):
        server.answers["read BlueGreen"] = refusal(404, "NotFound", "not served")
        code, out, err = typed("deployment/web")

        told = f"hedgerow: contested fields are not marked: GET {PATH}: not served\n"
        assert (code, err) == (0, told)
        assert "contested" not in out

    @pytest.mark.parametrize("flags", [(), ("--contested",), ("--contested", "-o", "json")])
    def test_a_kind_that_may_not_be_read_is_left_out_and_counted(self, typed, server, flags):
        server.answers["read BlueGreen"] = refusal(403, "Forbidden", "you may not")
        code, out, err = typed("deployment/web", *flags)

        assert code == 0
        assert err == (
            "hedgerow: 1 kind is left out, which you may not read here: BlueGreen;"
            f" GET {PATH}: you may not; it is not known which fields are contested\n"
        )
        assert "no field is contested" not in out
        assert out.endswith("it is not known which fields are contested\n") == (
            flags == ("--contested",)
        )

    def test_but_contested_fields_alone_need_its_kind(self, typed, server):
        server.answers["read BlueGreen"] = refusal(404, "NotFound", "not served")
        code, out, err = typed("deployment/web", "--contested")

        assert (code, out) == (1, "")
        assert "not served" in err

    def test_groups_that_do_not_answer_are_told(self, typed, server):
        server.answers["/apis/app.demo.kakao.com/v1"] = refusal(503, "ServiceUnavailable", "down")

        code, _, err = typed("deployment/web")

        assert code == 0
        assert err == "hedgerow: no answer about the kinds of app.demo.kakao.com/v1\n"

    def test_a_kind_that_could_be_another_is_told(self, typed, cluster):
        cluster.serve(ServedKind(ApiResource("v1", "Deployment", "deployments"), {}))

        assert typed("deployments/web")[2].startswith(
            "hedgerow: deployments is taken for deployments.v1.;"
            " it could also mean deployments.v1.apps\n"
        )

    def test_an_object_that_is_not_there_is_one_line(self, typed, cluster):
        cluster.drop(LIVE)

        assert typed("deployment/web") == (
            1,
            "",
            "hedgerow: Deployment/web does not exist in namespace shop; name another with -n\n",
        )
        assert typed("node/x")[2] == "hedgerow: Node/x does not exist\n"

    @pytest.mark.parametrize(
        "word", ["web", "deployment/", "/web", "a/b/c", "deployment/.", "a/.."]
    )
    def test_what_is_no_kind_and_name_is_wrong_usage(self, typed, word):
        code, out, err = typed(word)

        assert (code, out) == (2, "")
        assert err.endswith("; see `hedgerow owners --help`\n")
        assert err.count("\n") == 1


class TestPrinted:
    def test_as_a_tree(self, typed):
        code, out, err = typed("deployment/web")

        assert (code, err) == (0, "")
        assert out.startswith("Deployment shop/web  apps/v1: 10 fields, 7 unowned, 1 contested\n")

    def test_as_json_every_place_has_its_state(self, typed):
        found = json.loads(typed("deployment/web", "-o", "json")[1])
        fields = {field["path"]: field for field in found["fields"]}

        assert found["object"] == {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "namespace": "shop",
            "name": "web",
            "uid": "child",
            "resourceVersion": "101",
        }
        assert fields[".spec.replicas"] == {
            "path": ".spec.replicas",
            "name": "replicas",
            "depth": 1,
            "state": "held",
            "value": 3,
            "managers": [{"manager": "kubectl", "operation": "Update", "subresource": "scale"}],
        }
        assert fields[IMAGE]["contested"] == "BlueGreen/demo"
        assert [holder["manager"] for holder in fields[IMAGE]["managers"]] == [
            "hedgerow-bluegreen",
            "kubectl-set",
        ]
        assert fields['.spec.containers[name="main"]']["state"] == "branch"
        assert "value" not in fields['.spec.containers[name="main"]']
        assert fields[".spec.paused"] == {
            "path": ".spec.paused",
            "name": "paused",
            "depth": 1,
            "state": "unowned",
            "value": False,
            "managers": [],
        }
        assert fields[".metadata.name"]["state"] == "identity"
        assert (fields[".spec"]["state"], fields[".spec"]["managers"]) == ("branch", [])
        assert found["summary"] == {"fields": 10, "unowned": 7, "contested": 1}
        assert found["managers"]["kubectl-set"] == 2
        assert found["gone"] == [
            {
                "path": ".spec.lost",
                "name": ".spec.lost",
                "depth": 0,
                "state": "gone",
                "managers": [
                    {"manager": "old", "operation": "Update", "time": "2026-01-01T11:55:00Z"}
                ],
                "apiVersion": "apps/v1beta1",
            }
        ]

    def test_yaml_says_what_json_says(self, typed):
        as_json, as_yaml = (typed("deployment/web", "-o", form)[1] for form in ("json", "yaml"))

        assert yaml.safe_load(as_yaml) == json.loads(as_json)

    def test_a_manager_may_be_a_glob_and_only_its_fields_are_listed(self, typed):
        found = json.loads(typed("deployment/web", "--manager", "kubectl", "-o", "json")[1])
        globbed = json.loads(typed("deployment/web", "--manager", "kube*", "-o", "json")[1])

        assert [field["path"] for field in found["fields"]] == [".spec", ".spec.replicas"]
        assert len([field for field in globbed["fields"] if field["managers"]]) == 4

    def test_html_is_a_document(self, typed):
        assert typed("deployment/web", "-o", "html")[1].startswith("<!doctype html>")
