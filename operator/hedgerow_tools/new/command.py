"""new, as typed: an installable package for an operator of one's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from hedgerow.cli.output import echo
from hedgerow.files import opened
from hedgerow_tools.new import names
from hedgerow_tools.new.scaffold import NewOperator, files

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

INSTALL = Path("manifests/install.yaml")
_LONGEST = 60.0

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="Name of the folder, the Python package and the program: lower-case letters and"
        " digits.",
    ),
]
Group = Annotated[
    str, typer.Option(metavar="DOMAIN", help="API group of the resource: a domain of yours.")
]
Kind = Annotated[str, typer.Option(metavar="KIND", help="Kind of the resource, in CamelCase.")]
Children = Annotated[
    list[str],
    typer.Option(
        metavar="KIND,…",
        help=f"What is made for each resource, of {', '.join(names.CHILDREN)}; commas or repeated.",
        show_default="Deployment,Service",
    ),
]


def new_command(
    *,
    name: Name,
    group: Group,
    kind: Kind,
    children: Children = ["Deployment", "Service"],  # noqa: B006 - typer copies it
) -> None:
    """Make the package of an operator of your own, in a new folder here.

    It has a model, a controller, tests, tasks, a Containerfile, manifests and a CI workflow. It is
    installable, and passes its own checks as it is. Nothing is asked of a cluster.

    - `hedgerow new shop --group shop.example.com --kind Shop`
    - `hedgerow new motd --group example.com --kind Message --children ConfigMap`
    """
    operator = NewOperator(
        _checked("NAME", lambda: names.package(name)),
        _checked("--group", lambda: names.group(group)),
        _checked("--kind", lambda: names.kind(kind)),
        _checked("--children", lambda: names.children(children)),
    )
    folder = Path(operator.name)
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise typer.BadParameter(f"{folder} is there already, and it is not an empty folder")
    _write(operator, folder)
    echo(
        f"{folder}: an operator for {operator.kind} ({operator.group}/v1); next:"
        f" cd {folder} && pip install --editable '.[dev]' && task"
    )


def _checked(what: str, check: Callable[[], T]) -> T:
    """Return what the check returns; its ValueError is told as an error in the usage."""
    try:
        return check()
    except ValueError as error:
        raise typer.BadParameter(f"{what}: {error}") from None


def _write(operator: NewOperator, folder: Path) -> None:
    """Write the files of the new operator, and then what it makes of them itself."""
    for path, text in files(operator).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        _make(target, text)
    _make(folder / INSTALL, _manifests(operator, folder))


def _make(file: Path, text: str) -> None:
    """Write a new file: over none that somebody puts there meanwhile."""
    with opened(file, "xb") as made:
        made.write(text.encode())


def _manifests(operator: NewOperator, folder: Path) -> str:
    """Return the manifests of the new operator, made by itself as its task `generate` does."""
    command = [sys.executable, "-m", operator.name, "manifests", "--image", operator.image]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=_LONGEST,
    )
    return done.stdout
