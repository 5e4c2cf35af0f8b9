"""Copies that are written without ever being read, on the cluster in memory."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controllers.secretsync.syncing import HOME, MANAGER, Syncing, coded
from hedgerow.controllers.secretsync.options import Options
from hedgerow.controllers.secretsync.sharing import FINALIZER, TARGET_TYPE
from hedgerow.fields import managed
from hedgerow.kube import errors

pytestmark = pytest.mark.anyio

HOUR = timedelta(hours=1)
BLIND = Options(blind=HOUR)


def blind(*namespaces: str) -> Syncing:
    return Syncing(*(namespaces or ("team-a",)), options=BLIND)


def asked(sync: Syncing) -> set[str]:
    """The verbs of all requests about Secrets in targets, those of dry runs included."""
    return {
        sent.verb
        for world in sync.worlds
        for sent in world.cluster.sent
        if sent.api.kind == "Secret" and sent.namespace not in ("", HOME)
    }


class TestCopies:
    async def test_they_are_made_changed_and_pruned_by_applies_alone(self):
        sync = blind()
        sync.source("app", {"password": "one", "user": "two"})
        await sync.settle()
        assert sync.data("app", "team-a") == {"password": coded("one"), "user": coded("two")}

        sync.put("app", "team-a", {"theirs": "kept"})
        sync.source("app", {"password": "three"})
        await sync.settle()
        assert sync.data("app", "team-a") == {"password": coded("three"), "theirs": coded("kept")}
        assert asked(sync) == {"apply"}
        assert sync.told("app") == {}

    async def test_no_value_is_cached_but_what_we_declared(self):
        sync = blind()
        sync.source("app", {"password": "one"})
        await sync.settle()
        sync.put("app", "team-a", {"theirs": "kept"})
        sync.source("app", {"password": "two"})
        await sync.settle()

        cached = sync.worlds[0].cache.child_store("Secret", "team-a").get(("team-a", "app"))
        assert cached is not None
        assert cached["data"] == {"password": coded("two")}

    async def test_a_new_namespace_needs_one_request_for_each_copy(self):
        sync = blind()
        for number in range(10):
            sync.source(f"app{number}", {"password": "one"})
        await sync.settle()
        copying = sync.worlds[0]
        before = len(copying.cluster.sent)
        sync.open("team-b")
        copying.deliver()
        await copying.work()

        assert len(copying.cluster.sent) - before == 10

    async def test_a_restart_applies_once_and_changes_nothing(self):
        sync = blind()
        sync.source("app", {"password": "one"})
        await sync.settle()
        before = sync.get("app", "team-a")
        sync.restart()
        await sync.settle()

        assert sync.get("app", "team-a") == before
        applied = [line for line in sync.writes if "team-a" in line]
        assert len(applied) == 1  # it is asked for first


class TestDrift:
    async def test_it_is_mended_at_the_interval_and_no_sooner(self):
        sync = blind()
        sync.source("app", {"password": "one"})
        await sync.settle()
        sync.server.merge(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "app", "namespace": "team-a"},
            },
            {"data": {"password": None}},
            "kubectl-edit",
        )
        before = len(sync.writes)
        copying = sync.worlds[0]
        copying.deliver()
        await copying.work()
        assert sync.data("app", "team-a") == {}

        sync.server.now += 3700
        await sync.settle()
        assert sync.data("app", "team-a") == {"password": coded("one")}
        assert len(sync.writes) > before

    async def test_a_copy_that_was_deleted_comes_back_at_the_interval(self):
        sync = blind()
        sync.source("app", {"password": "one"})
        await sync.settle()
        sync.delete("app", "team-a")
        sync.server.now += 3700
        await sync.settle()

        assert sync.data("app", "team-a") == {"password": coded("one")}

    async def test_a_short_interval_is_no_fight(self):
        sync = Syncing("team-a", options=Options(blind=timedelta(seconds=10)))
        sync.source("app", {"password": "one"})
        await sync.settle()
        for _ in range(20):
            sync.server.now += 10
            await sync.worlds[0].work()

        assert sync.told("app") == {}
        assert len([line for line in sync.writes if "team-a" in line]) > 15


class TestConflicts:
    async def test_a_key_of_somebody_else_is_known_from_the_409_and_left(self):
        sync = blind()
        sync.source("app", {"password": "one"})
        await sync.settle()
        sync.put("app", "team-a", {"password": "mine"})
        sync.source("app", {"password": "two", "user": "three"})
        await sync.settle()

        assert sync.data("app", "team-a") == {"password": coded("mine"), "user": coded("three")}
        assert sync.told("app")["Contested"] == (
            "FieldConflict: Secret/app: .data.password is held by somebody (Apply), in team-a"
        )
        assert asked(sync) == {"apply"}

        sync.put("app", "team-a", {})
        sync.server.now += 3700
        await sync.settle()
        data = {"password": coded("two"), "user": coded("three")}
        assert sync.data("app", "team-a") == data
        assert sync.told("app") == {}

    async def test_a_secret_that_is_no_copy_is_not_written(self):
        sync = blind()
        sync.put("app", "team-a", {"password": "theirs"})
        before = sync.get("app", "team-a")
        sync.source("app", {"password": "one"})
        await sync.settle()

        assert sync.get("app", "team-a") == before
        assert sync.told("app")["Stalled"].startswith("NameTaken: Secret/app exists in team-a")
        assert asked(sync) == {"apply"}


class TestRemoval:
    @pytest.mark.parametrize("restarted", [False, True])
    async def test_the_copies_are_emptied_before_the_source_goes(self, restarted):
        sync = blind("team-a", "team-b")
        sync.source("app", {"password": "one"}, annotations={TARGET_TYPE: "example.com/app"})
        await sync.settle()
        sync.put("app", "team-a", {"theirs": "kept"})
        sync.delete("app", "team-b")
        source = sync.get("app")
        assert source is not None
        assert source["metadata"]["finalizers"] == [FINALIZER]
        sync.delete("app")
        if restarted:
            sync.restart()
        await sync.settle()

        assert sync.get("app") is None
        assert sync.data("app", "team-a") == {"theirs": coded("kept")}
        assert sync.data("app", "team-b") in (None, {})
        assert asked(sync) == {"apply"}
        before = len(sync.writes)
        sync.server.now += 3700
        await sync.settle()
        assert sync.writes[before:] == []

    async def test_a_source_that_is_being_deleted_is_not_let_go_before_a_pass_of_each_namespace(
        self,
    ):
        sync = blind()
        sync.source("app", {"password": "one"})
        await sync.settle()
        sync.delete("app")
        sync.restart()
        copying, reporting = sync.worlds

        async def refuse(sent):
            if sent.dry_run:
                raise errors.Unavailable("not now", code=500)

        copying.cluster.before = refuse
        await reporting.work()
        await copying.work()
        await reporting.work()
        assert sync.get("app") is not None
        assert sync.data("app", "team-a") == {"password": coded("one")}

        sync.restart()
        await sync.settle()
        assert sync.get("app") is None
        assert sync.data("app", "team-a") == {}

    @pytest.mark.parametrize("restarted", [False, True])
    async def test_a_copy_of_which_others_hold_all_keys_does_not_keep_the_source(self, restarted):
        sync = blind()
        sync.source("app", {"password": "one"})
        await sync.settle()
        sync.put("app", "team-a", {"password": "mine"})
        sync.source("app", {"password": "two"})
        await sync.settle()
        sync.delete("app")
        if restarted:
            sync.restart()
        await sync.settle()

        assert sync.get("app") is None
        live = sync.get("app", "team-a")
        assert live is not None
        assert live["data"] == {"password": coded("mine")}
        assert live["metadata"]["labels"] == {"hedgerow.dev/controller": "secretsync"}
        before = len(sync.writes)
        sync.server.now += 3700
        await sync.settle()
        assert sync.writes[before:] == []

    async def test_one_of_several_sources_takes_its_keys_with_it(self):
        sync = blind()
        sync.source("db", {"user": "one"}, target="app")
        sync.source("mail", {"smtp": "two"}, target="app")
        await sync.settle()
        sync.delete("db")
        sync.restart()
        await sync.settle()

        assert sync.get("db") is None
        assert sync.data("app", "team-a") == {"smtp": coded("two")}

    async def test_an_emptied_copy_is_filled_again_if_the_source_comes_back(self):
        sync = blind()
        sync.source("app", {"password": "one"})
        await sync.settle()
        sync.delete("app")
        await sync.settle()
        assert sync.data("app", "team-a") == {}
        sync.source("app", {"password": "two"})
        await sync.settle()

        assert sync.data("app", "team-a") == {"password": coded("two")}

    async def test_emptied_copies_are_deleted_once_it_may_read_and_delete(self):
        sync = blind()
        sync.source("app", {"password": "one"})
        await sync.settle()
        sync.delete("app")
        await sync.settle()
        live = sync.get("app", "team-a")
        assert live is not None
        assert managed.entry(live, MANAGER) is not None
        sync.restart(options=Options())
        await sync.settle()

        assert sync.get("app", "team-a") is None

    async def test_what_cannot_be_changed_is_told(self):
        sync = blind()
        sync.source("app", {"password": "one"}, annotations={TARGET_TYPE: "Opaque"})
        await sync.settle()
        sync.source("app", {"password": "two"}, annotations={TARGET_TYPE: "example.com/app"})
        await sync.settle()

        assert sync.data("app", "team-a") == {"password": coded("one")}
        assert sync.told("app")["Stalled"].startswith("Immutable: Secret/app cannot be changed")
