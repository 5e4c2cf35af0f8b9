"""World: the Jobs of a simulated cluster; each ends after a fixed duration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow_schemas.job import Job

if TYPE_CHECKING:
    from collections.abc import Container
    from datetime import datetime, timedelta

    from hedgerow_schemas.base import Object

GOING = "1970-01-01T00:00:00Z"
"""A deletionTimestamp; its value does not matter."""


class World:
    """The Jobs of one CronJob: each begins when it is created and succeeds after the duration."""

    def __init__(self, namespace: str, duration: timedelta) -> None:
        self._namespace = namespace
        self._duration = duration
        self._jobs: dict[str, Object] = {}
        self._ends: dict[str, datetime] = {}

    def __contains__(self, name: str) -> bool:
        """Return whether a Job of this name exists, even if it is being deleted."""
        return name in self._jobs

    def create(self, name: str, declared: Object, began: datetime) -> None:
        """Create a Job that begins at an instant, with the declared metadata."""
        identity = {"name": name, "namespace": self._namespace, "uid": name}
        metadata: Object = {**declared.get("metadata", {}), **identity}
        self._jobs[name] = {"metadata": metadata, "status": {"startTime": began.isoformat()}}
        self._ends[name] = began + self._duration

    def delete(self, name: str) -> None:
        """Delete a Job; with a finalizer, only mark it as being deleted."""
        if self._jobs[name]["metadata"].get("finalizers"):
            self._change(name, deletionTimestamp=GOING)
        else:
            del self._jobs[name], self._ends[name]

    def release(self, name: str, finalizer: str) -> bool:
        """Remove a finalizer from a Job; return whether it had it."""
        held: list[str] = self._jobs[name]["metadata"].get("finalizers") or []
        if finalizer not in held:
            return False
        self._change(name, finalizers=[other for other in held if other != finalizer])
        if Job(self._jobs[name]).going:
            self.delete(name)
        return True

    def jobs(self, now: datetime) -> tuple[Job, ...]:
        """Return the Jobs at an instant; those whose duration is over have succeeded."""
        for name, end in self._ends.items():
            job = self._jobs[name]
            if end <= now and "conditions" not in job["status"]:
                succeeded = [{"type": "Complete", "status": "True"}]
                ended = {"completionTime": end.isoformat(), "conditions": succeeded}
                self._jobs[name] = {**job, "status": job["status"] | ended}
        return tuple(Job(job) for job in self._jobs.values())

    def running(self, now: datetime) -> tuple[str, ...]:
        """Return the names of Jobs that have not ended at an instant, in order of creation."""
        return tuple(name for name, end in self._ends.items() if end > now)

    def surplus(self, named: Container[str]) -> tuple[str, ...]:
        """Return the names of Jobs that are not in `named` and not being deleted."""
        return tuple(
            name
            for name, job in self._jobs.items()
            if name not in named and "deletionTimestamp" not in job["metadata"]
        )

    def next_end(self, now: datetime) -> datetime | None:
        """Return when the next Job ends after an instant; None if none does."""
        return min((end for end in self._ends.values() if end > now), default=None)

    def _change(self, name: str, **fields: object) -> None:
        job = self._jobs[name]
        self._jobs[name] = {**job, "metadata": {**job["metadata"], **fields}}
