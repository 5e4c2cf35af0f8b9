"""Mistakes: a wrong declaration as one line, which says how to write it."""

from __future__ import annotations

import inspect
import sys
import traceback
from difflib import get_close_matches
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

from hedgerow.errors import OneLineError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

OURS: Final = (str(Path(__file__).parents[1]), "<")
"""How the files of code begin that no author wrote; that of dataclasses is in none."""
DEBUG: Final = "--debug"


class RegistrationError(OneLineError, ValueError):
    """A mistake in a declaration and its correction, in one line.

    A program that does not catch it ends with that line, and with where in the author's own files
    it was: the rest of the traceback is hedgerow's. With `--debug`, it is shown as usual.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        if getattr(sys.excepthook, "func", None) is not _told_in_a_line:
            sys.excepthook = partial(_told_in_a_line, sys.excepthook)


def _told_in_a_line(
    otherwise: Callable[[type[BaseException], BaseException, TracebackType | None], object],
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
) -> None:
    if not isinstance(error, RegistrationError) or DEBUG in sys.argv:
        otherwise(kind, error, trace)
        return
    frames = [frame for frame in traceback.extract_tb(trace) if not frame.filename.startswith(OURS)]
    at = f"{PurePath(frames[-1].filename).name}, line {frames[-1].lineno}: " if frames else ""
    otherwise(kind, RegistrationError(f"{at}{error}"), None)


class CheckedArguments:
    """A dataclass that an author fills in: a wrong argument is one sentence."""

    __slots__ = ()

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """Raise RegistrationError for arguments that the class does not have, or lacks.

        A copy is made without any.
        """
        if given or named:
            _check_arguments(cls, given, named)
        return super().__new__(cls)


def _check_arguments(declared: type[Any], given: tuple[Any, ...], named: dict[str, Any]) -> None:
    signature = inspect.signature(declared.__init__)
    known = list(signature.parameters)[1:]
    if unknown := next((name for name in named if name not in known), ""):
        meant = get_close_matches(unknown, known, 1)
        question = f": did you mean `{meant[0]}`?" if meant else f"; it has {', '.join(known)}"
        raise RegistrationError(f"{declared.__name__} has no `{unknown}`{question}")
    try:
        signature.bind(None, *given, **named)
    except TypeError as error:
        raise RegistrationError(f"{declared.__name__}: {error}") from None
