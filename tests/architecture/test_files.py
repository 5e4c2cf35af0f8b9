"""Files are written where they are named: no file is written where a symbolic link leads."""

from __future__ import annotations

import ast

from support.code.sources import Module, modules, spelled

OPENS = "hedgerow/files.py"
"""The one place that opens a file for writing."""
BY_THEMSELVES = ("write_text", "write_bytes", "touch")
COPIES = ("copyfile", "copy", "copy2", "copytree", "move")
"""What writes a file by name and follows links; a map's `copy` takes less than two arguments."""
MODES = frozenset("wax+")
FLAGS = ("O_CREAT", "O_WRONLY", "O_RDWR", "O_TRUNC", "O_APPEND")
SAFE = ("O_NOFOLLOW", "O_EXCL")
"""With either, `os.open` follows no link."""


def calls(module: Module) -> list[ast.Call]:
    return [node for node in module.nodes if isinstance(node, ast.Call)]


def name(call: ast.Call) -> str:
    return spelled(call.func).rpartition(".")[2]


def modes(call: ast.Call) -> list[str]:
    """Return the texts among a call's arguments that could be the mode of a file."""
    given = [*call.args, *(word.value for word in call.keywords)]
    texts = [one.value for one in given if isinstance(one, ast.Constant)]
    return [text for text in texts if isinstance(text, str) and set(text) <= MODES | set("rbt")]


def writes(module: Module) -> list[str]:
    """Return the calls that write a file by its name."""
    found = [
        call
        for call in calls(module)
        if name(call) in BY_THEMSELVES
        or (name(call) in COPIES and len(call.args) > 1)
        or (name(call) in ("open", "open_file") and any(MODES & set(m) for m in modes(call)))
        or (spelled(call.func) == "os.open" and any(f in ast.unparse(call) for f in FLAGS))
    ]
    return [
        text
        for call in found
        if not any(flag in (text := ast.unparse(call)) for flag in SAFE)
        and "os.devnull" not in text
    ]


def test_whatever_writes_a_file_opens_it_in_the_one_place_that_follows_no_link():
    found = {module.name: texts for module in modules() if (texts := writes(module))}

    assert found == {}


def test_a_place_that_follows_links_is_found_and_that_one_does_not():
    [module] = [module for module in modules() if module.name == OPENS]
    text = "open(path, mode='w')"
    opens = [ast.unparse(call) for call in calls(module) if name(call) == "open"]

    assert writes(Module(module.path, text, ast.parse(text))) == [text]
    assert [call for call in opens if "O_NOFOLLOW" in call or "opener=" in call] == opens
    assert len(opens) == 2
