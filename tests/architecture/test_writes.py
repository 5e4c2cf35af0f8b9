"""The promise of the whole: server-side apply, unforced, and nothing else that persists."""

from __future__ import annotations

import ast

from support.sources import Module, modules

CLIENT = "hedgerow/kube/cluster.py"
"""Where requests are put together: the one place that may name a method."""

FOREIGN = ("merge-patch+json", "json-patch+json", "strategic-merge")
REVIEWS = "selfsubjectaccessreviews"
"""What may be POSTed: nothing of it is stored."""


def strings(module: Module) -> set[str]:
    nodes = [node for node in ast.walk(module.tree) if isinstance(node, ast.Constant)]
    return {node.value for node in nodes if isinstance(node.value, str)}


def hedgerow() -> list[Module]:
    """Everything but the sandbox, which registers its own nodes before there is an operator."""
    return [module for module in modules() if "/sandbox/" not in module.name]


class TestWrites:
    def test_no_other_kind_of_patch_is_known(self):
        named = [
            module.name
            for module in modules()
            if any(kind in text for kind in FOREIGN for text in strings(module))
        ]

        assert named == []

    def test_nothing_is_put(self):
        assert [module.name for module in modules() if "PUT" in strings(module)] == []

    def test_requests_that_change_something_are_made_in_one_place(self):
        makers = {
            module.name: verbs
            for module in hedgerow()
            if (verbs := strings(module) & {"PATCH", "POST", "DELETE"})
        }

        assert makers == {CLIENT: {"PATCH", "POST", "DELETE"}}

    def test_what_is_posted_is_a_review(self):
        [client] = [module for module in modules() if module.name == CLIENT]
        posts = [
            ast.unparse(node)
            for node in ast.walk(client.tree)
            if isinstance(node, ast.Call) and "POST" in {a.value for a in constants(node)}
        ]

        assert len(posts) == 1
        assert "_REVIEW" in posts[0]
        assert any(text.endswith(REVIEWS) for text in strings(client))

    def test_force_is_off_unless_it_is_asked_for(self):
        defaults = [
            default.value
            for module in modules()
            for node in ast.walk(module.tree)
            if isinstance(node, ast.arguments)
            for name, default in zip(node.kwonlyargs, node.kw_defaults, strict=True)
            if name.arg == "force" and isinstance(default, ast.Constant)
        ]

        assert defaults == [False]


def constants(call: ast.Call) -> list[ast.Constant]:
    return [argument for argument in call.args if isinstance(argument, ast.Constant)]
