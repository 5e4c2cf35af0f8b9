"""Shards list: who serves what, for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.shards.slices import written

if TYPE_CHECKING:
    from hedgerow.cli.shards.report import Gap, Replica, ShardsReport


def listed(report: ShardsReport) -> dict[str, Any]:
    """Return a report as a map."""
    assigned = report.assignment
    return {
        "replicas": [_replica(each) for each in report.replicas],
        "more": report.more,
        "unserved": [_gap(gap) for gap in report.gaps],
        "assignment": assigned
        and {"epoch": assigned.epoch, "since": assigned.since, "author": assigned.author},
        "leader": report.leader,
    }


def _replica(each: Replica) -> dict[str, Any]:
    return {
        "name": each.name,
        "state": each.state,
        "slices": written(each.slices),
        "share": round(each.slices.share, 4),
        "namespaces": each.namespaces,
        "resources": each.resources,
        "passes": each.passes,
        "lag": each.lag,
        "revision": each.revision,
        "since": each.since,
    }


def _gap(gap: Gap) -> dict[str, Any]:
    return {
        "slices": written(gap.slices),
        "share": round(gap.slices.share, 4),
        "since": gap.since,
        "former": gap.former,
    }
