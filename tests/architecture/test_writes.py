"""The promise of the whole: server-side apply, unforced, and nothing else that persists."""

from __future__ import annotations

import ast

import pytest

from hedgerow.kube import dry_runs, review_requests
from hedgerow_schemas.base import ApiResource
from hedgerow_tools.planning import client_side
from support.code.sources import Module, running, spelled

CLIENT = "hedgerow/kube/cluster.py"
"""Where requests are put together: the one place that may name a method."""
PORT = "hedgerow/kube/object_api.py"
"""What a cluster, one in memory and a dry run have in common; it sends nothing."""

ADOPTION = "hedgerow_tools/moving/adoption.py"
"""Where the one write is put together that is no apply: it changes records of ownership alone.

Only commands make it: the operator has no other write than applies and deletes."""

FOREIGN = ("merge-patch+json", "json-patch+json", "strategic-merge")
CONFINEMENT = "hedgerow/deploy/confinement.py"
CREATIONS = "hedgerow/kube/dry_runs.py"
CLIENT_SIDE = "hedgerow_tools/planning/client_side.py"
"""Where is put together what is sent as a dry run only: creations, and what kubectl would send."""
REVIEWS = "hedgerow/kube/review_requests.py"
"""Where is put together what may be POSTed: nothing of it is stored."""


def strings(module: Module) -> set[str]:
    nodes = [node for node in module.nodes if isinstance(node, ast.Constant)]
    return {node.value for node in nodes if isinstance(node.value, str)}


def hedgerow() -> list[Module]:
    """Everything but the sandbox, which registers its own nodes before there is an operator."""
    return [module for module in running() if "/sandbox/" not in module.name]


class TestWrites:
    def test_no_other_kind_of_patch_is_known_but_that_which_adopts(self):
        named = {
            module.name: kinds
            for module in running()
            if (kinds := {kind for kind in FOREIGN for text in strings(module) if kind in text})
        }

        assert named == {ADOPTION: {"json-patch+json"}, CLIENT_SIDE: {"merge-patch+json"}}

    def test_what_is_asked_for_client_side_apply_is_never_written(self):
        api = ApiResource("x.example/v1", "X", "xs")
        sent = [
            dry_runs.created(api, "n", {"metadata": {"name": "x"}}, manager="m"),
            client_side.patched(api, "n", "x", {}, manager="m"),
        ]
        made = [
            ast.unparse(node.args[2])
            for module in running()
            if module.name in {CREATIONS, CLIENT_SIDE}
            for node in module.nodes
            if isinstance(node, ast.Call) and spelled(node.func) == "Request"
        ]

        assert [request.params["dryRun"] for request in sent] == ["All", "All"]
        assert made == ["params(manager)", "dry_runs.params(manager)"]

    def test_only_planning_asks_so_and_whoever_replaces_a_child(self):
        assert {module.name for module in running() if "dry_run_create" in module.text} == {
            CLIENT, PORT, "hedgerow_tools/planning/simulated_cluster.py",
            "hedgerow/runtime/passes/applier.py",
        }  # fmt: skip

    def test_only_adoption_and_planning_send_what_they_made_themselves(self):
        senders = {
            module.name
            for module in running()
            for node in module.nodes
            if isinstance(node, ast.Call) and spelled(node.func).endswith("cluster.send")
        }
        makers = {module.name for module in running() if "Request(" in module.text}

        assert senders == {ADOPTION, "hedgerow_tools/planning/dry_run.py"}
        assert {name for name in makers if not name.startswith("hedgerow/kube/")} == {
            ADOPTION, CLIENT_SIDE,
        }  # fmt: skip

    def test_only_the_commands_that_move_fields_adopt(self):
        words = ("replace_managed_fields", "moving.adoption", "import adoption")
        named = {word: [m.name for m in running() if word in m.text] for word in words}

        assert named == {
            "replace_managed_fields": [ADOPTION, "hedgerow_tools/moving/bulk.py"],
            "moving.adoption": ["hedgerow_tools/moving/bulk.py"],
            "import adoption": [],
        }

    def test_it_can_express_nothing_but_other_managed_fields(self):
        [adoption] = [module for module in running() if module.name == ADOPTION]
        functions = [node for node in adoption.tree.body if isinstance(node, ast.FunctionDef)]
        public = [node.name for node in functions if not node.name.startswith("_")]
        paths = {text for text in strings(adoption) if text.startswith("/")}
        operations = {
            value.value
            for node in adoption.nodes
            if isinstance(node, ast.Dict)
            for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant) and key.value == "op"
            if isinstance(value, ast.Constant)
        }

        assert public == ["request"]  # which `replace_managed_fields` sends
        assert paths - {"/"} == {
            "/metadata/uid", "/metadata/resourceVersion", "/metadata/managedFields"
        }  # fmt: skip
        assert operations == {"test", "replace"}

    def test_nothing_is_put(self):
        assert [module.name for module in running() if "PUT" in strings(module)] == []

    def test_requests_that_change_something_are_made_in_one_place(self):
        makers = {
            module.name: verbs
            for module in hedgerow()
            if (verbs := strings(module) & {"PATCH", "POST", "DELETE"})
        }

        assert makers == {
            CLIENT: {"PATCH", "DELETE"},
            ADOPTION: {"PATCH"},
            REVIEWS: {"POST"},
            CREATIONS: {"POST"},
            CLIENT_SIDE: {"PATCH"},
            CONFINEMENT: {"DELETE"},  # what a policy judges; it sends nothing
        }

    def test_what_is_posted_is_a_review(self):
        assert review_requests.REVIEWS.keys() == {
            "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview",
            "TokenReview",
        }  # fmt: skip
        with pytest.raises(KeyError):
            review_requests.review("Pod", {})

    def test_force_is_off_unless_it_is_asked_for(self):
        defaults = [
            default.value
            for module in running()
            for node in module.nodes
            if isinstance(node, ast.arguments)
            for name, default in zip(node.kwonlyargs, node.kw_defaults, strict=True)
            if name.arg == "force" and isinstance(default, ast.Constant)
        ]

        assert set(defaults) == {False}
