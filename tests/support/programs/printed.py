"""Printed: the commands in documents, help and messages, and whether their programs take them."""

from __future__ import annotations

import ast
import re
import shlex
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from hedgerow.cli import DEBUG, app
from hedgerow.cli.commands import LAZY
from support.code.sources import ROOT, modules

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCUMENTS = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
PROGRAMS = ("hedgerow", "kubectl")
VALUE = "x"
"""Stands for what is not known before a message is made."""
_BLOCK = re.compile(r"```(console|sh)\n(.*?)```", re.DOTALL)
_INLINE = re.compile(r"`([^`]*)`")
_ENDS = {"|", "||", "&", "&&", ";", "(", ")", ");", "|&"}
_VARIABLE = re.compile(r"[A-Z_]+=")
_PLACEHOLDERS = ("…", "{}", "COMMAND", VALUE)
_INCOMPLETE = ("does not exist", "requires an argument", "Missing", "NoArgsIsHelp")
"""What is said of a command that is only named, and of files that its reader has."""


class PrintedCommand(NamedTuple):
    """A simple command, as its words, and where it is printed."""

    where: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.where}: {shlex.join(self.words)}"


def documented() -> Iterator[PrintedCommand]:
    """Yield the commands of the documents: of their blocks, and those in backticks."""
    for document in DOCUMENTS:
        text = document.read_text("utf-8")
        for kind, block in _BLOCK.findall(text):
            lines = [line.strip() for line in block.replace("\\\n", " ").splitlines()]
            typed = [line for line in lines if kind == "sh" or line.startswith("$ ")]
            for line in typed:
                yield from _ours(document.name, line.removeprefix("$ "))
        yield from _inline(document.name, re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def helped() -> Iterator[tuple[str, Any]]:
    """Yield every command of the command line, below the words that call it."""
    root: Any = typer.main.get_command(app)
    yield "hedgerow", root
    yield "hedgerow version", root.commands["version"]
    for name, lazy in LAZY.items():
        yield from _below(f"hedgerow {name}", lazy.load(name))


def in_help() -> Iterator[PrintedCommand]:
    """Yield the commands in backticks in the help of commands and options."""
    for path, command in helped():
        for text in (command.help, *(getattr(one, "help", "") for one in command.params)):
            yield from _inline(f"{path} --help", text or "")


def in_code() -> Iterator[PrintedCommand]:
    """Yield the commands of messages: in backticks in texts, and those of `command_line`."""
    for module in modules():
        for node in ast.walk(ast.parse(module.text)):
            if isinstance(node, ast.Constant | ast.JoinedStr):
                yield from _inline(module.name, _text(node))
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "command_line":
                yield from _made(module.name, node)


@cache
def _commands() -> dict[str, Any]:
    return dict(helped())


def refusal(words: tuple[str, ...]) -> str:
    """Return why hedgerow's own command line does not take these words; empty if it does.

    `--debug` may be anywhere. A command that is only named takes what else it needs later.
    """
    path, *left = [word for word in words if word != DEBUG]
    if left[:1] and left[0] in _PLACEHOLDERS:
        return ""
    commands = _commands()
    while left and f"{path} {left[0]}" in commands:
        path = f"{path} {left.pop(0)}"
    if left and hasattr(commands[path], "commands") and not left[0].startswith("-"):
        return f"there is no command {left[0]}"
    try:
        commands[path].make_context(path, left)
    except typer.Exit:
        return ""
    except Exception as error:  # noqa: BLE001 - whatever it says is the answer
        told = f"{type(error).__name__} {getattr(error, 'message', error)}"
        return "" if any(word in told for word in _INCOMPLETE) else told
    return ""


def _below(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from _below(f"{path} {name}", below)


def _text(node: ast.AST) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_text(part) for part in parts)
        case ast.FormattedValue(value=ast.Call(func=ast.Name(id="typed" | "program_name"))):
            return "hedgerow"
        case ast.FormattedValue(value=ast.Call(func=ast.Name(id="option"))):
            return ""
        case _:
            return VALUE


def _made(where: str, call: ast.Call) -> Iterator[PrintedCommand]:
    """Yield what a call of `command_line` makes, as far as it says so itself."""
    if len(call.args) > 1 and isinstance(call.args[1], ast.Constant):
        program, *words = [_text(one) for one in call.args if not isinstance(one, ast.Starred)]
        yield PrintedCommand(where, (program if program in PROGRAMS else "hedgerow", *words))


def _inline(where: str, text: str) -> Iterator[PrintedCommand]:
    for code in _INLINE.findall(text):
        if code.startswith(tuple(f"{name} " for name in PROGRAMS)):
            yield from _ours(where, code)


def _ours(where: str, line: str) -> Iterator[PrintedCommand]:
    """Yield the simple commands of a line that call one of the programs."""
    for words in _simple(" ".join(line.split())):
        while words and _VARIABLE.match(words[0]):
            words = words[1:]  # noqa: PLW2901 - what is set for the command
        if words[:2] == ["kubectl", "hedgerow"]:
            words = words[1:]  # noqa: PLW2901 - our plugin
        if words and words[0] in PROGRAMS:
            yield PrintedCommand(where, tuple(words))


def _simple(line: str) -> Iterator[list[str]]:
    """Yield the words of each simple command of a line, without redirections and comments."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    tokens = iter(lexer)
    for token in tokens:
        if token in _ENDS:
            yield words
            words = []
        elif token[0] in "<>":
            next(tokens, None)
        else:
            words.append(token)
    yield words
