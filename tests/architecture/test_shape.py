"""The size and the words of the code: small pieces, in Kubernetes's own terms."""

from __future__ import annotations

import ast
import re

import pytest

from support.sources import Module, functions, modules

LONGEST_FILE = 300
LONGEST_CONTROLLER = 130
LONGEST_USUAL_FUNCTION = 25
DEEPEST = 3

BANNED = {
    "handler", "manager", "sync", "state", "data", "util", "utils", "helper", "helpers", "common",
    "process", "do",
}  # fmt: skip
"""Words that say nothing; `field_manager` says something."""

MEANT = {
    "hedgerow/core/managed.py": {"manager"},
    "hedgerow/core/ownership.py": {"manager"},
    "hedgerow/kube/errors.py": {"manager"},
}
"""Where `manager` can mean nothing but a field manager."""


def test_no_file_is_too_long_to_read():
    assert {m.name: m.lines for m in modules() if m.lines > LONGEST_FILE} == {}


def test_controllers_fit_on_a_page_and_a_half():
    controllers = [m for m in modules() if m.name.startswith("hedgerow/controllers/")]

    assert len(controllers) > 1
    assert {m.name: m.lines for m in controllers if m.lines > LONGEST_CONTROLLER} == {}


def test_nine_functions_of_ten_are_short():
    lengths = sorted(function.lines for function in functions())

    assert len(lengths) > 300
    assert lengths[len(lengths) * 9 // 10] <= LONGEST_USUAL_FUNCTION


def test_nothing_is_nested_deeply():
    assert {f.where: f.nesting for f in functions() if f.nesting > DEEPEST} == {}


def test_every_module_says_in_one_sentence_what_it_promises():
    odd = [module.name for module in modules() if not promises(module)]

    assert odd == []


def promises(module: Module) -> bool:
    """Tell whether the docstring begins `Noun: what it promises.`; marker files are empty."""
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


def test_names_that_say_nothing_are_not_used():
    found = {
        f"{module.name}:{line} {name}"
        for module in modules()
        for name, line in definitions(module)
        if words(name) & (BANNED - MEANT.get(module.name, set()))
    }

    assert found == set()


def definitions(module: Module) -> list[tuple[str, int]]:
    """Give the names of the module itself and of its classes and functions."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(module.tree) if isinstance(node, kinds)]
    return [(module.path.stem, 1), *((node.name, node.lineno) for node in nodes)]


def words(name: str) -> set[str]:
    """Take a name apart; `field_manager` counts as one word."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return set(spaced.replace("field_manager", "fieldmanager").split("_"))


def test_words_are_told_apart():
    assert words("EventHandler") == {"event", "handler"}
    assert words("field_manager") & BANNED == set()
    assert words("document") & BANNED == set()


def test_nothing_blocks_the_loop_by_sleeping():
    sleepers = {
        module.name
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "time.sleep"
    }

    # The leash runs as a program of its own, without a loop.
    assert sleepers == {"hedgerow/sandbox/leash.py"}
