"""Demo: `hedgerow demo`, the main job from nothing to clean, and its smaller lessons."""

from __future__ import annotations

from typing import Annotated

import typer

from hedgerow.cli.unfolded import UnfoldedCommand, UnfoldedGroup
from hedgerow_testing.demo import lesson
from hedgerow_testing.demo.page import Page
from hedgerow_testing.demo.story import perform
from hedgerow_tools import interrupts

app = typer.Typer(cls=UnfoldedGroup, invoke_without_command=True)


@app.callback()
def demo(
    context: typer.Context,
    *,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave it all running, and say how to go on by hand.")
    ] = False,
) -> None:
    """Show the operator at work: set up, converge, flip, contest, clean up.

    It plays on a throwaway cluster of its own, never on whatever cluster happens to be the
    current context. Every line after a `$` is what is really typed, every statement after a
    check mark was read back from the API server; the first one that is not so ends the demo with
    exit code 1. Ctrl-C cleans up.
    """
    if context.invoked_subcommand:
        return
    interrupts.run(lambda: perform(Page(), keep=keep))


@app.command("crd-install", cls=UnfoldedCommand)
def crd_install_command() -> None:
    """Show why a large definition needs server-side apply.

    Client-side `kubectl apply` keeps the whole object once more in an annotation, which the
    definition of BlueGreen with its descriptions does not fit into; server-side apply needs no
    annotation. It plays on a throwaway cluster of its own.
    """
    interrupts.run(lambda: lesson.perform(Page()))
