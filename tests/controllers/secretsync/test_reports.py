"""What the passes of Namespaces tell the sources, on the cluster in memory."""

from __future__ import annotations

import pytest

from controllers.secretsync.syncing import Syncing, coded
from hedgerow.plan.yield_and_claim import CLAIM
from hedgerow.runtime.cache.budget import Budget

pytestmark = pytest.mark.anyio

MIB = 1024 * 1024


class TestWhatIsNotKnown:
    """A source is held while it is not known whether a namespace has a copy of it."""

    async def test_whether_a_namespace_allows_claims(self):
        sync = Syncing("team-a")
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}
        annotations = {CLAIM: "Secret/app:.data.password"}
        sync.server.merge(namespace, {"metadata": {"annotations": annotations}}, "somebody")
        sync.source("app", {"password": "one"})
        await sync.settle()
        sync.delete("app")
        sync.restart()
        copying = sync.worlds[0]
        copying.claiming["team-a"] = None
        await sync.settle()
        assert sync.get("app") is not None
        assert sync.data("app", "team-a") == {"password": coded("one")}

        copying.claiming["team-a"] = True
        copying.runner.enqueue_all(())
        await sync.settle()
        assert sync.get("app") is None
        assert sync.get("app", "team-a") is None

    @pytest.mark.parametrize("restarted", [False, True])
    async def test_what_a_copy_is_that_is_too_large(self, restarted):
        sync = Syncing("team-a", budget=lambda: Budget(2 * MIB))
        sync.source("app", {"password": "one"})
        await sync.settle()
        sync.put("app", "team-a", {f"key{n}": "x" * 100 for n in range(4000)})
        await sync.settle()
        sync.delete("app")
        if restarted:
            sync.restart()
        await sync.settle()
        assert sync.get("app") is not None

        sync.put("app", "team-a", {"theirs": "kept"})
        await sync.settle()
        assert sync.get("app") is None
        assert sync.data("app", "team-a") == {"theirs": coded("kept")}
