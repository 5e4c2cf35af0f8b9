"""Silence: nothing is written, from one moment on and for some time."""

from __future__ import annotations

import time

from support.audit import Audit
from support.eventually import throughout


class Silence:
    """Begins when it is made; the filters are those of `Audit.writes`.

    Other tests may fill the time until it has to be `kept`.
    """

    def __init__(self, audit: Audit, **filters: str) -> None:
        self._audit, self._filters = audit, filters
        self._mark, self._began = audit.mark(), time.monotonic()

    def broken(self) -> list[str]:
        """Give what was written since it began."""
        found = self._audit.writes(self._mark, **self._filters)
        return [f"{entry['verb']} {entry['requestURI']}" for entry in found]

    def kept(self, seconds: float, what: str) -> None:
        """Fail unless nothing was written for that long, which what has passed is part of."""
        self.kept_on(seconds - (time.monotonic() - self._began), what)

    def kept_on(self, seconds: float, what: str) -> None:
        """Fail unless nothing was written and nothing is, for that much longer."""
        throughout(self.broken, seconds, what)
        broken = self.broken()
        assert not broken, f"{what}: {broken!r}"
