"""Options: what several commands take, each with one spelling and one line of help."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from hedgerow.cli.candidates import objects

LONGEST_MANAGER = 128
"""The most characters of a field manager's name; the API server accepts only printable ones."""

Given = Annotated[
    list[str],
    typer.Argument(
        metavar="KIND/NAME",
        autocompletion=objects,
        help="The object, its kind as kubectl takes it: deploy/web, bluegreen/demo; or as two"
        " words: deploy web.",
        show_default=False,
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAMESPACE",
        help="Its namespace.",
        show_default="the context's",
    ),
]
Instance = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The installation of hedgerow, where there are several.",
        show_default="as the object's label says",
    ),
]
Output = Annotated[
    Literal["text", "json"], typer.Option("--output", "-o", help="The output format.")
]
TableOutput = Annotated[
    Literal["table", "json"], typer.Option("--output", "-o", help="The output format.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and stop.")]
Files = Annotated[
    list[str] | None,
    typer.Option(
        "--filename",
        "-f",
        metavar="FILE",
        help="Manifests: a file, a directory of them, or - for standard input. May be repeated.",
        show_default=False,
    ),
]
Selector = Annotated[
    str | None,
    typer.Option(
        "--selector",
        "-l",
        metavar="LABELS",
        help="All objects of the namespace with these labels: app=web, 'tier in (a, b)'.",
        show_default=False,
    ),
]
AllNamespaces = Annotated[
    bool,
    typer.Option(
        "--all-namespaces", "-A", help="In all namespaces, and objects without a namespace."
    ),
]
Build = Annotated[
    bool,
    typer.Option(
        "--build",
        help="Build the servers from their Go modules (minutes), and use none that was downloaded.",
    ),
]


def check_manager(option: str, name: str) -> None:
    """Raise BadParameter if the API server would accept no field manager of this name."""
    if len(name) > LONGEST_MANAGER or not name.isprintable():
        raise typer.BadParameter(
            f"{option}: a field manager has at most {LONGEST_MANAGER} printable characters"
        )
