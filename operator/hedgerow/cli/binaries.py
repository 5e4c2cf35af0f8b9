"""Binaries: the option `--build` of every command that can start a sandbox."""

from __future__ import annotations

from typing import Annotated

import typer

Build = Annotated[
    bool,
    typer.Option(
        "--build",
        help="Build the servers from their Go modules (minutes), and use none that was downloaded.",
    ),
]
