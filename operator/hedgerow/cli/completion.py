"""Completion: what a shell asks for when Tab is pressed, and the script that has it ask.

typer completes its own commands, options and choices; here it is switched on when a shell asks,
and given the command that kubectl's users expect.
"""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import redirect_stdout
from io import StringIO
from typing import Annotated, Literal

import typer

from hedgerow.cli import app, switch_on_completion
from hedgerow.cli.output import echo_lines
from hedgerow.cli.program import completion_variable, program_name

_FILES, _NO_FILES = ":0", ":4"
"""Cobra's directives: let the shell complete files, or have it not do so."""

Shell = Annotated[
    Literal["bash", "zsh", "fish"], typer.Argument(help="The shell.", show_default=False)
]


def completion_command(shell: Shell) -> None:
    """Print a script with which a shell completes hedgerow's commands, options and choices.

    - bash: `source <(hedgerow completion bash)`, in ~/.bashrc
    - zsh: `source <(hedgerow completion zsh)`, in ~/.zshrc, after compinit
    - fish: `hedgerow completion fish | source`, in ~/.config/fish/config.fish
    """
    echo_lines(_answer(f"source_{shell}"), nl=False)


def complete_for_kubectl() -> None:
    """Answer `kubectl hedgerow …`'s Tab, as the executable kubectl_complete-hedgerow.

    The last argument is the word to complete. kubectl reads a candidate with its help per line,
    and in the end a directive (kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins).
    """
    *words, last = [program_name(), *sys.argv[1:]]
    os.environ["_TYPER_COMPLETE_ARGS"] = f"{shlex.join(words)} {last and shlex.quote(last)}"
    os.environ["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    candidates = _answer("complete_fish").rstrip("\n")
    echo_lines(f"{candidates}\n{_NO_FILES}" if candidates else _FILES)


def _answer(asked: str) -> str:
    """Return what typer tells a shell."""
    variable = completion_variable(program_name())
    os.environ[variable] = asked
    switch_on_completion()
    printed = StringIO()
    try:
        with redirect_stdout(printed):
            app(
                [],
                prog_name=program_name(),
                complete_var=variable,
                standalone_mode=False,
            )
    except SystemExit:
        pass
    finally:
        del os.environ[variable]
    return printed.getvalue()
