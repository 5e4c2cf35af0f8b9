"""Commands: a page for every command, as typer writes it, with those below it."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from typer.cli import get_docs_for_click

from support.programs.printed import helped
from website.markdown import code, definitions, prose

DIRECTORY = "reference/commands"
ROOT = "hedgerow"


@cache
def commands() -> dict[str, Any]:
    """Return every command by what is typed for it, the groups and the root among them."""
    return dict(helped())


def place(path: str) -> str:
    """Return the page of a command, which a group shares with those below it."""
    return f"{DIRECTORY}/{path.split()[1]}.md"


def places() -> dict[str, str]:
    """Return the pages of the commands that are below the root."""
    return {path: place(path) for path in commands() if path.count(" ") == 1}


@cache
def pages() -> dict[str, str]:
    """Return the pages by their places."""
    known = commands()
    listed = definitions(
        (f"[{code(path)}]({at.rpartition('/')[2]})", prose(_first_line(known[path])))
        for path, at in places().items()
    )
    root = known[ROOT]
    alone = type(root)(name=ROOT, help=root.help, params=root.params, epilog=root.epilog)
    told = _documented(ROOT, alone).partition("\n")[2].partition("**Commands**")[0]
    index = f"# Commands, one by one\n\n{listed}\n\n{told}"
    made = {at: _documented(path, known[path]) for path, at in places().items()}
    return made | {f"{DIRECTORY}/index.md": index}


def _documented(path: str, command: Any) -> str:
    """Return what typer says of a command, with no HTML in it but for code."""
    context = type(command).context_class(command, info_name=path)
    text = get_docs_for_click(obj=command, ctx=context, name=path)
    # The stars of typer's own bullets and headings are the ones at the beginning of a line.
    return re.sub(
        r"^\\\*(?: |\\\*(.*?)\\\*\\\*)",
        lambda found: f"**{found[1]}**" if found[1] else "* ",
        prose(text),
        flags=re.MULTILINE,
    )


def _first_line(command: Any) -> str:
    return (command.help or "").strip().partition("\n\n")[0]
