"""The two places where a write is forced: fields that a user claimed, and one that he typed."""

from __future__ import annotations

import ast

from support.code.sources import running


def test_the_applier_forces_for_claims_and_else_only_promote_and_rollback():
    asked = [
        (module.name, ast.unparse(keyword.value))
        for module in running()
        for node in module.nodes
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "force"
    ]

    assert asked == [
        ("hedgerow/runtime/passes/applier.py", "bool(write.claims)"),
        ("hedgerow_tools/switch/command.py", "True"),
    ]


def test_only_one_request_can_say_so():
    said = [
        module.name
        for module in running()
        for node in module.nodes
        if isinstance(node, ast.Constant) and node.value == "force"
    ]

    assert said == ["hedgerow/kube/cluster.py"]


def test_only_planning_a_child_gives_a_write_its_claims():
    given = [
        module.name
        for module in running()
        for node in module.nodes
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "Write"
        and any(keyword.arg == "claims" for keyword in node.keywords)
    ]

    assert given == ["hedgerow/plan/children.py"]
