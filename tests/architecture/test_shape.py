"""The shape of the code: flat functions, and a promise at the head of every module."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from support.code.sources import Module, functions, modules, spelled

if TYPE_CHECKING:
    from collections.abc import Iterator

DEEPEST = 3
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
ALIAS = re.compile(r"[\w.]+(\[| \| )")
"""How a type begins that is an alias: `Literal[...]`, `A | B`."""
ARGUMENT = re.compile(r"\btyper\.|_option\(")


def test_nothing_is_nested_deeply():
    found = tuple(functions())

    assert len(found) > 300
    assert {f.where: f.nesting for f in found if f.nesting > DEEPEST} == {}


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


def test_no_class_of_the_runtime_has_more_than_20_methods():
    many = {
        f"{module.name}.{found.name}": len(methods)
        for module in modules()
        if module.name.startswith("hedgerow/runtime/")
        for found in module.nodes
        if isinstance(found, ast.ClassDef)
        if len(methods := [one for one in found.body if isinstance(one, FUNCTION)]) > 20
    }

    assert many == {}


def test_the_values_of_the_core_are_structs():
    """Except where a field is hidden from comparisons or texts, which msgspec does not offer.

    Elsewhere a Struct is a view: what a command shows, which is its JSON.
    """
    rooms = (
        "objects.py",
        "fields/",
        "plan/",
        "runtime/",
        "kube/",
        "shard.py",
        "process/leaderelection/",
    )
    core = tuple(f"hedgerow/{room}" for room in rooms)
    views = ("hedgerow_tools/", "hedgerow_testing/")
    found = [
        (module.name, kind)
        for module in modules()
        for kind in module.nodes
        if isinstance(kind, ast.ClassDef)
    ]
    structs = [name for name, kind in found if "Struct" in map(spelled, kind.bases)]
    dataclasses = [
        f"{name}: {kind.name}"
        for name, kind in found
        if name.startswith(core) and any("dataclass" in ast.unparse(d) for d in kind.decorator_list)
        if not re.search("(compare|repr)=False", ast.unparse(kind))
    ]

    assert [name for name in structs if not name.startswith(core + views)] == []
    assert dataclasses == []


def test_no_two_public_types_have_one_name():
    """A reader who meets a name knows which class it is, or what it is an alias of."""
    meant: dict[str, set[str]] = {}
    for module in modules():
        for name, meaning in public_types(module):
            meant.setdefault(name, set()).add(meaning)

    assert len(meant) > 500
    assert {name for name, meanings in meant.items() if len(meanings) > 1} == set()


def public_types(module: Module) -> Iterator[tuple[str, str]]:
    """Yield the classes and the type aliases of a module by name, each with what it means.

    Two classes always differ; aliases with one definition do not.
    """
    for found in module.nodes:
        if isinstance(found, ast.ClassDef) and not found.name.startswith("_"):
            yield found.name, f"{module.name}:{found.lineno}"
    for line in module.tree.body:
        target = line.targets[0] if isinstance(line, ast.Assign) else getattr(line, "target", None)
        if isinstance(target, ast.Name) and re.match("[A-Z]+[a-z]", target.id) and is_type(line):
            yield target.id, ast.unparse(line.value)


def is_type(line: ast.Assign | ast.AnnAssign) -> bool:
    """Return whether what is assigned is a type; the arguments of commands are not meant."""
    if isinstance(line, ast.AnnAssign):
        return ast.unparse(line.annotation) == "TypeAlias"
    value = ast.unparse(line.value)
    return bool(ALIAS.match(value)) and not ARGUMENT.search(value)


def test_a_value_is_named_by_a_noun():
    """`found` or `one` says how somebody came by a value, and not what it is."""
    vague = {"each", "found", "one", "this", "told"}
    odd = [
        f"{module.name}:{node.lineno}: {ast.unparse(node)}"
        for module in modules()
        for node in module.nodes
        if (isinstance(node, ast.Name) and node.id in vague)
        or (isinstance(node, ast.arg) and node.arg in vague)
        or (isinstance(node, ast.ExceptHandler) and node.name in vague)
    ]

    assert odd == []


def test_every_module_says_in_one_sentence_what_it_promises():
    odd = [module.name for module in modules() if not promises(module)]

    assert odd == []


def promises(module: Module) -> bool:
    """Return whether the docstring begins `Noun: what it promises.`; marker files are empty."""
    if not module.text:
        return True
    first = (ast.get_docstring(module.tree) or "").partition("\n\n")[0].replace("\n", " ")
    return re.fullmatch(r"[A-Za-z][\w ,`.'-]*: \S.*[.]", first) is not None


@pytest.mark.parametrize(
    ("docstring", "good"),
    [
        ("Store: the cached objects of one watch.", True),
        ("The store of cached objects.", False),
        ("Store: the cached objects", False),
    ],
)
def test_the_rule_for_docstrings_tells_them_apart(tmp_path, docstring, good):
    text = f'"""{docstring}"""\n'

    assert promises(Module(tmp_path, text, ast.parse(text))) is good


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


def test_nothing_sets_an_attribute_of_a_frozen_value():
    setters = {
        module.name
        for module in modules()
        for node in module.nodes
        if (isinstance(node, ast.Attribute) and spelled(node) == "object.__setattr__")
        or (isinstance(node, ast.Name) and node.id == "force_setattr")
    }

    assert setters == set()
