"""The two places where a write is forced: fields that a user claimed, and one that he typed.

Beside them, dry runs of `hedgerow plan` are forced.
"""

from __future__ import annotations

import ast

from support.code.sources import running, spelled

PLANNING = "hedgerow_tools/planning/"


def forced() -> list[tuple[str, ast.Call, str]]:
    """Return the calls that say whether to force: the module, the call, and what it says."""
    return [
        (module.name, node, ast.unparse(keyword.value))
        for module in running()
        for node in module.nodes
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "force"
    ]


def test_the_applier_forces_for_claims_and_else_only_promote_and_rollback():
    assert [(name, value) for name, _, value in forced() if PLANNING not in name] == [
        ("hedgerow/runtime/passes/applier.py", "bool(write.claims)"),
        ("hedgerow_tools/switch/command.py", "True"),
    ]


def test_what_plan_forces_is_a_dry_run():
    applies = [call for name, call, _ in forced() if PLANNING in name]
    dry_runs = [
        call for call in applies if any(ast.unparse(one) == "dry_run=True" for one in call.keywords)
    ]
    own = {"self._applied", "self._answered"}  # which pass it on to those

    assert len(dry_runs) == 2
    assert {spelled(call.func) for call in applies if call not in dry_runs} == own


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
        and spelled(node.func) == "Write"
        and any(keyword.arg == "claims" for keyword in node.keywords)
    ]

    assert given == ["hedgerow/plan/children.py"]
