"""Logs: events with keys and values, for people on a terminal and as JSON lines elsewhere."""

from __future__ import annotations

import logging
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import structlog

from hedgerow.encoding import encode, to_ascii
from hedgerow.texts import cut, escaped, escaped_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from structlog.typing import EventDict

LogFormat = Literal["auto", "human", "json"]
_PLAIN = frozenset({str, int, float, bool, type(None)})
IDENTIFIERS = frozenset({"uid", "pass_id"})
LONGEST = 1024
"""The most characters of a text in an entry: others choose names, labels and messages."""
LIBRARIES = ("httpcore", "httpx", "kr8s", "uvicorn")
"""Whose `logging` is about each request; only their warnings are written."""
TRACE = "exception"
LONGEST_TRACE = 16 * LONGEST


def configure(form: LogFormat = "auto", *, debug: bool = False, for_good: bool = False) -> None:
    """Send log events to standard error, and the records of `logging` as well.

    `for_good`: it is not configured again, so that loggers are made once.
    """
    configure_events(form, debug=debug, for_good=for_good)
    if for_good and not is_human(form):
        _log_uncaught()
    root = logging.getLogger()
    root.setLevel(logging.DEBUG if debug else logging.INFO)
    root.handlers = [_Forwarding()]
    for name in LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)


def configure_events(
    form: LogFormat = "auto", *, debug: bool = False, for_good: bool = False
) -> None:
    """Send log events to standard error; `auto` means human if that is a terminal.

    The records of `logging` stay with whoever else reads them, such as a test runner.
    """
    human = is_human(form)
    structlog.configure(
        processors=_processors(human=human, debug=debug),
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.DEBUG if debug else logging.INFO
        ),
        # Looked up for each logger: a test runner has another file there in each test.
        logger_factory=lambda *_: structlog.WriteLogger(sys.stderr),
        cache_logger_on_first_use=for_good,
    )


def is_human(form: LogFormat) -> bool:
    """Return whether a log of this form is for people; otherwise each of its lines is JSON."""
    return form == "human" or (form == "auto" and sys.stderr.isatty())


def json_log() -> Any:
    """Return a log of JSON lines on standard error, whether or not logs have been configured.

    It is for messages before that, and at the very end.
    """
    return structlog.wrap_logger(
        structlog.WriteLogger(sys.stderr),
        processors=_processors(human=False, debug=False),
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
    )


def _processors(*, human: bool, debug: bool) -> list[Any]:
    """Return the functions that make a line of an entry, in order."""
    return [
        structlog.contextvars.merge_contextvars,
        *([_readable] if human and not debug else []),
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="%H:%M:%S" if human else "iso", utc=not human),
        structlog.processors.format_exc_info,
        _bounded,
        *([_harmless, _for_people()] if human else [structlog.processors.JSONRenderer(_as_json)]),
    ]


def _for_people() -> Any:
    return structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(),
        pad_event_to=24,
        # The default prints the values of local variables, which may contain Secrets.
        exception_formatter=structlog.dev.plain_traceback,
    )


def _log_uncaught() -> None:
    """Make an entry of each message that Python itself would print, such as a traceback."""
    logging.captureWarnings(capture=True)

    def uncaught(what: Any, *more: Any) -> None:
        """Take the arguments of any of the hooks: three, or one that has them."""
        error = (what, *more) if more else (what.exc_type, what.exc_value, what.exc_traceback)
        if error[0] is not SystemExit:  # which ends a thread without a word
            json_log().critical("uncaught", exc_info=error)

    sys.excepthook = threading.excepthook = sys.unraisablehook = uncaught


class _Forwarding(logging.Handler):
    """Writes the records that a controller's author logs by `logging` as lines like all others."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record as an entry."""
        entry = structlog.get_logger(record.name)
        entry.log(record.levelno, record.getMessage(), logger=record.name, exc_info=record.exc_info)


def _as_json(entry: EventDict, default: Callable[[Any], Any], **_: Any) -> str:
    """Return an entry as a line of printable ASCII; msgspec is quicker, but escapes less."""
    if _PLAIN.issuperset(map(type, entry.values())):
        with suppress(UnicodeError):
            line = encode(entry)
            if line.isascii() and b"\x7f" not in line:
                return line.decode()
    return to_ascii(entry, compact=True, default=default)


def _readable(_logger: object, _level: str, entry: EventDict) -> EventDict:
    """Return the entry without identifiers, which only programs use."""
    return {key: value for key, value in entry.items() if key not in IDENTIFIERS}


def _bounded(_logger: object, _level: str, entry: EventDict) -> EventDict:
    """Return the entry with its texts cut; of a traceback the end is kept, which has the error."""
    cuts = {k: cut(v, LONGEST) if isinstance(v, str) else v for k, v in entry.items()}
    if isinstance(trace := entry.get(TRACE), str):
        cuts[TRACE] = trace[-LONGEST_TRACE:]
    return cuts


def _harmless(_logger: object, _level: str, entry: EventDict) -> EventDict:
    """Return the entry with nothing in it that a terminal obeys; a traceback keeps its lines."""
    clean = {k: escaped(v) if isinstance(v, str) else v for k, v in entry.items()}
    if isinstance(trace := entry.get(TRACE), str):
        clean[TRACE] = escaped_lines(trace)
    return clean
