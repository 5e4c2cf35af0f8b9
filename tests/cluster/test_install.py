"""Install on the real server: created, left alone, refused, and gone again.

Each test has API groups of its own: nobody else's definitions are touched. They are small: of one
with a whole PodSpec the server publishes another document for seconds, each time it changes.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pytest
from pydantic import create_model

from hedgerow.cli.install.definitions import (
    FIELD_MANAGER,
    install,
    packaged_document,
    uninstall,
)
from hedgerow.kube.client import connect
from hedgerow_schemas.base import ApiResource, CustomResource, Model, Resource
from hedgerow_schemas.crd import CRD, crd_name, render
from hedgerow_schemas.memcached import Memcached

if TYPE_CHECKING:
    from hedgerow_schemas.base import Object

pytestmark = [pytest.mark.cluster, pytest.mark.oldest, pytest.mark.anyio]


def fresh(kind: type[Resource]) -> type[Resource]:
    """Return a resource that nobody has installed yet."""
    group = f"g{secrets.token_hex(4)}.hedgerow.test/v1"
    return type("Fresh", (kind,), {"api": ApiResource(group, kind.api.kind, kind.api.plural)})


def small(kind: type[Resource], spec: type[Model], version: str = "v1") -> type[CustomResource]:
    """Return a resource of the same group as another, in a version and with a spec."""

    api = ApiResource(f"{kind.api.group}/{version}", kind.api.kind, kind.api.plural)
    made = create_model("Small", __base__=CustomResource, __doc__="Small.", spec=(spec, spec()))
    return type("Small", (made,), {"api": api})


@pytest.fixture
def both():
    return fresh(Memcached), fresh(Memcached)


@pytest.fixture
def first(both):
    return both[0]


@pytest.fixture
async def cluster(sandbox, both):
    async with connect(kubeconfig=str(sandbox.kubeconfig)) as cluster:
        yield cluster
        for resource in both:
            live = await cluster.read_object(CRD, crd_name(resource))
            if live is not None:
                await cluster.delete(CRD, crd_name(resource), uid=live["metadata"]["uid"])


def definition(resource, manager_says: str) -> Object:
    crd = render(resource, packaged_document(), describe=False)
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = manager_says
    return crd


def actions(changes):
    return [change.action for change in changes]


async def test_what_is_installed_is_served_and_ours(cluster, both):
    """Fact: the server establishes and serves a definition that was applied."""
    changes = await install(cluster, resources=both)
    live = await cluster.read_object(CRD, crd_name(both[0]))

    assert actions(changes) == ["created", "created"]
    for resource in both:
        assert (await cluster.list(resource.api)).items == ()
    entries = [e for e in live["metadata"]["managedFields"] if e.get("subresource") != "status"]
    assert [(e["manager"], e["operation"]) for e in entries] == [(FIELD_MANAGER, "Apply")]


async def test_from_plain_to_described_and_back_is_a_change_each_time_that_is_foretold(
    cluster, first
):
    """Fact: how the server respells and fills in a definition."""
    runs = [
        (True, "created"),
        (False, "configured"),
        (False, "unchanged"),
        (True, "configured"),
        (True, "unchanged"),
    ]
    for plain, action in runs:
        before = await cluster.read_object(CRD, crd_name(first))
        foretold = await install(cluster, plain=plain, resources=(first,), dry_run=True)
        assert actions(foretold) == [action]
        assert await cluster.read_object(CRD, crd_name(first)) == before

        changes = await install(cluster, plain=plain, resources=(first,))
        assert actions(changes) == [action]
        after = await cluster.read_object(CRD, crd_name(first))
        assert (after == before) is (action == "unchanged")


async def test_what_is_uninstalled_is_gone_with_a_delete_that_names_its_uid(cluster, first):
    """Fact: the server removes a definition some time after it has accepted the delete."""
    await install(cluster, plain=True, resources=(first,))

    assert actions(await uninstall(cluster, resources=(first,))) == ["deleted"]
    assert await cluster.read_object(CRD, crd_name(first)) is None
    assert actions(await uninstall(cluster, resources=(first,))) == ["absent"]
