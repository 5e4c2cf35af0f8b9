"""What the passes of Namespaces tell the sources, on the cluster in memory."""

from __future__ import annotations

import json

import pytest

from controllers.secretsync.syncing import HOME, MANAGER, Syncing, coded, secret
from hedgerow.controllers.secretsync.sharing import SOURCES
from hedgerow.fields import managed_fields
from hedgerow.plan.yield_and_claim import CLAIM
from hedgerow.runtime.cache.budget import Budget

pytestmark = pytest.mark.anyio

MIB = 1024 * 1024


class TestWhatIsNotKnown:
    """A source is held while it is not known whether a namespace has a copy of it."""

    async def test_whether_a_namespace_allows_claims(self):
        sync = Syncing("team-a")
        sync.annotate("team-a", {CLAIM: "Secret/app:.data.password"})
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
        copying.runner.queue.add_everyone()
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

    @pytest.mark.parametrize("restarted", [False, True])
    async def test_but_not_if_that_copy_is_being_deleted(self, restarted):
        sync = Syncing("team-a", budget=lambda: Budget(2 * MIB))
        sync.source("app", {"password": "one"})
        await sync.settle()
        sync.put("app", "team-a", {f"key{n}": "x" * 100 for n in range(4000)})
        finalizers = {"metadata": {"finalizers": ["tenant.example.com/mine"]}}
        sync.server.merge(secret("app", "team-a"), finalizers, "tenant")
        await sync.settle()
        sync.delete("app")
        sync.delete("app", "team-a")
        if restarted:
            sync.restart()
        await sync.settle()

        assert sync.get("app") is None
        assert sync.get("app", "team-a") is not None


class TestWhatACopySaysOfItself:
    @pytest.mark.parametrize("emptied", [False, True])
    async def test_others_cannot_hold_a_source_by_naming_it_on_a_copy(self, emptied):
        sync = Syncing("team-a")
        sync.source("app", {"password": "one"})
        made = sync.source("victim", {"password": "two"})
        await sync.settle()
        parts = [
            *sync.parts("app", "team-a"),
            {"namespace": HOME, "name": "victim", "uid": made["metadata"]["uid"], "keys": []},
        ]
        meta = {"annotations": {SOURCES: json.dumps(parts)}}
        if emptied:
            meta |= {"managedFields": [{}]}
        sync.server.merge(secret("app", "team-a"), {"metadata": meta}, "somebody")
        await sync.settle()
        sync.delete("victim")
        await sync.settle()

        assert sync.get("victim") is None
        assert sync.get("victim", "team-a") is None
        sync.delete("app")
        await sync.settle()
        assert sync.get("app") is None


class TestEmptiedManagedFields:
    @pytest.mark.parametrize("restarted", [False, True])
    async def test_the_copy_stays_ours_with_its_keys_contested_until_it_goes(self, restarted):
        sync = Syncing("team-a")
        sync.source("app", {"password": "one"})
        await sync.settle()
        emptied = {"metadata": {"managedFields": [{}]}}
        sync.server.merge(secret("app", "team-a"), emptied, "somebody")
        if restarted:
            sync.restart()
        sync.server.now += 3700
        await sync.settle()
        live = sync.get("app", "team-a")
        assert live is not None
        assert managed_fields.entry(live, MANAGER) is not None

        sync.source("app", {"password": "two", "user": "three"})
        await sync.settle()
        assert sync.data("app", "team-a") == {"password": coded("one"), "user": coded("three")}
        assert "held by before-first-apply (Update), in team-a" in sync.told("app")["Contested"]
        assert "NameTaken" not in str(sync.told("app"))

        sync.delete("app")
        await sync.settle()
        assert sync.get("app") is None
        assert sync.data("app", "team-a") == {"password": coded("one")}

    async def test_one_that_outlives_its_source_is_logged_and_not_written_for_ever(self):
        sync = Syncing("team-a")
        sync.source("app", {"password": "one"})
        await sync.settle()
        emptied = {"metadata": {"managedFields": [{}]}}
        sync.server.merge(secret("app", "team-a"), emptied, "somebody")
        await sync.settle()
        sync.delete("app")
        await sync.settle()
        assert sync.get("app") is None
        assert sync.data("app", "team-a") == {"password": coded("one")}

        before = len(sync.writes)
        for _ in range(5):
            sync.server.now += 700
            for world in sync.worlds:
                world.runner.queue.add_everyone()
            await sync.settle()
        assert sync.writes[before:] == []
        assert {entry["reason"] for entry in sync.problems} == {"NotOurs"}

        sync.delete("app", "team-a")
        sync.source("app", {"password": "two"})
        await sync.settle()
        assert sync.data("app", "team-a") == {"password": coded("two")}


class TestWhatIsToldNowhereElse:
    async def test_a_problem_of_the_namespace_itself_is_logged_once_and_counted(self):
        sync = Syncing("team-a")
        sync.annotate("team-a", {CLAIM: "Secret/app"})
        sync.source("app", {"password": "one"})
        await sync.settle()

        copying = sync.worlds[0]
        assert sync.data("app", "team-a") == {"password": coded("one")}
        logged = [(entry["log_level"], entry["object"], entry["reason"]) for entry in sync.problems]
        assert logged == [("warning", "team-a", "InvalidAnnotation")]
        labels = {"controller": "secretsync"}
        value = copying.meters.registry.get_sample_value("hedgerow_logged_problems_total", labels)
        assert value == 1
        assert sync.events("Namespace") == []

    async def kept(self) -> Syncing:
        """A copy of two sources, of one of which it is not known any more what it is to have."""
        sync = Syncing("team-a")
        sync.source("one", {"a": "1"}, target="app")
        sync.source("two", {"b": "2"}, target="app")
        await sync.settle()
        sync.source("two", {"b": "2"}, target="No Name")
        await sync.settle()
        return sync

    async def test_a_copy_that_is_kept_because_of_one_source_is_told_on_the_other(self):
        sync = await self.kept()

        assert sync.data("app", "team-a") == {"a": coded("1"), "b": coded("2")}
        assert sync.told("one")["Stalled"] == (
            "Kept: Secret/app stays as it is until hedgerow knows the data of Secret/two, which"
            " shares it, in team-a"
        )
        assert sync.told("two")["Stalled"].startswith("InvalidAnnotation: ")
        sync.source("two", {"b": "2"}, target="app")
        await sync.settle()
        assert sync.told("one") == sync.told("two") == {}

    async def test_a_source_that_is_being_deleted_says_what_it_waits_for(self):
        sync = await self.kept()
        sync.delete("one")
        await sync.settle()

        assert sync.told("one")["Stalled"].startswith("Kept: Secret/app stays as it is")
        sync.source("two", {"b": "2"}, target="app")
        await sync.settle()
        assert sync.get("one") is None
        assert sync.data("app", "team-a") == {"b": coded("2")}
