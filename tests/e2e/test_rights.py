"""The operator's rights in the cluster: all that it needs."""

import pytest

from e2e.deployment import ACCOUNT, Deployment
from e2e.node.node import Node
from e2e.rights import refused
from support.cluster.granted import requests

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(360)]


def test_nothing_was_refused_since_it_was_deployed(deployment: Deployment, node: Node):
    """Fact: RBAC refused the deployed operator nothing."""
    deployment.leader()
    asked = requests(node.audit, 0, ACCOUNT)

    print(f"{len(asked)} requests since the beginning")
    assert len(asked) > 50
    assert refused(asked) == []
