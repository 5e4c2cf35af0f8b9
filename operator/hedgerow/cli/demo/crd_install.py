"""CRD demo, as typed: `hedgerow demo crd-install`."""

from __future__ import annotations

from typing import Annotated

import typer

from hedgerow.cli import interrupts
from hedgerow.cli.binaries import Build  # noqa: TC001 -- typer reads it


def crd_install_command(
    *,
    kubeconfig: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Ask this kubeconfig's cluster instead; dry runs only."),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Ask this context's cluster instead; dry runs only."),
    ] = None,
    build: Build = False,
) -> None:
    """Show why a large definition needs server-side apply.

    Client-side `kubectl apply` keeps the whole object once more in an annotation, which the
    definition of BlueGreen with its descriptions does not fit into; server-side apply needs no
    annotation. It plays on a throwaway cluster of its own. On a cluster that you name every
    command is a dry run: nothing is changed there.
    """
    from hedgerow.cli.demo.lesson import perform  # noqa: PLC0415 - not needed for the help
    from hedgerow.demo.page import Page  # noqa: PLC0415
    from hedgerow.demo.stage import Target  # noqa: PLC0415

    target = Target(kubeconfig, context, build=build)
    interrupts.run(lambda: perform(Page(), target))
