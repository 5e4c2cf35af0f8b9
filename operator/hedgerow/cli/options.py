"""Options: what several commands take, each with one spelling.

Where commands differ in the line of help, a function takes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

OptionSet = Mapping[str, tuple[Any, Any]]
"""Options that commands share: the annotation and the default of each parameter."""

LONGEST_MANAGER = 128
"""The most characters of a field manager's name; the API server accepts only printable ones."""


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


Output = Annotated[Literal["text", "json"], output_option()]
TableOutput = Annotated[Literal["table", "json"], output_option()]
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


def extended(
    command: Callable[..., None],
    run: Callable[..., None],
    options: OptionSet,
    without: Collection[str] = (),
) -> Callable[..., None]:
    """Return `run` as a command with the parameters of another, `without` some, and with options.

    Arguments come first, as the shell reads them in this order.
    """
    hints = get_type_hints(command, include_extras=True)
    own = [
        parameter.replace(annotation=hints[name])
        for name, parameter in signature(command).parameters.items()
        if name not in without
    ]
    added = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in options.items()
    ]
    parameters = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in (*own, *added)]
    run.__doc__ = command.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined] - the library looks here
    return run


def duration(option: str, text: str, longest: float) -> float:
    """Return a duration such as 90, 30s or 1m30s in seconds. Raises BadParameter."""
    from hedgerow.schedule.durations import nanoseconds  # noqa: PLC0415 - not needed for the help

    is_number = text.isascii() and text.isdecimal()
    try:
        seconds = nanoseconds(f"{text}s" if is_number else text) / 1e9
    except ValueError:
        seconds = -1
    if not 0 <= seconds <= longest:
        raise typer.BadParameter(
            f"{option} takes a duration such as 30s or 1m30s, {longest / 3600:.0f}h at most, not"
            f" {text!r:.60}"
        )
    return seconds


def check_manager(option: str, name: str) -> None:
    """Raise BadParameter if the API server would accept no field manager of this name."""
    if len(name) > LONGEST_MANAGER or not name.isprintable():
        raise typer.BadParameter(
            f"{option}: a field manager has at most {LONGEST_MANAGER} printable characters"
        )
