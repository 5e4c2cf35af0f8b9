"""Rollout: every replica replaced, one after the other, while resources change all the time."""

import pytest

from e2e.deployment import NAME, NAMESPACE, REPLICAS, Deployment
from e2e.load import Answers, Load, asking
from e2e.node.node import Node
from e2e.serving import connecting
from hedgerow.testing.api import Api

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(500)]

ROLLOUTS = 2


class TestRollout:
    def test_no_change_is_lost_and_no_request_refused(
        self, node: Node, api: Api, deployment: Deployment, namespace: str
    ):
        before, judged, connected = uids(deployment), Answers(), Answers()
        with (
            Load(node, api, namespace) as load,
            asking(node, namespace, judged),
            connecting(node, api, connected),
        ):
            children = load.uids()
            load.goes_on()
            for _ in range(ROLLOUTS):
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


def uids(deployment: Deployment) -> set[str]:
    return {pod["metadata"]["uid"] for pod in deployment.pods()}
