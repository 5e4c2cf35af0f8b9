"""What a later definition takes of objects, compared with what the real server then does to them.

One definition has a field for each way to narrow a schema, and there is an object that it takes
something of, and some that it leaves. What is told beforehand is what comes of them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from hedgerow.cli.install.losses import losses, stored_without
from hedgerow.fields.ownership import covers
from hedgerow.kube.client import connect
from hedgerow.kube.cluster import Cluster
from hedgerow_schemas.crd import CRD
from hedgerow_testing.api import Api, Object
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.waiting import eventually
from support.objects.narrowed import HARMLESS, WAYS, definition, of

pytestmark = [pytest.mark.cluster, pytest.mark.oldest, pytest.mark.anyio]

FIELDS = {f"way{number}": way for number, way in enumerate(WAYS)}
FREE = {f"free{number}": one for number, one in enumerate(HARMLESS)}


@pytest.fixture
def api(sandbox: Sandbox) -> Iterator[Api]:
    api = Api(sandbox.kubeconfig)
    yield api
    api.close()


@pytest.fixture
async def cluster(sandbox: Sandbox) -> AsyncIterator[Cluster]:
    async with connect(kubeconfig=str(sandbox.kubeconfig)) as cluster:
        yield cluster


@pytest.fixture
def group(api: Api, namespace: str) -> Iterator[str]:
    """A group of the test's own; its definition is deleted afterwards."""
    group = f"{namespace}.hedgerow.example"
    yield group
    api.delete(definition(of(), group=group))


def thing(group: str, namespace: str, name: str, spec: Object, version: str = "v1") -> Object:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": f"{group}/{version}", "kind": "Thing", "metadata": meta, "spec": spec}


def values() -> Iterator[tuple[str, str, Any, str]]:
    """Yield each object's name, its field and the value there, and what is told of it."""
    for field, way in FIELDS.items():
        yield f"{field}-taken", field, way.taken, way.what.replace(".spec.x", f".spec.{field}")
        for number, value in enumerate(way.passes):
            yield f"{field}-passes-{number}", field, value, ""
    for field, (_, _, _, value) in FREE.items():
        yield field, field, value, ""


def whole(which: str, group: str) -> Object:
    """Return the definition with all fields, as they are before or after."""
    schemas = {field: getattr(way, which) for field, way in FIELDS.items()}
    schemas |= {field: one[1 if which == "before" else 2] for field, one in FREE.items()}
    made = definition(of(), group=group)
    spec = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"] = schemas
    return made


async def test_what_is_told_is_what_comes_of_them(
    api: Api, cluster: Cluster, namespace: str, group: str
):
    """Fact: what the server prunes and refuses after a definition became narrower."""
    api.apply(whole("before", group), "test").must()
    api.served(f"{group}/v1")
    objects = {
        name: thing(group, namespace, name, {field: value}) for name, field, value, _ in values()
    }
    before = {name: api.create(obj, "test").must()["spec"] for name, obj in objects.items()}
    live = await cluster.read_object(CRD, f"things.{group}")
    assert live is not None

    found = await losses(cluster, live, whole("after", group))

    told = {name.rpartition("/")[2]: loss.what for loss in found for name in loss.objects}
    assert told == {name: what for name, _, _, what in values() if what}
    assert [loss.count for loss in found] == [1] * len(WAYS)
    api.apply(whole("after", group), "test").must()
    in_force(api, objects)
    # The API server adds defaults.
    now = {name: api.get(obj).must()["spec"] for name, obj in objects.items()}
    pruned = {name for name, spec in now.items() if not covers(before[name], spec)}
    assert pruned == {f"{field}-taken" for field, way in FIELDS.items() if way.pruned}
    refused = {name for name, spec in before.items() if is_refused(api, objects[name], spec)}
    [new_alone] = [field for field, one in FREE.items() if one[0] == "a rule is for new objects"]
    expected = {f"{field}-taken" for field, way in FIELDS.items() if not way.pruned}
    lately = {f"{field}-taken" for field, way in FIELDS.items() if way.lately}
    assert expected - lately <= refused - {new_alone} <= expected
    labelled = {"metadata": {"labels": {"a": "b"}}}
    assert api.merge(objects[new_alone], labelled, "test").ok


def is_refused(api: Api, obj: Object, spec: Object) -> bool:
    """Return whether another object with this spec would be refused."""
    new = {**obj, "metadata": {**obj["metadata"], "name": "another"}, "spec": spec}
    reply = api.raw("POST", api.path(obj).rpartition("/")[0], params={"dryRun": "All"}, json=new)
    assert reply.ok or reply.body["reason"] == "Invalid", reply.body
    return not reply.ok


def in_force(api: Api, objects: dict[str, Object]) -> None:
    field = next(field for field, way in FIELDS.items() if not way.pruned)
    one = objects[f"{field}-taken"]
    eventually(lambda: is_refused(api, one, one["spec"]), what="the later definition in force")


async def test_the_server_refuses_that_a_version_goes_in_which_it_stores(
    api: Api, cluster: Cluster, group: str
):
    """Fact: the server keeps a version that is among its stored ones."""
    api.apply(definition(of(), "v1", group=group), "test").must()
    api.served(f"{group}/v1")
    live = await cluster.read_object(CRD, f"things.{group}")
    assert live is not None
    later = definition(of(), "v2", group=group)

    assert stored_without(live, later) == ["v1"]
    refusal = api.apply(later, "test", dry_run=True)
    assert (refusal.status, "status.storedVersions" in refusal.body["message"]) == (422, True)
