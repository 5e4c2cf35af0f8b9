"""hedgerow sandbox: a real Kubernetes API on this machine, up and down with one command."""

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from hedgerow.cli.output import echo
from hedgerow.cli.program import typed
from hedgerow.cli.terminal import Terminal
from hedgerow.cli.unfolded import UnfoldedCommand, UnfoldedGroup
from hedgerow_testing.progress import progress_shown
from hedgerow_testing.sandbox.cluster import Options, Sandbox, default_directory, option
from hedgerow_testing.sandbox.status import SandboxStatus
from hedgerow_tools import interrupts

app = typer.Typer(
    name="sandbox",
    cls=UnfoldedGroup,
    help="A throwaway cluster of real Kubernetes servers, for trying things out and for tests.\n\n"
    "A sandbox has etcd and kube-apiserver, and on request kube-controller-manager, kube-scheduler "
    "and simulated nodes. All of them listen on the loopback address only. No container engine is "
    "needed. The servers come from KUBEBUILDER_ASSETS. Otherwise they are downloaded once from the "
    "projects' own releases, each checked by the SHA-256 that is published beside it. A server "
    "that cannot be downloaded is built from its Go modules, which takes minutes. The user's cache "
    "keeps the servers, so that the next start takes seconds.",
)

Directory = Annotated[
    Path,
    typer.Option(
        "--dir",
        metavar="DIR",
        default_factory=default_directory,
        show_default="~/.local/state/hedgerow/sandbox",
        help="Where the sandbox lives. Each directory is a cluster of its own.",
    ),
]


@app.command(cls=UnfoldedCommand)
def up(
    directory: Directory,
    nodes: Annotated[
        int,
        typer.Option(
            min=0,
            max=1000,
            metavar="N",
            help="Simulate N nodes: Pods are scheduled and become Ready, but nothing is run.",
        ),
    ] = 0,
    controllers: Annotated[
        bool,
        typer.Option(
            "--controllers",
            help="Start kube-controller-manager and kube-scheduler, as --nodes does too. Without "
            "them a Deployment gets no Pods and nothing is garbage collected.",
        ),
    ] = False,
    audit: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep the API server's audit log: every request, the body of every write "
            "(of Secrets too).",
        ),
    ] = None,
    kubernetes: Annotated[
        str,
        typer.Option(
            metavar="VERSION", help="A pinned version, such as 1.37.", show_default="newest"
        ),
    ] = "",
) -> None:
    """Bring the sandbox up and wait until it is ready; does nothing if it is up already.

    Ctrl-C at any moment leaves nothing running. Afterwards: `eval "$(hedgerow sandbox env)"`
    """
    sandbox = Sandbox(directory)
    options = Options(
        kubernetes=kubernetes,
        nodes=nodes,
        audit=audit,
        controllers=controllers or nodes > 0,
    )
    with progress_shown() as progress:
        interrupts.run(lambda: sandbox.up(options, progress))
    echo(f"The sandbox is up at {sandbox.server}")
    echo(f'To use it:       eval "$({typed()} sandbox env{option(directory)})"')
    echo(f"To take it down: {typed()} sandbox down{option(directory)}")
    if nodes:
        echo(
            "Its nodes are simulated: Pods become Ready there, and nothing runs in them. Start the"
            f" operator with `{typed()} run`: deployed into the sandbox it would not answer"
            " its webhooks, and every write of a custom resource would fail."
        )


@app.command(cls=UnfoldedCommand)
def down(directory: Directory) -> None:
    """End the sandbox and remove its directory; does nothing if there is none.

    Its servers stay in the cache, so the next `up` takes seconds.
    """
    sandbox = Sandbox(directory)
    with progress_shown() as progress:
        interrupts.run(lambda: sandbox.down(progress))


@app.command(cls=UnfoldedCommand)
def status(directory: Directory) -> None:
    """Show what runs, whether it is healthy, and what it costs. Exit code 1 unless it is up."""
    sandboxes: list[SandboxStatus] = []

    async def look() -> None:
        sandboxes.append(await Sandbox(directory).status())

    interrupts.run(look)
    _show(sandboxes[0])
    if not sandboxes[0].up:
        raise typer.Exit(1)


@app.command(cls=UnfoldedCommand)
def env(directory: Directory) -> None:
    """Print what puts the sandbox into a shell.

    It is for `eval "$(hedgerow sandbox env)"`. KUBECONFIG names its kubeconfig, and PATH leads to
    its kubectl unless it does so already. When the sandbox is not up, nothing is printed, and the
    exit code is 1.
    """
    for name, value in Sandbox(directory).environment().items():
        echo(f"export {name}={_quoted(value)}")


def _quoted(value: str) -> str:
    """Return a value as any shell takes it, on one printable line."""
    if value.isprintable():
        return shlex.quote(value)
    plain = (c if c.isprintable() and c not in "'\\" else _octal(c) for c in value)
    return f"\"$(printf %b '{''.join(plain)}')\""


def _octal(char: str) -> str:
    return "".join(f"\\0{byte:03o}" for byte in os.fsencode(char))


def _show(sandbox: SandboxStatus) -> None:
    if not sandbox.components:
        echo(f"No sandbox is up in {sandbox.directory}")
        return
    echo(f"Kubernetes {sandbox.version or '?'} at {sandbox.server}, in {sandbox.directory}")
    table = Table("component", "pid", "health", "memory", box=None)
    for component in sandbox.components:
        health = "healthy" if component.healthy else "unwell" if component.running else "down"
        pid = "" if component.pid is None else str(component.pid)
        table.add_row(component.name, pid, health, _megabytes(component.memory))
    Terminal().print(table)
    echo(f"{_megabytes(sandbox.memory)} of memory, {_megabytes(sandbox.disk)} of disk")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB"
