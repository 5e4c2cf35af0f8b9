"""Sharing: the operator in the cluster with replicas that share the work."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

import yaml

from e2e.deployment import NAME, NAMESPACE, Deployment
from e2e.pods import is_ready
from e2e.rights import abandon
from hedgerow.cli.shards.report import Replica, ShardsReport, reported
from hedgerow.runtime.clock import SystemClock
from hedgerow.shards.members import LABEL
from hedgerow.testing.api import Object
from hedgerow.testing.waiting import eventually

_LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
_SOON = 240.0


@dataclass(frozen=True, slots=True)
class Sharing:
    """The Deployment of `hedgerow manifests --shards`, in the place of the usual one."""

    deployment: Deployment
    mark: int
    """Where the audit log was when it began."""

    @classmethod
    @contextmanager
    def of(cls, usual: Deployment, **settings: str) -> Generator[Self]:
        """Have replicas share the work meanwhile; `settings` are environment variables.

        They begin without a Secret, beside a Lease that somebody left behind.
        """
        node, api = usual.node, usual.api
        usual.leader()
        usual.remove()
        abandon(api)
        mark = node.audit.mark()
        shared = cls(usual, mark)
        shared.apply(**settings)
        try:
            yield shared
        finally:
            usual.remove()
            Deployment.of(node, api)

    def apply(self, **settings: str) -> None:
        """Apply the manifests; `settings` are environment variables."""
        given = yaml.safe_dump_all(manifests(settings))
        self.deployment.node.kubectl("apply", "--server-side", "-f", "-", given=given)

    def report(self) -> ShardsReport:
        """Return what `hedgerow shards` shows."""
        params = {"labelSelector": f"{LABEL}={NAME}"}
        leases = self.deployment.api.raw("GET", _LEASES, params=params).must()["items"]
        return reported(leases, NAME, SystemClock().now())

    def replaced(self, former: Collection[str]) -> None:
        """Wait until none of these pods is there any more."""

        def left() -> set[str]:
            return {pod["metadata"]["name"] for pod in self.deployment.pods()} & {*former}

        eventually(lambda: not left(), _SOON, "other pods")

    def shared_by(self, number: int) -> list[Replica]:
        """Wait until so many replicas, each in a ready pod, serve everything together."""

        def serve() -> list[Replica]:
            report, pods = self.report(), self.deployment.pods()
            found = [each for each in report.replicas if each.is_there]
            named = sorted(pod["metadata"]["name"] for pod in pods if is_ready(pod))
            settled = all(each.state == "serves" and each.slices for each in found)
            exact = [each.name for each in found] == named and len(pods) == number == len(named)
            return found if settled and exact and not report.gaps else []

        return eventually(serve, _SOON, f"{number} replicas that serve everything")


def manifests(settings: Mapping[str, str]) -> list[Object]:
    """Return what `hedgerow manifests --shards` prints, with settings as environment variables."""
    words = [sys.executable, "-m", "hedgerow", "manifests", "--shards", "--no-crds"]
    printed = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
    objects: list[Object] = list(yaml.safe_load_all(printed))
    (deployment,) = (each for each in objects if each["kind"] == "Deployment")
    (program,) = deployment["spec"]["template"]["spec"]["containers"]
    program["env"] += [{"name": name, "value": value} for name, value in settings.items()]
    return objects
