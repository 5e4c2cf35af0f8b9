"""Shards: several Deployments that divide the namespaces, replaced and killed under load.

Whether a namespace was served by one of them at a time is judged by the API server's audit log.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e import chores
from e2e.deployment import ACCOUNT, NAMESPACE, Deployment
from e2e.divided import Divided, at_once, shards, strangers, written
from e2e.flips import PLACES, Flips, twice, waits
from e2e.node.node import Node
from e2e.pods import must_restart
from e2e.rights import ANYBODY, allowed, refused
from hedgerow.deploy.rights import of_installation
from hedgerow_testing.api import Api
from support.cluster.granted import requests, used

pytestmark = [pytest.mark.e2e, pytest.mark.apart, pytest.mark.timeout(900)]

LEASE = 15.0
COUNT = 2


@pytest.fixture(scope="module", autouse=True)
def places(one_node: Node, one_api: Api) -> Iterator[None]:
    """The namespaces of the load go with the last test."""
    yield
    with one_node.network():
        for place in PLACES:
            one_api.raw("DELETE", f"/api/v1/namespaces/{place}")


@pytest.fixture(scope="module")
def divided(one_deployment: Deployment) -> Iterator[Divided]:
    """Two shards by the manifests as they are."""
    with one_deployment.node.network(), Divided.of(one_deployment, COUNT) as made:
        yield made


class Judged:
    """What the audit log tells of the pods that wrote in the namespaces of the load."""

    def __init__(self, node: Node, mark: int, flips: Flips) -> None:
        self._ours = [
            entry
            for entry in node.audit.since(mark, user=ACCOUNT)
            if entry.get("objectRef", {}).get("namespace") in PLACES
        ]
        self.writes = written(self._ours)
        self.longest = max(waits(flips.changes, self._ours).values())
        self.refused = flips.answers.failed

    def must_be_well(self) -> None:
        """Each namespace was served by its shard, by one pod at a time, and nothing twice."""
        print(f"not served for {self.longest:.2f} s at most")

        assert self.writes
        assert strangers(self.writes) == []
        assert at_once(self.writes) == []
        assert twice(self._ours) == []
        assert not self.refused


class TestShards:
    def test_every_shard_serves_its_namespaces_also_while_all_pods_are_replaced(
        self, divided: Divided, node: Node, api: Api
    ):
        """Fact: rollouts of several Deployments under load."""
        before, mark = divided.leaders(COUNT), node.audit.mark()
        with Flips(node, api) as flips:
            flips.go_on()
            for shard in before:
                name = f"deployment/hedgerow-{shard.suffix}"
                node.kubectl("rollout", "restart", "-n", NAMESPACE, name)
                node.kubectl("rollout", "status", "-n", NAMESPACE, name, "--timeout=120s")
            divided.leaders(COUNT)
            flips.go_on()
        flips.carried_out()

        judged = Judged(node, mark, flips)
        judged.must_be_well()
        assert {write.shard for write in judged.writes} == set(shards(COUNT))
        assert judged.longest < LEASE

    def test_the_standby_of_one_that_is_killed_serves_its_namespaces(
        self, divided: Divided, node: Node, api: Api
    ):
        """Fact: a kubelet restarts a killed container."""
        killed, mark = divided.leaders(COUNT)[shards(COUNT)[1]], node.audit.mark()
        with Flips(node, api) as flips:
            flips.go_on()
            divided.usual.process(killed).kill()
            must_restart(api, killed)
            divided.leaders(COUNT)
            flips.go_on()
        flips.carried_out()

        judged = Judged(node, mark, flips)
        judged.must_be_well()
        assert judged.longest < LEASE + 2

    def test_each_right_is_used_and_none_is_refused(
        self, divided: Divided, node: Node, api: Api, namespace: str
    ):
        """Fact: RBAC decides which rights shards use."""
        divided.leaders(COUNT)
        chores.done(node, api, namespace)
        may = allowed(api, ACCOUNT, NAMESPACE) - allowed(api, ANYBODY, NAMESPACE)
        asked = requests(node.audit, divided.mark, ACCOUNT)
        left = of_installation("hedgerow")  # of the operator that was there before
        # A Lease is deleted that somebody else left behind, as that one was.
        deletes = {right for right in may if (right.resource, right.verb) == ("leases", "delete")}

        assert {right for right in may if right.resource == "leases"} == {
            right
            for right in of_installation("hedgerow", shards(COUNT))
            if right.resource == "leases"
        }
        assert sorted(may - used(asked, may) - left - deletes) == []
        assert refused(asked) == []

    def test_another_number_of_shards_takes_over_and_no_two_serve_a_namespace_at_once(
        self, divided: Divided, node: Node, api: Api
    ):
        """Fact: the order in which pods of two divisions write."""
        divided.leaders(COUNT)
        mark = node.audit.mark()
        with Flips(node, api) as flips:
            flips.go_on()
            divided.divide(COUNT + 1)
            divided.leaders(COUNT + 1)
            flips.go_on()
        flips.carried_out()

        judged = Judged(node, mark, flips)
        judged.must_be_well()
        assert {write.shard for write in judged.writes} == {*shards(COUNT), *shards(COUNT + 1)}
