"""Record: who may write, decided from what was seen of a Lease; pure.

A Lease is free when nothing about it changed, for its duration, while we looked, or when its holder
gave it up before our eyes. No clock but ours counts, and a Lease that is not there, or no longer,
is no freer than one that is held: somebody may still lead who has not noticed yet. Every apply
carries the uid and the version that were seen, so of several only one gets through, and whoever has
got one through leads for `deadline` seconds from before it was sent, which is less than the
duration. So no two lead at once, however slow they or their requests are, with three exceptions:
somebody deletes a Lease so soon after it was created that a candidate has not seen yet that it was
there; a machine is paused by what runs it, and its clock with it; the API server carries a write
out long after it has got it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from hedgerow.objects import annotation
from hedgerow_schemas.base import ApiResource, Object, View

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

LEASES: Final = ApiResource("coordination.k8s.io/v1", "Lease", "leases")
NAMESPACES: Final = "hedgerow.dev/namespaces"
"""The namespaces that the holder keeps to, sorted; absent when it looks at all."""

_CREATE_ONLY: Final = "1"
_GIVEN_UP: Final = 1
"""Seconds: `leaseDurationSeconds` of a Lease without holder, as client-go writes it."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds: how long a lease lasts, until when it must be renewed, and how often that is tried.

    The defaults are client-go's, and so is the rule between them. Raises ValueError when they
    do not fit together.
    """

    duration: float = 15.0
    deadline: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        """Raise ValueError when they do not fit together."""
        if not self.duration > self.deadline > self.retry * 1.2 > 0:
            raise ValueError("a lease needs duration > deadline > retry * 1.2 > 0")

    @property
    def seconds(self) -> int:
        """The duration as the Lease says it: whole seconds, rather more than less."""
        return math.ceil(self.duration)


@dataclass(frozen=True, slots=True)
class Seen:
    """A Lease as it was read; what is absent or ill-typed in it reads as empty."""

    uid: str
    version: str
    holder: str = ""
    seconds: int = 0
    acquired: str = ""
    renewed: str = ""
    transitions: int = 0
    namespaces: tuple[str, ...] = ()
    vacant: bool = False
    """It was given up, or never held; a holder that somebody took out of it may still be there."""


def seen(lease: Mapping[str, Any] | None) -> Seen | None:
    """Read a live Lease, whoever wrote it."""
    if lease is None:
        return None
    view = View(lease)
    told = annotation(lease, NAMESPACES)
    holder, renewed = view.at("spec", "holderIdentity"), view.text("spec", "renewTime")
    return Seen(
        uid=view.uid,
        version=view.text("metadata", "resourceVersion"),
        holder=view.text("spec", "holderIdentity"),
        seconds=view.number("spec", "leaseDurationSeconds"),
        acquired=view.text("spec", "acquireTime"),
        renewed=renewed,
        transitions=view.number("spec", "leaseTransitions"),
        namespaces=tuple(filter(None, told.split(","))),
        vacant=holder == "" or (holder is None and not renewed),
    )


@dataclass(frozen=True, slots=True)
class Look:
    """Read the Lease."""


@dataclass(frozen=True, slots=True)
class Take:
    """Apply `meta` and `spec`: create, take or renew; told by its renewTime in the answer."""

    meta: Object
    spec: Object


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete the Lease of that uid and version: another field manager holds its fields."""

    uid: str
    version: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Leave it alone: somebody leads, or may."""

    holder: str


Step = Look | Take | Remove | Wait


class Election:
    """One candidate for one Lease. All instants are `Clock.elapsed`, in seconds."""

    def __init__(self, identity: str, timing: Timing) -> None:
        self.identity = identity
        self._timing = timing
        self._seen: Seen | None = None
        self._certain = self._looked = False
        self._free_from = self._expires = math.inf
        self._contested = ""
        self._asked: dict[str, float] = {}
        self._until = -math.inf

    @property
    def certain(self) -> bool:
        """Whether what was last seen is all that we know of: no answer is outstanding."""
        return self._certain

    @property
    def seen(self) -> Seen | None:
        """What was last seen."""
        return self._seen

    def remaining(self, now: float) -> float:
        """Return the seconds for which we lead, if nothing more is heard; 0 when we do not."""
        return max(0.0, self._until - now)

    def next(self, now: float, wall: datetime) -> Step:
        """Return what to ask of the server now; `wall` is for people who read the Lease."""
        if not self._certain:
            return Look()
        if self.remaining(now) <= 0 and now < self._free_from:
            return Wait(self._seen.holder if self._seen else "")
        if self._seen and self._seen.version == self._contested and self.remaining(now) <= 0:
            step: Step = Remove(self._seen.uid, self._seen.version)
        else:
            step = self._take(now, wall)
        self._certain = False  # until its answer is heard
        return step

    def looked(self, found: Seen | None, now: float) -> None:
        """Take in what a read or an apply answered, at the time of its arrival."""
        before, self._seen = self._seen, found
        if not self._looked or found != before:
            self._change(before, found, now)
        self._looked = self._certain = True
        sent = self._asked.get(found.renewed) if found and found.holder == self.identity else None
        if sent is not None:
            self._until = max(self._until, sent + self._timing.deadline)
        elif found is not None and found.holder != self.identity:
            self._until = -math.inf

    def doubt(self) -> None:
        """Have the Lease read before anything else is asked."""
        self._certain = False

    def contested(self) -> None:
        """Take in that another field manager holds fields of the Lease: nobody gave it up to us.

        It counts only if the Lease then still is as it was seen: the server tells of conflicts
        before it compares versions (tried on 1.36).
        """
        if self._seen:
            self._contested = self._seen.version
            self._free_from = self._expires

    def removed(self) -> None:
        """Take in that we deleted the expired Lease: ours is the next, if no other is quicker."""
        self._seen, self._free_from, self._certain = None, -math.inf, True

    def give_up(self) -> Take | None:
        """Stop leading, at once, and give what tells so; None when it is not ours to tell."""
        self._until, self._asked = -math.inf, {}
        held = self._seen
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

    def _change(self, before: Seen | None, found: Seen | None, now: float) -> None:
        """Tell from when the Lease may be taken, after a change, or at the first look."""
        # A duration below ours would be an edit: what is written by itself says its own.
        self._expires = now + max(found.seconds if found else 0, self._timing.seconds)
        same = not self._looked or (before and found and before.uid == found.uid)
        vacant = found and found.vacant and same
        self._free_from = now if vacant else self._expires

    def _take(self, now: float, wall: datetime) -> Take:
        held, stamp = self._seen, self._stamp(now, wall)
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
        """Return a renewTime that no other apply of ours has had, and note when it was sent."""
        oldest = now - self._timing.deadline
        self._asked = {text: sent for text, sent in self._asked.items() if sent > oldest}
        while (text := micro_time(wall)) in self._asked or (
            self._seen and text == self._seen.renewed
        ):
            wall += timedelta(microseconds=1)
        self._asked[text] = now
        return text


def micro_time(instant: datetime) -> str:
    """Write a `metav1.MicroTime`: six decimals, or the server answers 500."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
