"""Rollout: every replica replaced, one after the other, while resources change all the time."""

import pytest

from e2e.deployment import ACCOUNT, NAME, NAMESPACE, REPLICAS, Deployment
from e2e.leaders import acquisitions, stolen, strays, terms, writes
from e2e.load import Answers, Load, asking
from e2e.node.node import Node
from e2e.pods import is_ready
from e2e.serving import SECRET, connecting, shown, stored
from hedgerow.encoding import encode
from hedgerow_testing.api import Api, Object
from hedgerow_testing.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(500)]

SOON = 90.0
READING = ("get", "list", "watch")
LACKING = "create,patch,delete jobs.batch in all namespaces for bluegreen, cronjob"


class TestRollout:
    def test_no_change_is_lost_and_no_request_refused(
        self, node: Node, api: Api, deployment: Deployment, namespace: str
    ):
        """Fact: a rollout replaces pods while kube-proxy routes to them."""
        before, judged, connected = uids(deployment), Answers(), Answers()
        mark = node.audit.mark()
        with asking(node, namespace, judged), connecting(node, api, connected):
            # The replicas look for it a few times a minute; the load comes up meanwhile.
            node.kubectl("delete", "secret", "-n", NAMESPACE, SECRET)
            with Load(node, api, namespace) as load:
                children = load.uids()
                eventually(lambda: stored(api), SOON, "another Secret")
                load.goes_on()
                node.kubectl("rollout", "restart", "-n", NAMESPACE, f"deployment/{NAME}")
                deployment.ready()
                deployment.leader()
                load.goes_on()
        load.carried_out()

        print(f"{load.answers.served} changes, {judged.served} dry runs")
        print(f"{connected.served} new connections")
        assert not load.answers.failed
        assert not judged.failed
        assert not connected.failed
        assert load.uids() == children
        assert len(uids(deployment)) == REPLICAS
        assert not uids(deployment) & before
        must_be_by_leaders(node, mark)
        eventually(lambda: agree(deployment), SOON, "one certificate")


class TestRolloutWithoutARight:
    def test_it_stops_with_the_old_leader_at_work_until_the_right_is_granted(
        self, node: Node, api: Api, deployment: Deployment
    ):
        """Fact: the Deployment controller waits for readiness before it goes on."""
        before = uids(deployment)
        live = api.raw("GET", ROLE).must()
        role = {**live, "metadata": {"name": NAME, "labels": live["metadata"]["labels"]}}
        # They may read on: a watch of the old replicas may end at any time, and is made anew.
        fewer = [
            {**rule, "verbs": [v for v in rule["verbs"] if v in READING]}
            if "jobs" in rule["resources"]
            else rule
            for rule in role["rules"]
        ]
        try:
            apply(node, {**role, "rules": fewer})
            node.kubectl("rollout", "restart", "-n", NAMESPACE, f"deployment/{NAME}")
            [log] = eventually(lambda: lacking(node, deployment, before), SOON)

            assert LACKING in log
            assert before <= uids(deployment)
            assert deployment.leader()["metadata"]["uid"] in before
        finally:
            apply(node, role)
        deployment.ready()
        assert not uids(deployment) & before


ROLE = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{NAME}"


def apply(node: Node, manifest: Object) -> None:
    """Apply a manifest as `Deployment.of` does."""
    node.kubectl("apply", "--server-side", "-f", "-", given=encode(manifest).decode())


def lacking(node: Node, deployment: Deployment, before: set[str]) -> list[str]:
    """Return the logs of new pods that are not ready, and say that they lack rights."""
    new = [pod for pod in deployment.pods() if pod["metadata"]["uid"] not in before]
    names = [pod["metadata"]["name"] for pod in new if not is_ready(pod)]
    logs = [node.kubectl("logs", "-n", NAMESPACE, name, check=False) for name in names]
    return [log for log in logs if "rights lack" in log]


def uids(deployment: Deployment) -> set[str]:
    return {pod["metadata"]["uid"] for pod in deployment.pods()}


def must_be_by_leaders(node: Node, mark: int) -> None:
    """More than one replica wrote since the mark, and each only while it held the Lease."""
    acquired = acquisitions(node.audit.since(user=ACCOUNT, resource="leases"))
    made = writes(node.audit.writes(mark, user=ACCOUNT))

    assert len({write.pod for write in made}) > 1
    assert not stolen(acquired)
    assert not strays(made, terms(acquired))


def agree(deployment: Deployment) -> bool:
    """Return whether every pod serves the certificate in the Secret."""
    certificate = stored(deployment.api)
    served = {shown(pod["status"]["podIP"]) for pod in deployment.pods()}
    return certificate is not None and served == {certificate.serial_number}
