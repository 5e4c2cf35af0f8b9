"""Log form: whether what a command says on standard error are the JSON lines of a log."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, get_args

from hedgerow.cli.commands import LAZY
from hedgerow.objects import variable_prefix

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

OPTION = "--log-format"


def logs_json(words: Sequence[str], program: str) -> bool:
    """Return whether these words call a command that logs, and each line of its log is JSON.

    What is wrong with the words is said there too, so they are not understood any further. A form
    that there is not is as none.
    """
    command = next((word for word in words if not word.startswith("-")), "")
    if command not in LAZY or not LAZY[command].logs:
        return False
    from hedgerow.runtime.logs import LogFormat, is_human  # noqa: PLC0415 - for such commands alone

    named = [form for form in get_args(LogFormat) if form == _named(words, program)]
    return not is_human(named[0] if named else "auto")


def _named(words: Sequence[str], program: str) -> str:
    """Return the form that the last option names, or else the variable."""
    *_, last = (os.environ.get(f"{variable_prefix(program)}LOG_FORMAT", ""), *_options(words))
    return last


def _options(words: Sequence[str]) -> Iterator[str]:
    for word, after in zip(words, (*words[1:], ""), strict=True):
        if word == OPTION:
            yield after
        elif word.startswith(f"{OPTION}="):
            yield word.partition("=")[2]
