from __future__ import annotations

from typing import Any

import anyio
import pytest

from hedgerow.kube import errors
from hedgerow_testing.memory.cluster import MemoryCluster, Sent, selects
from hedgerow_testing.memory.kinds import CONFIG_MAP, DEPLOYMENT
from hedgerow_testing.memory.server import Server

pytestmark = pytest.mark.anyio

API = CONFIG_MAP.api
OURS = "hedgerow-test"


def body(name: str = "x", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", **more.pop("metadata", {})}
    return {"metadata": metadata, "data": {"a": "1"}, **more}


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster(Server())


async def test_an_apply_tells_whether_it_created(cluster: MemoryCluster) -> None:
    first = await cluster.apply(API, body(), manager=OURS)
    second = await cluster.apply(API, body(), manager=OURS)

    assert (True, False) == (first.created, second.created)
    assert first.object == second.object == await cluster.read_object(API, "x", "default")
    assert "v1" == first.object["apiVersion"]


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (body(data={"a": "2"}), errors.Conflict),
        (body(metadata={"resourceVersion": "1"}), errors.Stale),
        (body("new", metadata={"uid": "u"}), errors.Stale),
        (body("new", metadata={"namespace": "none"}), errors.Missing),
        (body("new", metadata={"namespace": "ending"}), errors.Forbidden),
        (body("new", nonsense=1), errors.Invalid),
    ],
)
async def test_a_refusal_is_the_clients_own_error(
    cluster: MemoryCluster, sent: dict[str, Any], error: type[errors.KubeError]
) -> None:
    cluster.model.open_namespace("ending")
    cluster.model.terminate("ending")
    await cluster.apply(API, body(), manager="other")

    with pytest.raises(error):
        await cluster.apply(API, sent, manager=OURS)


async def test_a_conflict_names_field_and_manager(cluster: MemoryCluster) -> None:
    cluster.model.apply({"apiVersion": "v1", "kind": "ConfigMap", **body()}, "first")
    cluster.model.merge(
        {"apiVersion": "v1", "kind": "ConfigMap", **body()}, {"data": {"a": "3"}}, "ed"
    )

    with pytest.raises(errors.Conflict) as conflict:
        await cluster.apply(API, body(), manager=OURS)

    assert [(".data.a", "ed")] == [(cause.field, cause.manager) for cause in conflict.value.causes]


async def test_deleting_minds_uid_and_version(cluster: MemoryCluster) -> None:
    first = (await cluster.apply(API, body(), manager=OURS)).object["metadata"]
    await cluster.apply(API, body(data={"a": "2"}), manager=OURS)
    uid, version = first["uid"], first["resourceVersion"]

    with pytest.raises(errors.Stale):
        await cluster.delete(API, "x", "default", uid=uid, version=version)
    assert not await cluster.delete(API, "x", "default", uid="another")
    assert await cluster.delete(API, "x", "default", uid=uid)
    assert not await cluster.delete(API, "x", "default", uid=uid)
    assert await cluster.read_object(API, "x", "default") is None


async def test_a_list_selects_by_label_and_reduces(cluster: MemoryCluster) -> None:
    await cluster.apply(API, body("a", metadata={"labels": {"t": "1"}}), manager=OURS)
    await cluster.apply(API, body("b"), manager=OURS)
    found = await cluster.list(API, labels="t=1", reduce=lambda item: item["metadata"])

    assert ["a"] == [item["name"] for item in found.items]
    assert "102" == found.version
    assert () == (await cluster.list(DEPLOYMENT.api)).items


@pytest.mark.parametrize(
    ("labels", "selected"),
    [("", True), ("t", True), ("t=1", True), ("t=2", False), ("u", False), ("t=1,u=2", False)],
)
def test_a_selector_is_equalities_and_existence(labels: str, selected: bool) -> None:
    assert selected is selects(labels, {"metadata": {"labels": {"t": "1"}}})


async def test_requests_are_kept_and_writes_told_apart(cluster: MemoryCluster) -> None:
    await cluster.apply(API, body(), manager=OURS, dry_run=True)
    await cluster.apply(API, body(), manager=OURS)
    await cluster.read_object(API, "x", "default")

    assert ["apply", "apply", "read"] == [sent.verb for sent in cluster.sent]
    assert ["apply ConfigMap default/x"] == [str(sent) for sent in cluster.writes]


async def test_a_lost_request_does_nothing_and_a_lost_answer_has_done_all(
    cluster: MemoryCluster,
) -> None:
    async def lose(sent: Sent) -> None:
        raise errors.Unreachable("cut", sent=sent.writes)

    cluster.before = lose
    with pytest.raises(errors.Unreachable):
        await cluster.apply(API, body(), manager=OURS)
    assert 0 == cluster.model.writes

    cluster.before, cluster.after = MemoryCluster(cluster.model).before, lose
    with pytest.raises(errors.Unreachable):
        await cluster.apply(API, body(), manager=OURS)
    assert 1 == cluster.model.writes


@pytest.mark.parametrize("place", ["before", "after"])
async def test_what_is_not_answered_in_time_may_have_been_carried_out(
    cluster: MemoryCluster, place: str
) -> None:
    async def wait(_sent: Sent) -> None:
        await anyio.sleep_forever()

    setattr(cluster, place, wait)
    with pytest.raises(errors.Unreachable, match="no answer in time") as raised:
        await cluster.apply(API, body(), manager=OURS, timeout=0.01)
    assert raised.value.sent
    assert ("after" == place) is bool(cluster.model.writes)
