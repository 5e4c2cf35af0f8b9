"""Sharing: who serves which slices, as the Leases of replicas say it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from hedgerow.shards.members import sighting
from hedgerow.shards.slices import ALL, Slices

SHORT = ("--lease-duration", "6s", "--renew-deadline", "4s", "--retry-period", "1s")
DURATION = 6.0
_TOLD = '"sharing the work"'


def held(leases: Iterable[Mapping[str, Any]]) -> dict[str, Slices]:
    """Return what each Lease says that its replica may write for."""
    return {each.name: each.holds for each in (sighting(item, 0.0) for item in leases)}


def served(leases: Iterable[Mapping[str, Any]], names: Iterable[str]) -> Slices:
    """Return what these serve together."""
    holds = held(leases)
    return Slices.of(part for name in names if name in holds for part in holds[name].ranges)


def share(leases: Sequence[Mapping[str, Any]], names: Sequence[str]) -> bool:
    """Return whether these serve all, each a part of its own."""
    holds = held(leases)
    parts = [holds[name] for name in names if name in holds]
    apart = not any(one & other for one, other in combinations(parts, 2))
    return len(parts) == len(names) and all(parts) and apart and served(leases, names) == ALL


def name_of(log: str) -> str:
    """Return the name of a replica in its last life that came so far; empty before that."""
    told = [line for line in log.splitlines() if _TOLD in line and line.endswith("}")]
    return json.loads(told[-1])["replica"] if told else ""
