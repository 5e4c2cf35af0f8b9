"""Install on the real server: each change of a definition is foretold.

It has an API group of its own: nobody else's definitions are touched. It is small: of one with a
whole PodSpec the server publishes another document for seconds, each time it changes.
"""

from __future__ import annotations

import secrets

import pytest

from hedgerow.cli.install.definitions import install
from hedgerow.kube.client import connect
from hedgerow_schemas.base import ApiResource, Resource
from hedgerow_schemas.crd import CRD, crd_name
from hedgerow_schemas.memcached import Memcached

pytestmark = [pytest.mark.cluster, pytest.mark.oldest, pytest.mark.anyio]


def fresh(kind: type[Resource]) -> type[Resource]:
    """Return a resource that nobody has installed yet."""
    group = f"g{secrets.token_hex(4)}.hedgerow.test/v1"
    return type("Fresh", (kind,), {"api": ApiResource(group, kind.api.kind, kind.api.plural)})


@pytest.fixture
def first():
    return fresh(Memcached)


@pytest.fixture
async def cluster(sandbox, first):
    async with connect(kubeconfig=str(sandbox.kubeconfig)) as cluster:
        yield cluster
        live = await cluster.read_object(CRD, crd_name(first))
        if live is not None:
            await cluster.delete(CRD, crd_name(first), uid=live["metadata"]["uid"])


def actions(changes):
    return [change.action for change in changes]


async def test_a_second_run_changes_nothing_and_each_is_foretold(cluster, first):
    """Fact: how the server respells and fills in a definition."""
    for action in ("created", "unchanged"):
        before = await cluster.read_object(CRD, crd_name(first))
        foretold = await install(cluster, resources=(first,), dry_run=True)
        assert actions(foretold) == [action]
        assert await cluster.read_object(CRD, crd_name(first)) == before

        changes = await install(cluster, resources=(first,))
        assert actions(changes) == [action]
        after = await cluster.read_object(CRD, crd_name(first))
        assert (after == before) is (action == "unchanged")
