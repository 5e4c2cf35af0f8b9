"""Record: who may write, decided from what was seen of a Lease; pure.

A Lease is free if it did not change for its duration while we looked, or if we saw its holder
release it. Only our own clock counts. A missing Lease counts as held: somebody may still lead who
has not noticed the deletion yet.

Every apply has the uid and the version that were seen, so only one of several succeeds. Whoever
succeeds leads for `deadline` seconds, counted from before the apply was sent; this is less than the
duration. So no two candidates lead at once, however slow they or their requests are. There are
three exceptions:

- Somebody deletes a Lease before a candidate has seen that it was created.
- A virtual machine is paused, and its clock with it.
- The API server carries out a write long after it received it.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from hedgerow_schemas.base import ApiResource, Object, View

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

LEASES: Final = ApiResource("coordination.k8s.io/v1", "Lease", "leases")

_CREATE_ONLY: Final = "1"
_GIVEN_UP: Final = 1
"""Seconds: `leaseDurationSeconds` of a Lease without a holder, as client-go writes it."""


class Timing(Struct, frozen=True):
    """Seconds: how long a Lease lasts; all else follows, in the proportions of client-go."""

    duration: float = 15.0

    @property
    def deadline(self) -> float:
        """How long a leader works without renewing the Lease."""
        return self.duration * 10 / 15

    @property
    def retry(self) -> float:
        """How long to wait between two attempts to acquire or renew it."""
        return self.duration * 2 / 15

    @property
    def margin(self) -> float:
        """The time between a leader's last write and the next leader's first."""
        return self.duration - self.deadline

    @property
    def seconds(self) -> int:
        """The duration as written to the Lease: whole seconds, rounded up."""
        return math.ceil(self.duration)


class Seen(Struct, frozen=True):
    """A Lease as it was read; absent or ill-typed fields are empty."""

    uid: str
    version: str
    holder: str = ""
    seconds: int = 0
    acquired: str = ""
    renewed: str = ""
    transitions: int = 0
    vacant: bool = False
    """It was released, or never held. If somebody else removed the holder, it may still lead."""
    written: str = ""
    """When the API server wrote it last, by the server's clock."""


def seen(lease: Mapping[str, Any] | None) -> Seen | None:
    """Return a live Lease as it was read; None without one."""
    if lease is None:
        return None
    view = View(lease)
    holder, renewed = view.at("spec", "holderIdentity"), view.text("spec", "renewTime")
    entries = view.items("metadata", "managedFields")
    return Seen(
        uid=view.uid,
        version=view.text("metadata", "resourceVersion"),
        holder=view.text("spec", "holderIdentity"),
        seconds=view.number("spec", "leaseDurationSeconds"),
        acquired=view.text("spec", "acquireTime"),
        renewed=renewed,
        written=max((View(entry).text("time") for entry in entries), default=""),
        transitions=view.number("spec", "leaseTransitions"),
        vacant=holder == "" or (holder is None and not renewed),
    )


class Read(Struct, frozen=True):
    """Read the Lease."""


class Take(Struct, frozen=True):
    """Apply `meta` and `spec`: create, take or renew; the response is known by its renewTime."""

    meta: Object
    spec: Object


class Remove(Struct, frozen=True):
    """Delete the Lease with this uid and version: another field manager holds its fields."""

    uid: str
    version: str


class Wait(Struct, frozen=True):
    """Leave it alone: somebody leads, or may lead."""

    holder: str


LeaseStep = Read | Take | Remove | Wait


class Election:
    """One candidate for one Lease. All instants are `Clock.elapsed`, in seconds."""

    def __init__(self, identity: str, timing: Timing) -> None:
        self.identity = identity
        self._timing = timing
        self.seen: Seen | None = None
        """The Lease as last seen."""
        self.certain = False
        """Whether the Lease as last seen is current: no request is unanswered."""
        self._looked = False
        self._free_from = self._expires = math.inf
        self._contested = ""
        self._asked: dict[str, float] = {}
        self.until = -math.inf
        """Until when we lead without another renewal."""

    def remaining(self, now: float) -> float:
        """Return the seconds for which we lead without another renewal; 0 if we do not lead."""
        return max(0.0, self.until - now)

    def free_in(self, now: float) -> float:
        """Return the seconds until the Lease may be taken if nobody renews it.

        0 if it may be taken now, infinite before the first response.
        """
        return max(0.0, self._free_from - now)

    def next(self, now: float, wall: datetime) -> LeaseStep:
        """Return the next request; the wall-clock time `wall` is only for people to read."""
        if not self.certain:
            return Read()
        if self.remaining(now) <= 0 and now < self._free_from:
            return Wait(self.seen.holder if self.seen else "")
        if self.seen and self.seen.version == self._contested and self.remaining(now) <= 0:
            step: LeaseStep = Remove(self.seen.uid, self.seen.version)
        else:
            step = self._taking(now, wall)
        self.certain = False  # until the response arrives
        return step

    def take_in(self, lease: Seen | None, now: float) -> None:
        """Take in the response to a read or an apply, when it arrives."""
        before, self.seen = self.seen, lease
        if not self._looked or lease != before:
            self._change(before, lease, now)
        self._looked = self.certain = True
        sent = self._asked.get(lease.renewed) if lease and lease.holder == self.identity else None
        if sent is not None:
            self.until = max(self.until, sent + self._timing.deadline)
        elif lease is not None and lease.holder != self.identity:
            self.until = -math.inf

    def doubt(self) -> None:
        """Read the Lease before any other request."""
        self.certain = False

    def contested(self) -> None:
        """Take in that another field manager holds fields of the Lease: it was not released to us.

        It counts only if the Lease is still in the version that was seen: the server reports
        conflicts before it compares versions (seen on 1.36).
        """
        if self.seen:
            self._contested = self.seen.version
            self._free_from = self._expires

    def removed(self) -> None:
        """Take in that we deleted the expired Lease: we may create the next one at once."""
        self.seen, self._free_from, self.certain = None, -math.inf, True

    def give_up(self) -> Take | None:
        """Stop leading at once; return the apply that releases the Lease, or None if not held."""
        self.until, self._asked = -math.inf, {}
        held = self.seen
        if held is None or held.holder != self.identity:
            return None
        spec: Object = {
            "holderIdentity": "",
            "leaseDurationSeconds": _GIVEN_UP,
            "acquireTime": held.acquired,
            "renewTime": held.renewed,
            "leaseTransitions": held.transitions,
        }
        spec = {key: value for key, value in spec.items() if value or "Time" not in key}
        return Take({"uid": held.uid, "resourceVersion": held.version}, spec)

    def _change(self, before: Seen | None, lease: Seen | None, now: float) -> None:
        """Set from when the Lease may be taken, after a change or the first response."""
        # A duration below ours must be somebody's edit: every candidate writes its own duration.
        self._expires = now + max(lease.seconds if lease else 0, self._timing.seconds)
        same = not self._looked or (before and lease and before.uid == lease.uid)
        vacant = lease and lease.vacant and same
        self._free_from = now if vacant else self._expires

    def _taking(self, now: float, wall: datetime) -> Take:
        held, stamp = self.seen, self._stamp(now, wall)
        ours = held is not None and held.holder == self.identity
        spec: Object = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self._timing.seconds,
            "acquireTime": (held.acquired if held and ours else "") or stamp,
            "renewTime": stamp,
            "leaseTransitions": held.transitions + (not ours) if held else 0,
        }
        if held is None:
            return Take({"resourceVersion": _CREATE_ONLY}, spec)
        return Take({"uid": held.uid, "resourceVersion": held.version}, spec)

    def _stamp(self, now: float, wall: datetime) -> str:
        """Return a renewTime that no other apply of ours had, and record when it was sent."""
        oldest = now - self._timing.deadline
        self._asked = {text: sent for text, sent in self._asked.items() if sent > oldest}
        while (text := micro_time(wall)) in self._asked or (
            self.seen and text == self.seen.renewed
        ):
            wall += timedelta(microseconds=1)
        self._asked[text] = now
        return text


def micro_time(instant: datetime) -> str:
    """Return a `metav1.MicroTime`: without six decimals the server answers 500."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
