"""Copies of Secrets on the cluster in memory: shared targets, conflicts, removal."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from prometheus_client import generate_latest

from controllers.secretsync.syncing import HOME, MANAGER, Syncing, coded, secret
from hedgerow import Secret, View
from hedgerow.controllers.secretsync.options import Selection
from hedgerow.controllers.secretsync.sharing import (
    DOMAIN,
    FINALIZER,
    SOURCES,
    TARGET_NAME,
    TARGET_TYPE,
    CopiedSecret,
    Origin,
    origins_of,
)
from hedgerow.fields import managed_fields
from hedgerow.kube import errors

pytestmark = pytest.mark.anyio


def keep(sync: Syncing) -> None:
    """Put a finalizer of one's own on a copy."""
    meta = {"metadata": {"finalizers": ["tenant.example.com/mine"]}}
    sync.server.merge(secret("app", "team-a"), meta, "tenant")


def keep_and_delete(sync: Syncing) -> None:
    keep(sync)
    sync.delete("app", "team-a")


def forge(sync: Syncing) -> None:
    """Write what our manager writes on a copy, by its name, and a finalizer with it."""
    copy = sync.get("app", "team-a")
    assert copy is not None
    del copy["metadata"]["managedFields"]
    copy["metadata"]["finalizers"] = ["tenant.example.com/mine"]
    sync.server.apply(copy, MANAGER, force=True)


HOLDS: dict[str, Callable[[Syncing], None]] = {
    "a finalizer on a copy": keep,
    "a finalizer on a copy that was deleted": keep_and_delete,
    "a finalizer in the name of our manager": forge,
    "a namespace that is being deleted": lambda sync: sync.terminate("team-a"),
}


class TestCopies:
    async def test_each_namespace_gets_one_but_the_sources_and_the_skipped_ones(self):
        sync = Syncing()
        made = sync.source("app", {"password": "one"})
        await sync.settle()

        for namespace in ("team-a", "team-b"):
            copy = sync.get("app", namespace)
            assert copy is not None
            assert copy["data"] == {"password": coded("one")}
            assert copy["type"] == made["type"]
            assert copy["metadata"]["labels"] == {
                "hedgerow.dev/controller": "secretsync",
                "source.k8s.ziwon.dev/app": HOME,
            }
            part = {"namespace": HOME, "name": "app", "uid": made["metadata"]["uid"]}
            assert sync.parts("app", namespace) == [{**part, "keys": ["password"]}]
        assert sync.get("app", "kube-system") is None
        source = sync.get("app")
        assert source is not None
        assert source["metadata"]["finalizers"] == [FINALIZER]
        assert sync.told("app") == {}

    async def test_once_settled_nothing_is_written_nor_after_a_restart(self):
        sync = Syncing()
        sync.source("app", {"password": "one"})
        sync.source("more", {"user": "two"}, target="app")
        await sync.settle()
        before = len(sync.writes)
        await sync.settle()
        assert sync.writes[before:] == []

        sync.restart()
        await sync.settle()
        assert sync.writes == []

    async def test_a_new_namespace_gets_its_copies_in_one_pass(self):
        sync = Syncing()
        for number in range(50):
            sync.source(f"app{number}", {"password": "one"})
        await sync.settle()
        copying = sync.worlds[0]
        before, asked = len(sync.writes), len(copying.cluster.sent)

        sync.open("team-c")
        copying.deliver()
        assert await copying.work() == 1
        await sync.settle()

        assert len(sync.writes) - before == 50
        assert len(copying.cluster.sent) - asked == 50
        assert all(sync.get(f"app{number}", "team-c") for number in range(50))

    async def test_a_terminating_namespace_is_left_alone(self):
        sync = Syncing()
        sync.terminate("team-b")
        sync.source("app", {"password": "one"})
        await sync.settle()

        assert sync.get("app", "team-a") is not None
        assert not [line for line in sync.writes if "team-b" in line]
        sync.delete("app")
        await sync.settle()
        assert sync.get("app") is None

    async def test_a_change_reaches_all_copies_and_a_key_that_goes_is_pruned(self):
        sync = Syncing()
        sync.source("app", {"password": "one", "user": "two"})
        await sync.settle()
        sync.source("app", {"password": "three"})
        await sync.settle()

        assert sync.data("app", "team-a") == {"password": coded("three")}
        assert sync.data("app", "team-b") == {"password": coded("three")}

    async def test_a_copy_that_is_deleted_comes_back(self):
        sync = Syncing()
        sync.source("app", {"password": "one"})
        await sync.settle()
        sync.delete("app", "team-a")
        await sync.settle()

        assert sync.data("app", "team-a") == {"password": coded("one")}


class TestKeysOfOthers:
    async def test_they_live_on_beside_ours(self):
        sync = Syncing()
        sync.source("app", {"password": "one", "user": "two"})
        await sync.settle()
        sync.put("app", "team-a", {"theirs": "kept"})
        sync.source("app", {"password": "three"})
        await sync.settle()

        assert sync.data("app", "team-a") == {"password": coded("three"), "theirs": coded("kept")}

    async def test_a_key_that_somebody_holds_is_contested_and_told_on_the_source(self):
        sync = Syncing()
        sync.source("app", {"password": "one"})
        await sync.settle()
        sync.put("app", "team-a", {"password": "mine"})
        sync.source("app", {"password": "two", "user": "three"})
        await sync.settle()

        assert sync.data("app", "team-a") == {"password": coded("mine"), "user": coded("three")}
        assert sync.data("app", "team-b") == {"password": coded("two"), "user": coded("three")}
        told = sync.told("app")
        assert told["Contested"] == (
            "FieldConflict: Secret/app: .data.password is held by somebody (Apply), in team-a"
        )
        assert (HOME, "app", "FieldConflict") in sync.events()
        assert ("team-a", "app", "FieldConflict") in sync.events()
        assert sync.events("Namespace") == []
        before = len(sync.writes)
        await sync.settle()
        assert sync.writes[before:] == []

        sync.put("app", "team-a", {})
        await sync.settle()
        assert sync.data("app", "team-a") == {"password": coded("two"), "user": coded("three")}
        assert sync.told("app") == {}

    async def test_one_that_is_not_ours_is_never_written(self):
        sync = Syncing()
        sync.put("app", "team-a", {"password": "theirs"})
        sync.source("app", {"password": "one"})
        await sync.settle()

        live = sync.get("app", "team-a")
        assert live is not None
        assert managed_fields.entry(live, MANAGER) is None
        assert sync.told("app")["Stalled"] == (
            "NameTaken: Secret/app exists in team-a and is not a copy; it is left alone"
        )
        assert (HOME, "app", "NameTaken") in sync.events()
        assert sync.data("app", "team-b") == {"password": coded("one")}

        sync.delete("app", "team-a")
        await sync.settle()
        assert sync.data("app", "team-a") == {"password": coded("one")}
        assert sync.told("app") == {}

    async def test_what_is_wrong_in_many_namespaces_is_told_few_times(self):
        names = [f"team-{number:03}" for number in range(40)]
        sync = Syncing(*names)
        for name in names:
            sync.put("app", name, {"password": "theirs"})
        sync.source("app", {"password": "one"})
        await sync.settle()

        assert sync.told("app")["Stalled"] == (
            "NameTaken: Secret/app exists in team-000, team-001, team-002 and at least 30 more"
            " and is not a copy; it is left alone"
        )
        assert len([line for line in sync.writes if HOME in line]) < 20


class TestSharedTarget:
    async def test_several_sources_hold_their_own_keys_of_one_copy(self):
        sync = Syncing()
        sync.source("db", {"user": "one", "password": "two"}, target="app")
        sync.source("mail", {"smtp": "three"}, target="app")
        await sync.settle()
        data = {"user": coded("one"), "password": coded("two"), "smtp": coded("three")}
        assert sync.data("app", "team-a") == data
        keys = {part["name"]: part["keys"] for part in sync.parts("app", "team-a")}
        assert keys == {"db": ["password", "user"], "mail": ["smtp"]}

        sync.source("db", {"user": "one"}, target="app")
        await sync.settle()
        assert sync.data("app", "team-a") == {"user": coded("one"), "smtp": coded("three")}

        sync.delete("db")
        await sync.settle()
        assert sync.get("db") is None
        assert sync.data("app", "team-a") == {"smtp": coded("three")}

        sync.delete("mail")
        await sync.settle()
        assert sync.get("app", "team-a") is None

    @pytest.mark.parametrize("value", ["the same", "another"])
    async def test_a_key_that_two_want_is_told_on_both_and_the_older_one_has_it(self, value):
        sync = Syncing()
        sync.source("old", {"password": "the same"}, target="app")
        await sync.settle()
        sync.source("new", {"password": value, "user": "one"}, target="app")
        await sync.settle()

        data = {"password": coded("the same"), "user": coded("one")}
        assert sync.data("app", "team-a") == data
        of_old = "Secret/app; the copies have that of Secret/old"
        assert sync.told("old")["Contested"] == (
            f"KeyConflict: Secret/new has the key password too, for the same {of_old}"
        )
        assert sync.told("new")["Contested"] == (
            f"KeyConflict: Secret/old has the key password too, for the same {of_old}"
        )
        events = sync.events()
        assert {(HOME, "old", "KeyConflict"), (HOME, "new", "KeyConflict")} <= set(events)

        sync.source("old", {}, target="app")
        await sync.settle()
        assert sync.data("app", "team-a") == {"password": coded(value), "user": coded("one")}
        assert sync.told("old") == sync.told("new") == {}

    async def test_a_source_that_moves_to_another_target_leaves_the_first(self):
        sync = Syncing()
        sync.source("db", {"user": "one"}, target="app")
        sync.source("mail", {"smtp": "two"}, target="app")
        await sync.settle()
        sync.source("mail", {"smtp": "two"}, target="mail")
        await sync.settle()

        assert sync.data("app", "team-a") == {"user": coded("one")}
        assert sync.data("mail", "team-a") == {"smtp": coded("two")}

    async def test_a_name_that_cannot_be_read_leaves_the_copies_as_they_are(self):
        sync = Syncing()
        sync.source("db", {"user": "one"}, target="app")
        await sync.settle()
        sync.source("db", {"user": "two"}, target="No Name")
        await sync.settle()

        assert sync.data("app", "team-a") == {"user": coded("one")}
        assert sync.told("db")["Stalled"].startswith("InvalidAnnotation: ")
        sync.delete("db")
        await sync.settle()
        assert sync.get("db") is None
        assert sync.get("app", "team-a") is None

    async def test_an_annotation_that_means_nothing_is_told_and_changes_nothing(self):
        sync = Syncing()
        sync.source("db", {"user": "one"}, annotations={f"{DOMAIN}/target-nam": "app"})
        await sync.settle()

        assert sync.data("db", "team-a") == {"user": coded("one")}
        assert sync.told("db")["Stalled"] == (
            f"UnknownAnnotation: {DOMAIN}/target-nam means nothing:"
            f" there are {TARGET_NAME} and {TARGET_TYPE}"
        )

    @pytest.mark.parametrize("type_", Secret.CREDENTIALS)
    async def test_a_type_that_gives_somebodys_rights_is_not_copied(self, type_: str):
        sync = Syncing()
        sync.source("db", {"user": "one"}, annotations={TARGET_TYPE: type_})
        await sync.settle()

        assert sync.get("db", "team-a") is None
        assert f"type {type_} gives somebody's rights" in sync.told("db")["Stalled"]


class TestRemoval:
    async def test_a_source_goes_once_its_copies_are_gone(self):
        sync = Syncing()
        sync.source("app", {"password": "one"})
        await sync.settle()
        sync.delete("app")
        assert sync.get("app") is not None
        await sync.settle()

        assert sync.get("app") is None
        assert sync.get("app", "team-a") is None
        assert sync.get("app", "team-b") is None

    async def test_a_copy_with_keys_of_others_is_given_back_instead(self):
        sync = Syncing()
        sync.source("app", {"password": "one"})
        await sync.settle()
        sync.put("app", "team-a", {"theirs": "kept"})
        sync.delete("app")
        await sync.settle()

        assert sync.get("app") is None
        assert sync.get("app", "team-b") is None
        live = sync.get("app", "team-a")
        assert live is not None
        assert live["data"] == {"theirs": coded("kept")}
        assert not live["metadata"].get("labels")
        assert not live["metadata"].get("ownerReferences")
        assert sync.worlds[0].cache.child_store("Secret", "team-a").get(("team-a", "app")) is None

    @pytest.mark.parametrize("restarted", [False, True])
    @pytest.mark.parametrize("holds", list(HOLDS))
    async def test_nothing_that_a_tenant_keeps_in_deletion_holds_a_source(self, holds, restarted):
        sync = Syncing()
        sync.source("app", {"password": "one"})
        await sync.settle()
        HOLDS[holds](sync)
        sync.delete("app")
        if restarted:
            sync.restart()
        await sync.settle()

        assert sync.get("app") is None
        assert sync.get("app", "team-a") is not None
        assert sync.get("app", "team-b") is None

    async def test_nor_if_another_source_of_it_cannot_be_read(self):
        sync = Syncing("team-a")
        sync.source("app", {"password": "one"})
        sync.source("other", {"user": "two"}, target="app")
        await sync.settle()
        keep_and_delete(sync)
        sync.source("other", {"user": "two"}, target="No Name")
        sync.delete("app")
        await sync.settle()

        assert sync.get("app") is None
        assert sync.get("app", "team-a") is not None

    async def test_a_source_that_is_made_again_meanwhile_is_copied_once_that_is_gone(self):
        sync = Syncing()
        sync.source("app", {"password": "one"})
        await sync.settle()
        keep(sync)
        sync.delete("app")
        await sync.settle()
        sync.source("app", {"password": "two"})
        await sync.settle()
        assert sync.data("app", "team-a") == {"password": coded("one")}
        assert sync.data("app", "team-b") == {"password": coded("two")}

        sync.server.merge(secret("app", "team-a"), {"metadata": {"finalizers": None}}, "tenant")
        await sync.settle()
        assert sync.data("app", "team-a") == {"password": coded("two")}

    @pytest.mark.parametrize("forced", [False, True])
    async def test_it_goes_as_well_while_the_operator_is_down(self, forced):
        sync = Syncing()
        sync.source("app", {"password": "one"})
        sync.source("other", {"password": "two"})
        await sync.settle()
        sync.delete("app", forced=forced)
        sync.restart()
        await sync.settle()

        assert sync.get("app") is None
        assert sync.get("app", "team-a") is None
        assert sync.data("other", "team-a") == {"password": coded("two")}

    async def test_a_source_that_is_made_anew_in_the_meantime_keeps_the_copies(self):
        sync = Syncing()
        sync.source("app", {"password": "one"})
        await sync.settle()
        sync.delete("app", forced=True)
        made = sync.source("app", {"password": "two"})
        sync.restart()
        await sync.settle()

        assert sync.data("app", "team-a") == {"password": coded("two")}
        assert sync.parts("app", "team-a")[0]["uid"] == made["metadata"]["uid"]
        assert not [line for line in sync.writes if line.startswith("delete")]

    @pytest.mark.parametrize(
        "options",
        [
            Selection(type="example.com/other"),
            Selection(selector="sync=yes"),
            Selection(skip=("team-a",)),
        ],
        ids=["type", "selector", "skipped"],
    )
    async def test_other_options_remove_what_they_no_longer_ask_for(self, options):
        sync = Syncing("team-a")
        sync.source("app", {"password": "one"})
        await sync.settle()
        sync.restart(options=options)
        await sync.settle()

        assert sync.get("app", "team-a") is None

    async def test_a_namespace_that_is_no_longer_selected_loses_its_copies(self):
        sync = Syncing("team-a", options=Selection(selector="sync=yes"))
        sync.source("app", {"password": "one"})
        await sync.settle()
        assert sync.get("app", "team-a") is None

        sync.label("team-a", sync="yes")
        await sync.settle()
        assert sync.get("app", "team-a") is not None

        sync.label("team-a", sync=None)
        await sync.settle()
        assert sync.get("app", "team-a") is None


class TestTypes:
    async def test_copies_may_have_another_type_and_are_made_anew_for_it(self):
        sync = Syncing("team-a")
        sync.source("app", {"password": "one"}, annotations={TARGET_TYPE: "Opaque"})
        await sync.settle()
        first = sync.get("app", "team-a")
        assert first is not None
        assert first["type"] == "Opaque"

        sync.source("app", {"password": "one"}, annotations={TARGET_TYPE: "example.com/app"})
        await sync.settle()
        second = sync.get("app", "team-a")
        assert second is not None
        assert second["type"] == "example.com/app"
        assert second["metadata"]["uid"] != first["metadata"]["uid"]

    async def test_an_immutable_copy_is_made_anew_when_its_source_was(self):
        sync = Syncing("team-a")
        sync.source("app", {"password": "one"}, immutable=True)
        await sync.settle()
        first = sync.get("app", "team-a")
        assert first is not None
        assert first["immutable"] is True

        sync.delete("app", forced=True)
        sync.source("app", {"password": "two"}, immutable=True)
        await sync.settle()
        second = sync.get("app", "team-a")
        assert second is not None
        assert second["data"] == {"password": coded("two")}
        assert second["metadata"]["uid"] != first["metadata"]["uid"]
        before = len(sync.writes)
        await sync.settle()
        assert sync.writes[before:] == []

    async def test_one_with_keys_of_others_is_not_and_the_source_says_so(self):
        sync = Syncing("team-a")
        sync.source("app", {"password": "one"})
        await sync.settle()
        sync.put("app", "team-a", {"theirs": "kept"})
        sync.source("app", {"password": "one"}, annotations={TARGET_TYPE: "Opaque"})
        await sync.settle()

        assert sync.data("app", "team-a") == {"password": coded("one"), "theirs": coded("kept")}
        assert sync.told("app")["Stalled"].startswith("Immutable: Secret/app cannot be changed")


class TestValues:
    async def test_a_refusal_that_repeats_a_value_does_not_get_out(self):
        sync = Syncing("team-a")
        marker = "pl4nted-m4rker"

        async def refuse(sent):
            if sent.verb == "apply" and sent.namespace == "team-a":
                causes = (errors.Cause("data[password]", "", marker),)
                said = f"weak: {marker}, {coded(marker)}"
                raise errors.Invalid(said, causes=causes, code=422)

        sync.worlds[0].cluster.before = refuse
        sync.source("app", {"password": marker})
        await sync.settle()

        told = str([sync.told("app"), sync.server.list("events.k8s.io", "Event").items])
        told += str([world.logs.entries for world in sync.worlds])
        told += str([generate_latest(world.meters.registry) for world in sync.worlds])
        assert "refused with 422 about data[password]" in told
        assert "hedgerow_refusals_total{" in told
        assert "weak" not in told
        assert marker not in told
        assert coded(marker) not in told

    async def test_nor_does_a_refusal_of_what_has_no_value_in_it(self):
        sync = Syncing("team-a")
        marker = "pl4nted-m4rker"

        async def refuse(sent):
            if sent.api.kind == "Secret" and sent.namespace == HOME:
                raise errors.Forbidden(f"the webhook says {marker}", code=403)

        sync.worlds[1].cluster.before = refuse
        sync.source("app", {"password": marker})
        await sync.settle()

        told = str([sync.told("app"), sync.server.list("events.k8s.io", "Event").items])
        told += str([world.logs.entries for world in sync.worlds])
        assert "refused with 403" in told
        assert marker not in told


class TestWhatOthersWriteOnACopy:
    @pytest.mark.parametrize(
        "text",
        [
            "[" * 100_000,
            "7",
            "null",
            '{"name": "app"}',
            "[7]",
            '[{"namespace": [], "name": {}, "uid": 7, "keys": [[], {}]}]',
            '[{"namespace": "secretsync", "name": "app", "uid": "u", "keys": 7}]',
            '[{"namespace": "elsewhere", "name": "app", "uid": "u", "keys": []}]',
        ],
    )
    async def test_nothing_in_its_annotation_stops_us(self, text):
        sync = Syncing("team-a")
        sync.source("app", {"password": "one"})
        await sync.settle()
        copy = sync.get("app", "team-a")
        assert copy is not None
        sync.server.merge(copy, {"metadata": {"annotations": {SOURCES: text}}}, "somebody")
        await sync.settle()
        sync.restart()
        sync.source("app", {"password": "two"})
        await sync.settle()

        assert sync.data("app", "team-a") == {"password": coded("two")}

    def test_only_what_can_be_read_is_believed(self):
        def told(text: str) -> tuple[Origin, ...]:
            return origins_of(View({"metadata": {"annotations": {SOURCES: text}}}))

        odd = '[{"namespace": "a", "name": "b", "uid": "c", "keys": ["k", 7]}, {"keys": "no"}]'
        assert told(odd) == (Origin("a", "b", "c", ("k",)), Origin("", "", "", ()))
        assert told("[" * 100_000) == ()
        assert told("{") == ()


class TestSources:
    def test_a_long_name_has_a_label_that_is_short_and_its_own(self):
        one, other = (
            CopiedSecret(View({"metadata": {"name": "x" * 70 + end}})).label for end in ("a", "b")
        )

        assert one != other
        assert len(one.rpartition("/")[2]) <= 63

    async def test_two_of_one_target_that_want_other_types_are_told_so(self):
        sync = Syncing("team-a")
        sync.source("one", {"a": "1"}, target="app")
        sync.source("two", {"b": "2"}, target="app", annotations={TARGET_TYPE: "Opaque"})
        await sync.settle()

        assert "wants the type" in sync.told("one")["Stalled"]
        assert "wants the type" in sync.told("two")["Stalled"]

    async def test_one_that_cannot_be_read_leaves_what_it_shares_as_it_is(self):
        sync = Syncing("team-a")
        sync.source("one", {"a": "1"}, target="app")
        sync.source("two", {"b": "2"}, target="app")
        await sync.settle()
        sync.source("two", {"b": "2"}, target="No Name")
        sync.source("one", {"a": "changed"}, target="app")
        await sync.settle()

        assert sync.data("app", "team-a") == {"a": coded("1"), "b": coded("2")}

    async def test_their_namespace_can_be_deleted(self):
        sync = Syncing("team-a")
        sync.source("app", {"password": "one"})
        await sync.settle()
        sync.server.terminate(HOME)
        sync.delete("app")
        await sync.settle()

        assert sync.get("app") is None
        assert sync.get("app", "team-a") is None
