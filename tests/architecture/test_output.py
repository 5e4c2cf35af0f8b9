"""Who prints: `cli/output.py` and `Terminal`, which let nothing through that steers a terminal."""

from __future__ import annotations

import ast

from support.code.sources import Module, running, spelled

PRINTERS = {"hedgerow/cli/output.py", "hedgerow/cli/terminal.py"}
NO_COMMANDS = {
    "hedgerow_testing/generate.py": "prints the names of our own files",
}
CALLS = {"print", "typer.echo", "typer.secho", "traceback.print_exc", "Console"}
STREAMS = {f"sys.{name}.{how}" for name in ("stdout", "stderr") for how in ("write", "writelines")}


def prints(module: Module) -> set[str]:
    called = {spelled(node.func) for node in module.nodes if isinstance(node, ast.Call)}
    below = {
        "Console"
        for node in module.nodes
        if isinstance(node, ast.ClassDef)
        if "Console" in map(spelled, node.bases)
    }
    buffers = {name for name in called if name.startswith(("sys.stdout.buffer", "click.echo"))}
    return called & (CALLS | STREAMS) | below | buffers


def test_nothing_is_printed_but_through_what_escapes_it():
    found = {module.name for module in running() if prints(module)}

    assert found == PRINTERS | NO_COMMANDS.keys()
