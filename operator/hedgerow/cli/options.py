"""Options: what several commands take, each with one spelling.

Where commands differ in the line of help, a function takes it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

LONGEST_MANAGER = 128
"""The most characters of a field manager's name; the API server accepts only printable ones."""


def namespace_option(words: str) -> Any:
    """Return --namespace."""
    return typer.Option(
        "--namespace", "-n", metavar="NAMESPACE", help=words, show_default="the context's"
    )


def all_namespaces_option(words: str) -> Any:
    """Return --all-namespaces."""
    return typer.Option("--all-namespaces", "-A", help=words)


def selector_option(words: str, *, default: str | bool = False) -> Any:
    """Return --selector; the words are followed by examples."""
    return typer.Option(
        "--selector",
        "-l",
        metavar="LABELS",
        help=f"{words} with these labels: app=web, 'tier in (a, b)'.",
        show_default=default,
    )


def kustomize_option(words: str, panel: str | None = None) -> Any:
    """Return --kustomize; the words say what becomes of the manifests."""
    return typer.Option(
        "--kustomize",
        "-k",
        metavar="DIR",
        help=f"A directory that `kubectl kustomize` builds: {words}.",
        show_default=False,
        rich_help_panel=panel,
    )


def field_option(verb: str) -> Any:
    """Return --field."""
    return typer.Option(
        "--field",
        metavar="PATH",
        help=f"{verb} this field only, as `yield` writes it: spec.replicas, or 'spec.template.**'"
        " for all below; may be given several times.",
        show_default="all",
    )


def controllers_option(words: str) -> Any:
    """Return --controllers of an installation."""
    return typer.Option(
        "--controllers",
        metavar="NAME,…",
        help=f"{words}; commas or repeated.",
        show_default="those that are not opt-in",
    )


def output_option(words: str = "The output format.") -> Any:
    """Return --output."""
    return typer.Option("--output", "-o", help=words)


def dry_run_option(words: str = "Show what would be done, and stop.") -> Any:
    """Return --dry-run."""
    return typer.Option("--dry-run", help=words)


Namespace = Annotated[str | None, namespace_option("Its namespace.")]
Output = Annotated[Literal["text", "json"], output_option()]
TableOutput = Annotated[Literal["table", "json"], output_option()]
DryRun = Annotated[bool, dry_run_option()]
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
Selector = Annotated[str | None, selector_option("All objects of the namespace")]
AllNamespaces = Annotated[
    bool, all_namespaces_option("In all namespaces, and objects without a namespace.")
]
Watch = Annotated[
    bool,
    typer.Option(
        "--watch",
        "-w",
        help="Go on until Ctrl-C: redraw on a terminal, with -o json print a line for each change."
        " Elsewhere it is shown once.",
    ),
]


def check_manager(option: str, name: str) -> None:
    """Raise BadParameter if the API server would accept no field manager of this name."""
    if len(name) > LONGEST_MANAGER or not name.isprintable():
        raise typer.BadParameter(
            f"{option}: a field manager has at most {LONGEST_MANAGER} printable characters"
        )
