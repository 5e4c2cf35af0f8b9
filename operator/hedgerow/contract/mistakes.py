"""Mistakes: what an author declares wrongly, as one line that says how it is right."""

from __future__ import annotations

import sys
import traceback
from dataclasses import MISSING, Field, fields
from difflib import get_close_matches
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

from hedgerow.errors import OneLineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Self

OURS: Final = (str(Path(__file__).parents[1]), "<")
"""How the files of code begin that no author wrote; that of dataclasses is in none."""
DEBUG: Final = "--debug"


class RegistrationError(OneLineError, ValueError):
    """A mistake in what an author declares, and what is right, in one line.

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
    frames = [one for one in traceback.extract_tb(trace) if not one.filename.startswith(OURS)]
    at = f"{PurePath(frames[-1].filename).name}, line {frames[-1].lineno}: " if frames else ""
    otherwise(kind, RegistrationError(f"{at}{error}"), None)


class CheckedArguments:
    """A dataclass that an author fills in: a wrong argument is one sentence."""

    __slots__ = ()

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """Raise RegistrationError for arguments that the class does not have, or lacks.

        A copy is made without any.
        """
        known: tuple[Field[Any], ...] = fields(cls)  # pyright: ignore[reportArgumentType]
        if (given or named) and (wrong := _wrong_arguments(known, given, named)):
            raise RegistrationError(f"{cls.__name__} {wrong}")
        return super().__new__(cls)


def _wrong_arguments(
    known: Iterable[Field[Any]], given: tuple[Any, ...], named: dict[str, Any]
) -> str:
    """Return what is wrong with the arguments of a dataclass with these fields; or nothing."""
    init = {one.name: one for one in known if one.init}
    by_position = [name for name, one in init.items() if not one.kw_only]
    if unknown := next((name for name in named if name not in init), None):
        meant = get_close_matches(unknown, init, 1)
        question = f": did you mean `{meant[0]}`?" if meant else ""
        return f"has no `{unknown}`{question or f'; it has {_list(init)}'}"
    if len(given) > len(by_position):
        allowed = f"{_list(by_position)} without names" if by_position else "named arguments alone"
        return f"takes {allowed}; it was given {len(given)}"
    there = {*by_position[: len(given)], *named}
    lacking = [
        name
        for name, one in init.items()
        if name not in there and one.default is MISSING and one.default_factory is MISSING
    ]
    return f"lacks {_list(lacking)}" if lacking else ""


def _list(names: Iterable[str]) -> str:
    *before, last = (f"`{name}`" for name in names)
    return f"{', '.join(before)} and {last}" if before else last
