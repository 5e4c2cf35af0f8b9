"""Roster: the operators without leader election, listed in one Lease; pure.

Each operator has an annotation of its own, which it changes as long as it works. If an annotation
does not change for its duration while we look, its operator is gone; only our own clock counts.
Every apply has the uid and the version that were seen, and repeats the others' annotations. If
several join or renew at once, one succeeds, and the others read again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter, ValidationError

from hedgerow.objects import PROGRAM, digest, metadata
from hedgerow.runtime.leaderelection.record import micro_time
from hedgerow.validation import cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from hedgerow_schemas.base import Object

_KEY: Final = "hedgerow.dev/operator-"
_CREATE_ONLY: Final = "1"
_SHOWN: Final = 200
"""The most characters of `holderIdentity`, which `kubectl get leases` shows."""


def name_of(program: str) -> str:
    """Return the name of a program's Lease; an election's Lease has no dot in its name."""
    return f"{program}.operators"


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator process: its installation, and what it works on; no namespaces mean all.

    `renewed` is by its own clock. `seconds` is how long others wait for its next renewal.
    """

    identity: str
    instance: str
    controllers: tuple[str, ...]
    namespaces: tuple[str, ...] = ()
    seconds: int = 0
    renewed: str = ""

    @property
    def key(self) -> str:
        """The name of its annotation."""
        return _KEY + digest(self.identity)

    def meets(self, other: Operator) -> bool:
        """Return whether both work on the same resources."""
        return meet(self.namespaces, other.namespaces) and not set(self.controllers).isdisjoint(
            other.controllers
        )


def meet(some: Iterable[str], others: Iterable[str]) -> bool:
    """Return whether two sets of namespaces overlap; an empty set means all namespaces."""
    return not some or not others or not set(some).isdisjoint(others)


_OPERATOR: Final = TypeAdapter(Operator)


def written(operator: Operator) -> str:
    """Return the annotation's value."""
    return _OPERATOR.dump_json(operator).decode()


def read(text: str) -> Operator | None:
    """Return the operator in an annotation's value; None if it cannot be read."""
    try:
        return _OPERATOR.validate_json(text, strict=True)
    except ValidationError:
        return None


@dataclass(frozen=True, slots=True)
class SeenOperator:
    """One operator's entry, since when it is unchanged, and whether we saw it change before."""

    operator: Operator
    since: float
    lives: bool = False


def _is_same(one: Operator, other: Operator) -> bool:
    return one.instance == other.instance


class Roster:
    """What was seen of one such Lease. All instants are `Clock.elapsed`, in seconds."""

    def __init__(self, ours: Operator, program: str = PROGRAM) -> None:
        self.ours = ours
        self.name = name_of(program)
        self.uid = self.version = ""
        self._seen: dict[str, SeenOperator] = {}

    def looked(self, lease: Object | None, now: float) -> None:
        """Take in the response to a read or an apply; None if the Lease does not exist."""
        meta = metadata(lease or {})
        self.uid, self.version = meta.get("uid", ""), meta.get("resourceVersion", "")
        annotations: dict[str, str] = meta.get("annotations") or {}
        found = (read(text) for key, text in annotations.items() if key.startswith(_KEY))
        self._seen = {
            one.key: self._sighted(one, now) for one in found if one and one.key != self.ours.key
        }

    def _sighted(self, operator: Operator, now: float) -> SeenOperator:
        before = self._seen.get(operator.key)
        if before is None:
            return SeenOperator(operator, now)
        if before.operator == operator:
            return before
        return SeenOperator(operator, now, lives=True)

    def operator_at_work(self, now: float) -> Operator | None:
        """Return an operator of our installation that was seen working on the same, or None."""
        rivals = (seen for seen in self._met(now) if _is_same(seen.operator, self.ours))
        return next((seen.operator for seen in rivals if seen.lives), None)

    def other_installations(self, now: float) -> tuple[Operator, ...]:
        """Return the operators of other installations that were seen working on the same."""
        met = (seen.operator for seen in self._met(now) if seen.lives)
        return tuple(operator for operator in met if not _is_same(operator, self.ours))

    def is_doubtful(self, now: float) -> bool:
        """Return whether an operator of our installation may still work on the same."""
        return any(_is_same(seen.operator, self.ours) for seen in self._met(now))

    def joined(self, now: float, wall: datetime) -> Object:
        """Return the apply that adds or renews our entry, and leaves out operators that are gone.

        Its time always differs from the last one, whatever the wall clock does.
        """
        if micro_time(wall) == self.ours.renewed:
            wall += timedelta(microseconds=1)
        self.ours = replace(self.ours, renewed=micro_time(wall))
        return self._body([*self._others(now), self.ours])

    def is_last(self, now: float) -> bool:
        """Return whether nobody else is on the roster."""
        return not any(self._others(now))

    def left(self, now: float) -> Object:
        """Return the apply that removes our entry."""
        return self._body(list(self._others(now)))

    def _met(self, now: float) -> Iterator[SeenOperator]:
        for seen in self._seen.values():
            if seen.operator.meets(self.ours) and not self._is_gone(seen, now):
                yield seen

    def _others(self, now: float) -> Iterator[Operator]:
        return (seen.operator for seen in self._seen.values() if not self._is_gone(seen, now))

    def _is_gone(self, seen: SeenOperator, now: float) -> bool:
        # A duration below ours must be somebody's edit: every operator writes its own duration.
        return now - seen.since >= max(seen.operator.seconds, self.ours.seconds)

    def _body(self, operators: list[Operator]) -> Object:
        guard = {"uid": self.uid, "resourceVersion": self.version}
        holders = cut(", ".join(one.identity for one in operators), _SHOWN)
        return {
            "metadata": {
                "name": self.name,
                "annotations": {one.key: written(one) for one in operators},
                **(guard if self.uid else {"resourceVersion": _CREATE_ONLY}),
            },
            "spec": {"holderIdentity": holders},
        }
