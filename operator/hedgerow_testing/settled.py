"""Silence: nothing is written, from one moment on and for some time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hedgerow_testing.audit_log import shown
from hedgerow_testing.waiting import eventually, throughout

if TYPE_CHECKING:
    from hedgerow_testing.audit_log import Requests


def assert_settled(
    audit_log: Requests, *, for_: float = 2.0, within: float = 60.0, **filters: str
) -> None:
    """Wait until nothing has been written for so many seconds.

    The filters are those of `Requests.writes`: `user`, `agent`, `resource`, `namespace`. Raises
    AssertionError with the last writes if that does not come within the time.
    """
    Silence.fallen(audit_log, for_, within=within, **filters)


def assert_no_writes(audit_log: Requests, *, for_: float, **filters: str) -> None:
    """Raise AssertionError as soon as something is written, for so many seconds from now."""
    Silence(audit_log, **filters).kept_on(for_, "written")


class Silence:
    """Begins when it is made; the filters are those of `Requests.writes`.

    Other tests may fill the time until it has to be `kept`.
    """

    def __init__(self, audit_log: Requests, **filters: str) -> None:
        self._audit, self._filters = audit_log, filters
        self._mark, self._began = audit_log.mark(), time.monotonic()

    @classmethod
    def fallen(
        cls, audit_log: Requests, seconds: float, *, within: float = 60, **filters: str
    ) -> Silence:
        """Wait until nothing was written for that long: the answers to other news have ended."""
        silence, last = cls(audit_log, **filters), list[str]()

        def lasted() -> bool:
            nonlocal silence, last
            broken = silence.broken()
            if broken:
                silence, last = cls(audit_log, **filters), broken
            return silence.length >= seconds

        try:
            eventually(lasted, within, f"{seconds} s of silence")
        except AssertionError as error:
            raise AssertionError(f"{error}; last written: {last[-5:]}") from None
        return silence

    @property
    def length(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._began

    def broken(self) -> list[str]:
        """Return the writes since it began."""
        return shown(self._audit.writes(self._mark, **self._filters))

    def kept(self, seconds: float, what: str) -> None:
        """Fail unless nothing was written for that long, which what has passed is part of."""
        self.kept_on(seconds - self.length, what)

    def kept_on(self, seconds: float, what: str) -> None:
        """Fail unless nothing was written and nothing is, for that much longer."""
        throughout(self.broken, seconds, what)
        broken = self.broken()
        if broken:
            raise AssertionError(f"{what}: {broken!r}")
