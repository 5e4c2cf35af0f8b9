"""The shape of the code: what may follow a wait, and a promise at the head of every module."""

from __future__ import annotations

import ast
import re

from support.code.sources import Module, modules, spelled


def test_after_a_wait_nothing_is_removed_that_may_be_gone_already():
    """While one task waits for an answer, others change the maps that they share."""
    odd = [
        f"{module.name}:{gone.lineno}: {ast.unparse(gone)}: use pop(key, None)"
        for module in modules()
        for task in module.nodes
        if isinstance(task, ast.AsyncFunctionDef)
        for gone in ast.walk(task)
        if isinstance(gone, ast.Delete)
        and any(isinstance(target, ast.Subscript) for target in gone.targets)
    ]

    assert odd == []


def test_a_task_group_that_is_kept_is_let_go_before_it_ends():
    """Afterwards it takes no task, and whoever starts one would end the process with an error."""
    opened = [
        (module, found, item.optional_vars)
        for module in modules()
        for found in module.nodes
        if isinstance(found, ast.AsyncWith)
        for item in found.items
        if "create_task_group()" in ast.unparse(item.context_expr)
    ]
    odd = {
        module.name
        for module, found, group in opened
        if isinstance(group, ast.Attribute) or not lets_go(found, group)
    }

    assert len(opened) > 10
    assert odd == set()


def lets_go(body: ast.AsyncWith, group: ast.expr | None) -> bool:
    """Return whether what is kept of a task group is None again when its body has ended."""
    name = ast.unparse(group) if group else "-"
    kept = [
        ast.unparse(each.targets[0])
        for each in ast.walk(body)
        if isinstance(each, ast.Assign) and is_kept(each.value, name)
    ]
    ends = [each.finalbody for each in body.body if isinstance(each, ast.Try)]
    freed = {ast.unparse(line) for lines in ends for line in lines}
    return all(f"{each} = None" in freed for each in kept)


def is_kept(value: ast.expr, name: str) -> bool:
    """Return whether a value is what has this name, or is made of it."""
    made_of = value.args if isinstance(value, ast.Call) else [value]
    return name in map(ast.unparse, made_of)


def test_every_module_says_in_one_sentence_what_it_promises():
    odd = [module.name for module in modules() if not promises(module)]

    assert odd == []


def promises(module: Module) -> bool:
    """Return whether the docstring begins `Noun: what it promises.`; marker files are empty."""
    if not module.text:
        return True
    first = (ast.get_docstring(module.tree) or "").partition("\n\n")[0].replace("\n", " ")
    return re.fullmatch(r"[A-Za-z][\w ,`.'-]*: \S.*[.]", first) is not None


def test_one_function_says_how_waits_double():
    doubling = {
        module.name
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Pow)
        and ast.unparse(node.left) in {"2", "2.0"}
        and not isinstance(node.right, ast.Constant)
    }

    assert doubling == {"hedgerow/backoff.py"}


def test_nothing_blocks_the_loop_by_sleeping():
    sleepers = {
        module.name
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.Attribute) and spelled(node) == "time.sleep"
    }

    # These run as programs of their own, without a loop.
    assert sleepers == {
        "hedgerow_testing/supervisor.py",
        "hedgerow_testing/sandbox/leash.py",
    }
