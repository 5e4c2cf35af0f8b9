"""The Leases of an installation that shares the work, as its replicas write them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from hedgerow.runtime.leaderelection.record import NAMESPACES, micro_time
from hedgerow.shards.members import ASSIGNMENT, LABEL, MEMBER_STATUS
from hedgerow.shards.slices import COUNT

Object = dict[str, Any]

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
SYSTEM = "hedgerow-system"
THIRD = COUNT // 3
FIRST, SECOND, LAST = f"0-{THIRD:x}", f"{THIRD:x}-{2 * THIRD:x}", f"{2 * THIRD:x}-{COUNT:x}"
ALL = f"0-{COUNT:x}"


def lease(name: str, holder: str, ago: float = 1, *, base: str = "hedgerow", **more: Any) -> Object:
    """Return a Lease that was renewed so many seconds ago."""
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": 15,
        "acquireTime": micro_time(NOW - timedelta(hours=3)),
        "renewTime": micro_time(NOW - timedelta(seconds=ago)),
    }
    meta = {"name": name, "namespace": SYSTEM, "labels": {LABEL: base}}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": meta | {"annotations": more.pop("annotations", {})},
        "spec": spec | more,
    }


def member(pod: str, holds: str, ago: float = 1, holder: str | None = None, **said: Any) -> Object:
    """Return the Lease of a replica that serves these slices, unless told otherwise."""
    told = {
        "token": "7.0", "epoch": 7, "ready": True, "filled": True, "leaving": False, "holds": holds,
        "facts": {"namespaces": 4, "resources": 31, "passes": 2.04, "lag": 0.012},
    }  # fmt: skip
    text = said.pop("text", json.dumps(told | said))
    identity = f"{pod}_x1" if holder is None else holder
    return lease(f"hedgerow-{pod}", identity, ago, annotations={MEMBER_STATUS: text})


def election(pod: str = "a", ago: float = 1, namespaces: str = "") -> Object:
    """Return the Lease of the leader."""
    limits = {NAMESPACES: namespaces} if namespaces else {}
    return lease("hedgerow", f"{pod}_x1", ago, annotations=limits)


def assignment(epoch: int = 7, ago: float = 240, **more: Any) -> Object:
    """Return the Lease in which the leader says who serves what."""
    told = {"epoch": epoch, "nonce": "n", "members": ["hedgerow-a"], "parts": [[0, 0]]}
    text = json.dumps(told | more)
    return lease("hedgerow-shards", "hedgerow-a", ago, annotations={ASSIGNMENT: text})


def three(**changes: Object) -> list[Object]:
    """Return the Leases of three replicas with a third each; `a` to `c` may be others."""
    members = {"a": member("a", FIRST), "b": member("b", SECOND), "c": member("c", LAST)}
    return [election(), assignment(), *(members | changes).values()]


def moved(obj: Object, namespace: str, now: datetime) -> Object:
    """Return a Lease as it would be in another namespace and at another time."""
    later = now - NOW
    times = {
        name: micro_time(datetime.fromisoformat(obj["spec"][name]) + later)
        for name in ("acquireTime", "renewTime")
    }
    spec = obj["spec"] | times
    return obj | {"metadata": obj["metadata"] | {"namespace": namespace}, "spec": spec}
