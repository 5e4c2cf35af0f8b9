"""The operator's rights in the cluster: all that it needs, and nothing else."""

import pytest

from e2e import chores
from e2e.deployment import ACCOUNT, NAME, NAMESPACE, REPLICAS, Deployment
from e2e.node.node import Node
from e2e.rights import ANYBODY, abandon, allowed, paths, refused
from hedgerow.deploy.rights import of_installation
from hedgerow.testing.api import Api
from support.cluster.granted import requests, used

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(540)]

SOON = 90.0


class TestRights:
    def test_none_is_left_unused_and_nothing_is_refused(
        self, deployment: Deployment, node: Node, api: Api, namespace: str
    ):
        mark = node.audit.mark()
        from_nothing(deployment, api)
        chores.done(node, api, namespace)

        asked = requests(node.audit, mark, ACCOUNT)
        may = allowed(api, ACCOUNT, NAMESPACE) - allowed(api, ANYBODY, NAMESPACE)
        print(f"{len(may)} rights, {len(asked)} requests")
        assert len(may) > 50
        assert sorted(may - used(asked, may)) == []
        assert refused(asked) == []

    def test_nothing_was_refused_since_it_was_deployed(self, deployment: Deployment, node: Node):
        deployment.leader()
        asked = requests(node.audit, 0, ACCOUNT)

        print(f"{len(asked)} requests since the beginning")
        assert len(asked) > 50
        assert refused(asked) == []

    def test_secrets_and_leases_are_its_own_ones_only(
        self, deployment: Deployment, api: Api, namespace: str
    ):
        at_home, elsewhere = (allowed(api, ACCOUNT, place) for place in (NAMESPACE, namespace))

        assert at_home - elsewhere == of_installation(NAME)
        assert elsewhere < at_home
        assert not [right for right in elsewhere if right.resource in ("secrets", "leases")]

    def test_beside_resources_it_may_what_anybody_may(self, deployment: Deployment, api: Api):
        assert paths(api, ACCOUNT) == paths(api, ANYBODY)


def from_nothing(deployment: Deployment, api: Api) -> None:
    """Start it without a Secret, beside a Lease that somebody else left behind."""
    deployment.leader()
    scale = ("scale", "-n", NAMESPACE, f"deployment/{NAME}")
    deployment.node.kubectl(*scale, "--replicas=0")
    try:
        theirs = ("pods", "-n", NAMESPACE, "-l", f"app.kubernetes.io/name={NAME}")
        deployment.node.kubectl("wait", "--for=delete", *theirs, f"--timeout={SOON:.0f}s")
        abandon(api)
    finally:
        deployment.node.kubectl(*scale, f"--replicas={REPLICAS}")
    deployment.ready()
    deployment.leader()
