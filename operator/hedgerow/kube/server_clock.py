"""Server clock: the time of the API server, from the `Date` of its answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_YEARS: Final = range(1970, 9999)


class ServerClock:
    """The API server's clock, which goes on by `elapsed` (seconds) since the latest answer.

    The latest answer is at most five minutes old, since watches are opened anew, unless the server
    cannot be reached.
    `Date` has whole seconds: the time is behind by up to a second, and by the time that the answer
    took to arrive.
    """

    def __init__(self, elapsed: Callable[[], float]) -> None:
        self._elapsed = elapsed
        self._date = ""
        self._heard = 0.0

    def hear(self, date: str) -> None:
        """Take in the `Date` of an answer, when its head arrives."""
        self._date, self._heard = date, self._elapsed()

    def now(self) -> datetime | None:
        """Return the time of the API server, in UTC; None if no answer has told it."""
        date = _http_date(self._date)
        return date and date + timedelta(seconds=self._elapsed() - self._heard)


@lru_cache(maxsize=4)
def _http_date(text: str) -> datetime | None:
    """Return the time of an HTTP `Date`, which is in UTC; None if it is not readable."""
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return date.astimezone(UTC) if date.tzinfo and date.year in _YEARS else None
