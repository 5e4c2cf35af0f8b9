"""Options: what several commands take, each with one spelling and one line of help."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from hedgerow.cli.candidates import objects

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
Build = Annotated[
    bool,
    typer.Option(
        "--build",
        help="Build the servers from their Go modules (minutes), and use none that was downloaded.",
    ),
]
