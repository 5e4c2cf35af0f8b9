"""Leaders: one that is cut off, while there always is something to write."""

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import psutil
import pytest

from e2e.deployment import ACCOUNT, NAMESPACE, Deployment
from e2e.leaders import acquisitions, ended, stolen, strays, terms, writes
from e2e.load import Load
from e2e.node.node import Node
from e2e.pods import must_restart
from hedgerow.runtime.clock import SystemClock
from hedgerow_testing.api import Api, Object
from hedgerow_testing.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(500)]

SOON = 120.0


@dataclass
class Scene:
    """A leader at work on resources that change, and what becomes of both."""

    node: Node
    deployment: Deployment
    load: Load
    mark: int
    ends: dict[str, datetime] = field(default_factory=dict[str, datetime])

    def leader(self) -> tuple[Object, str, psutil.Process]:
        """Return the leader's pod, its name as a holder, and its own process."""
        pod = self.deployment.leader()
        process = self.deployment.process(pod)
        return pod, self._holder(), process

    def ended(self, process: psutil.Process, holder: str) -> datetime:
        """Wait until a process has ended, and remember when that was known."""
        eventually(lambda: not process.is_running(), SOON, "the end of the leader's process")
        now = SystemClock().now()
        # What was on its way may be taken in a moment later; another process takes longer to begin.
        self.ends[holder] = now + timedelta(seconds=0.5)
        return now

    def another_leads(self, former: str) -> None:
        """Wait until another process leads, and let it work for a while."""
        eventually(lambda: self._holder() not in ("", former), SOON, "another leader")
        self.load.goes_on()

    def _holder(self) -> str:
        return self.deployment.lease()["spec"].get("holderIdentity", "")

    def said_before_it_restarted(self, pod: Object) -> list[str]:
        """Return the lines of the log of a pod's process before the one that is there."""
        asked = ("logs", "--previous", "-n", NAMESPACE, pod["metadata"]["name"])
        return self.node.kubectl(*asked).splitlines()

    def must_end_well(self, former: str, since: datetime) -> None:
        """All changes are carried out, and nothing was written by who did not lead."""
        self.load.repeat()
        self.load.carried_out()
        acquired = acquisitions(self.node.audit.since(user=ACCOUNT, resource="leases"))
        held = terms(acquired)
        for holder, at in self.ends.items():
            held = ended(held, holder, at)
        made = writes(self.node.audit.writes(self.mark, user=ACCOUNT))
        taken = next(term for term in held if term.since > since and term.holder != former)
        later = [write for write in made if write.asked >= taken.since]

        assert not stolen(acquired)
        assert not strays(made, held)
        assert {write.pod for write in later} >= {taken.pod}
        print(f"handed over in {(taken.since - since).total_seconds():.2f} s")
        print(f"{len(made) - len(later)} writes before, {len(later)} after")
        print(f"{self.load.answers.served} changes, {len(self.load.answers.failed)} refused")


@pytest.fixture
def scene(node: Node, api: Api, deployment: Deployment, namespace: str) -> Scene:
    """A leader that is about to have work."""
    deployment.leader()
    return Scene(node, deployment, Load(node, api, namespace), node.audit.mark())


class TestLeader:
    def test_one_that_is_cut_off_ends_and_writes_no_more_when_it_is_back(self, scene: Scene):
        """Fact: a network that drops packets, and a kubelet that restarts the pod."""
        with scene.load:
            scene.load.goes_on()
            pod, former, process = scene.leader()
            since = SystemClock().now()
            with scene.node.cut_off(pod["status"]["podIP"]):
                end = scene.ended(process, former)
                scene.another_leads(former)
            must_restart(scene.load.api, pod)
            said = scene.said_before_it_restarted(pod)
            scene.load.goes_on()
        scene.must_end_well(former, since)
        last = [json.loads(line) for line in said][-1]
        assert (last["event"], last["exit_code"]) == ("ended", 1)
        assert last["error"].startswith("the lease was not renewed for 10 s (")
        print(f"the one cut off had ended after {(end - since).total_seconds():.2f} s")
