"""Foreign children: objects of another namespace that carry a resource's uid and our label.

Whoever may write there can read both: they get nothing by it, and the resource loses nothing.
"""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow_testing import InMemory, target
from library.greeter import GREETER
from runtime.secretsync.syncing import Syncing, secret

Object = dict[str, Any]

GREETING = target("greeter.example.com/v1", "Greeting", "hello", "default")
CHILD = target("v1", "ConfigMap", "hello", "default")
ELSEWHERE = "zzz"
"""Its objects come after those of the resource's namespace."""
AGES = 400


def foreign(child: Object, name: str, data: Object) -> Object:
    """Return an object of the other namespace that says of itself that it is a child."""
    kept = {key: child["metadata"][key] for key in ("labels", "ownerReferences")}
    metadata = {"name": name, "namespace": ELSEWHERE, **kept, "finalizers": ["example.com/stays"]}
    return {**CHILD, "metadata": metadata, "data": data}


@pytest.mark.parametrize("is_going", [False, True], ids=["stays", "is being deleted"])
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("hello", {"text": "theirs"}),
        ("any", {f"key-{number}": "x" for number in range(6000)}),
    ],
    ids=["of the child's name", "too large"],
)
def test_they_stop_no_resource(name: str, data: Object, is_going: bool):
    cluster = InMemory(GREETER, program="greeter")
    cluster.start()
    try:
        cluster.apply({**GREETING, "spec": {"name": "you"}})
        cluster.assert_settled()
        cluster.open_namespace(ELSEWHERE)
        theirs = foreign(cluster.must_get(CHILD), name, data)
        cluster.apply(theirs, "somebody")
        if is_going:
            cluster.kube.delete(theirs)
        cluster.pass_time(5)

        cluster.apply({**GREETING, "spec": {"name": "world"}})
        cluster.assert_settled()

        assert cluster.must_get(CHILD)["data"] == {"text": "Hello world"}
        status = cluster.must_get(GREETING)["status"]
        assert [(one["type"], one["status"]) for one in status["conditions"]] == [("Ready", "True")]
        assert "contested" not in status
    finally:
        cluster.close()


@pytest.mark.anyio
@pytest.mark.parametrize("is_removed", [False, True], ids=["rotated", "removed"])
async def test_a_tenant_keeps_no_secret_from_another(is_removed: bool):
    sync = Syncing()
    sync.source("app", {"password": "one"})
    await sync.settle()
    owners = sync.the("app", "team-a")["metadata"]["ownerReferences"]
    stolen = {"metadata": {"ownerReferences": owners}}
    sync.server.merge(secret("app", "team-b"), stolen, "tenant")
    await sync.settle()

    if is_removed:
        sync.delete("app")
    else:
        sync.source("app", {"password": "two"})
    sync.server.now += AGES
    sync.world.life.look()
    await sync.settle()

    if is_removed:
        assert sync.get("app", "team-a") is None
    else:
        assert sync.data("app", "team-a") == {"password": "dHdv"}
