"""Divided: the operator in the cluster as several Deployments, one for each shard."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Self

import yaml

from e2e.deployment import NAME, NAMESPACE, Deployment
from e2e.leaders import POD_NAME
from e2e.pods import is_ready
from e2e.rights import abandon
from hedgerow.shard import Shard, shard_of
from hedgerow_testing.api import Object
from hedgerow_testing.audit_log import AuditEntry
from hedgerow_testing.waiting import eventually

_SOON = 120.0
_SHARDS = f"app.kubernetes.io/instance={NAME},app.kubernetes.io/component"


@dataclass(frozen=True, slots=True)
class Divided:
    """What `hedgerow manifests --shards N` makes, in the place of the usual Deployment."""

    usual: Deployment
    mark: int
    """Where the audit log was when it began."""

    @classmethod
    @contextmanager
    def of(cls, usual: Deployment, count: int) -> Generator[Self]:
        """Have so many shards meanwhile.

        They begin without a Secret, beside a Lease that somebody left behind.
        """
        usual.leader()
        usual.remove()
        abandon(usual.api)
        made = cls(usual, usual.node.audit.mark())
        try:
            made.divide(count)
            yield made
        finally:
            made.remove(_SHARDS)
            Deployment.of(usual.node, usual.api)

    def divide(self, count: int) -> None:
        """Apply the manifests of so many shards, and delete Deployments of other numbers."""
        given = yaml.safe_dump_all(manifests(count))
        self.usual.node.kubectl("apply", "--server-side", "-f", "-", given=given)
        wanted = ",".join(shard.suffix for shard in shards(count))
        self.remove(f"{_SHARDS} notin ({wanted})")

    def remove(self, selector: str) -> None:
        """Delete the Deployments that are selected, and wait until their pods are gone."""
        which = ("deployment", "-n", NAMESPACE, "-l", selector)
        self.usual.node.kubectl("delete", *which, "--cascade=foreground", f"--timeout={_SOON:.0f}s")

    def leaders(self, count: int) -> dict[Shard, Object]:
        """Wait until each of so many shards is led by a ready pod, and return these."""
        return {
            shard: eventually(lambda shard=shard: self._leader(shard), _SOON, f"who leads {shard}")
            for shard in shards(count)
        }

    def _leader(self, shard: Shard) -> Object | None:
        leases = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
        lease = self.usual.api.raw("GET", f"{leases}/{NAME}-{shard.suffix}").body
        holder = lease.get("spec", {}).get("holderIdentity") or ""
        for pod in self.usual.pods():
            if holder.startswith(f"{pod['metadata']['name']}_") and is_ready(pod):
                return pod
        return None


def shards(count: int) -> list[Shard]:
    """Return all shards of a division."""
    return [Shard(number, count) for number in range(count)]


def manifests(count: int) -> list[Object]:
    """Return what `hedgerow manifests --shards` prints."""
    words = [sys.executable, "-m", "hedgerow", "manifests", f"--shards={count}", "--no-crds"]
    printed = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
    return list(yaml.safe_load_all(printed))


@dataclass(frozen=True, slots=True)
class PodWrite:
    """A write of a pod in a namespace: from when to when."""

    place: str
    pod: str
    began: str
    ended: str

    @property
    def shard(self) -> Shard | None:
        """The shard of its Deployment; None for a pod of the undivided one."""
        return shard_of(NAME, self.pod.rsplit("-", 2)[0])


def written(entries: list[AuditEntry]) -> list[PodWrite]:
    """Return the writes in namespaces, in the order in which they began."""
    found = [
        PodWrite(
            entry["objectRef"]["namespace"],
            entry["user"]["extra"][POD_NAME][0],
            entry["requestReceivedTimestamp"],
            entry["stageTimestamp"],
        )
        for entry in entries
        if entry["verb"] in ("patch", "delete")
        if entry["objectRef"].get("namespace", NAMESPACE) != NAMESPACE
    ]
    return sorted(found, key=lambda write: write.began)


def strangers(writes: list[PodWrite]) -> list[str]:
    """Return the writes of pods whose shard does not serve the namespace, a line each."""
    return [f"{w}" for w in writes if not w.shard or not w.shard.serves(w.place)]


def at_once(writes: list[PodWrite]) -> list[str]:
    """Return the writes in a namespace that began before one of another pod had ended."""
    found: list[str] = []
    for _, those in groupby(sorted(writes, key=lambda w: (w.place, w.began)), lambda w: w.place):
        last: dict[str, PodWrite] = {}
        for write in those:
            found += [
                f"{other}; {write}"
                for other in last.values()
                if other.pod != write.pod and other.ended > write.began
            ]
            former = last.get(write.pod, write)
            last[write.pod] = max(former, write, key=lambda w: w.ended)
    return found
