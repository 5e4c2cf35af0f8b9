"""The operator's rights in the cluster: all that it needs, and nothing else."""

import pytest

from e2e.deployment import ACCOUNT, NAME, NAMESPACE, Deployment
from e2e.node.images import OPERATOR
from e2e.node.node import Node
from e2e.rights import ANYBODY, allowed, paths, refused
from hedgerow.deploy.overlays import parts
from hedgerow.deploy.rights import Right, of_installation
from hedgerow.testing.api import Api
from support.cluster.granted import granted, requests
from support.operator.registered import REGISTRY

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(360)]


class TestRights:
    def test_nothing_was_refused_since_it_was_deployed(self, deployment: Deployment, node: Node):
        """Fact: RBAC refused the deployed operator nothing."""
        deployment.leader()
        asked = requests(node.audit, 0, ACCOUNT)

        print(f"{len(asked)} requests since the beginning")
        assert len(asked) > 50
        assert refused(asked) == []

    def test_they_are_those_of_its_roles(self, deployment: Deployment, api: Api):
        """Fact: the server's own answer to what the account may do."""
        of_anybody = allowed(api, ANYBODY, NAMESPACE)
        printed = of_its_roles()

        assert len(printed) > 50
        assert allowed(api, ACCOUNT, NAMESPACE) - of_anybody == printed - of_anybody

    def test_secrets_and_leases_are_its_own_ones_only(
        self, deployment: Deployment, api: Api, namespace: str
    ):
        """Fact: the server's own answer by namespace and name."""
        at_home, elsewhere = (allowed(api, ACCOUNT, place) for place in (NAMESPACE, namespace))

        assert at_home - elsewhere == of_installation(NAME)
        assert elsewhere < at_home
        assert not [right for right in elsewhere if right.resource in ("secrets", "leases")]

    def test_beside_resources_it_may_what_anybody_may(self, deployment: Deployment, api: Api):
        """Fact: the server's own answer on paths that are no resources."""
        assert paths(api, ACCOUNT) == paths(api, ANYBODY)


def of_its_roles() -> frozenset[Right]:
    """Return the rights of the roles in the manifests that are bound to the operator."""
    objects = [obj for part in parts("cluster", OPERATOR, REGISTRY) for obj in part.objects]
    names = {obj["roleRef"]["name"] for obj in objects if "roleRef" in obj}
    roles = ("Role", "ClusterRole")
    return granted(o for o in objects if o["kind"] in roles and o["metadata"]["name"] in names)
