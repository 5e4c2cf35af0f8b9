"""Silence: nothing is written, from one moment on and for some time."""

from __future__ import annotations

import time

from support.audit import Audit
from support.eventually import eventually, throughout


class Silence:
    """Begins when it is made; the filters are those of `Audit.writes`.

    Other tests may fill the time until it has to be `kept`.
    """

    def __init__(self, audit: Audit, **filters: str) -> None:
        self._audit, self._filters = audit, filters
        self._mark, self._began = audit.mark(), time.monotonic()

    @classmethod
    def fallen(cls, audit: Audit, seconds: float, *, within: float = 60, **filters: str) -> Silence:
        """Wait until nothing was written for that long: the answers to other news have ended."""
        silence = cls(audit, **filters)

        def lasted() -> bool:
            nonlocal silence
            if silence.broken():
                silence = cls(audit, **filters)
            return time.monotonic() - silence._began >= seconds

        eventually(lasted, within, f"{seconds} s of silence")
        return silence

    def broken(self) -> list[str]:
        """Return what was written since it began."""
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
