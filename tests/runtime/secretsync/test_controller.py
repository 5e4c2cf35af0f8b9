"""Copies of Secrets on the cluster in memory: targets, conflicts, removal, what is told."""

from __future__ import annotations

import pytest
from prometheus_client import generate_latest

from hedgerow.controllers.secretsync.options import Selection
from hedgerow.controllers.secretsync.sources import TARGET_TYPE, CopiedSecret
from hedgerow.fields import managed_fields
from hedgerow.kube import errors
from hedgerow.plan.yield_and_claim import CLAIM
from runtime.secretsync.syncing import HOME, MANAGER, Syncing, coded, secret

pytestmark = pytest.mark.anyio


def fix(sync: Syncing) -> None:
    """Make a copy immutable, with a key of one's own."""
    sync.put("app", "team-a", {"mine": "x"})
    sync.server.merge(secret("app", "team-a"), {"immutable": True}, "tenant")


class TestCopies:
    async def test_a_new_namespace_gets_its_copies_in_one_pass(self):
        sync = Syncing()
        for number in range(50):
            sync.source(f"app{number}", {"password": "one"})
        await sync.settle()
        before, asked = len(sync.writes), len(sync.world.cluster.sent)

        sync.open("apps")
        sync.world.deliver()
        assert await sync.world.work() == 1
        await sync.settle()

        assert len(sync.writes) - before == 50
        assert len(sync.world.cluster.sent) - asked == 50
        assert all(sync.get(f"app{number}", "apps") for number in range(50))

    async def test_a_terminating_namespace_is_left_alone(self):
        sync = Syncing()
        sync.terminate("team-b")
        sync.source("app", {"password": "one"})
        await sync.settle()

        assert sync.get("app", "team-a") is not None
        assert not [line for line in sync.writes if "team-b" in line]

    def test_a_long_name_has_a_label_that_is_short_and_its_own(self):
        one, other = (
            CopiedSecret({"metadata": {"name": "x" * 70 + end}}).label for end in ("a", "b")
        )

        assert one != other
        assert len(one.rpartition("/")[2]) <= 63


class TestKeysOfOthers:
    async def test_a_copy_with_emptied_managed_fields_stays_ours_with_its_keys_contested(self):
        sync = Syncing("team-a")
        sync.source("app", {"password": "one"})
        await sync.settle()
        emptied = {"metadata": {"managedFields": [{}]}}
        sync.server.merge(secret("app", "team-a"), emptied, "somebody")
        sync.server.now += 3700
        await sync.settle()
        assert managed_fields.entry(sync.the("app", "team-a"), MANAGER) is not None

        sync.source("app", {"password": "two", "user": "three"})
        await sync.settle()
        assert sync.data("app", "team-a") == {"password": coded("one"), "user": coded("three")}
        assert "held by before-first-apply" in sync.told("app")["FieldConflict"]
        assert "NameTaken" not in sync.told("app")

        sync.delete("app")
        await sync.settle()
        assert sync.data("app", "team-a") == {"password": coded("one")}
        sync.server.now += 700
        sync.world.life.look()
        await sync.settle()
        before = len(sync.writes)
        for _ in range(5):
            sync.server.now += 700
            sync.world.life.look()
            await sync.settle()
        assert sync.writes[before:] == []
        assert "NotOurs" in {entry["reason"] for entry in sync.problems}


class TestRemoval:
    @pytest.mark.parametrize("restarted", [False, True])
    @pytest.mark.parametrize("holds", [fix, lambda sync: sync.terminate("team-a")])
    async def test_what_cannot_be_given_back_holds_nothing_up(self, holds, restarted):
        sync = Syncing()
        sync.source("app", {"password": "one"})
        await sync.settle()
        holds(sync)
        sync.source("more", {"user": "two"})
        sync.delete("app")
        if restarted:
            sync.restart()
        await sync.settle()

        assert sync.get("app") is None
        assert sync.get("app", "team-a") is not None
        assert sync.get("app", "team-b") is None
        assert sync.data("more", "team-b") == {"user": coded("two")}
        if holds is fix:
            assert sync.data("more", "team-a") == {"user": coded("two")}

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


class TestMadeAnew:
    """What the API server lets nobody change: the type, and the values of an immutable copy."""

    @pytest.mark.parametrize(
        ("error", "reason"),
        [(errors.Invalid, "Rejected"), (errors.Forbidden, "Forbidden")],
        ids=["invalid", "forbidden by admission or quota"],
    )
    async def test_the_copies_stay_while_the_server_would_not_create_the_new_ones(
        self, error, reason
    ):
        sync = Syncing()
        sync.source("app", {"password": "one"})
        await sync.settle()
        uids = [sync.the("app", name)["metadata"]["uid"] for name in ("team-a", "team-b")]

        async def refuse(sent):
            if sent.verb == "create":
                raise error("data[tls.crt] is missing", code=422)

        sync.world.cluster.before = refuse
        sync.source("app", {"password": "one"}, annotations={TARGET_TYPE: "kubernetes.io/tls"})
        await sync.settle()

        now = [sync.the("app", name)["metadata"]["uid"] for name in ("team-a", "team-b")]
        assert now == uids
        assert not [line for line in sync.writes if line.startswith("delete")]
        told = [event for event in sync.events() if event == (HOME, "app", reason)]
        assert len(told) == 2
        assert (
            "cannot be replaced by what is declared, and stays as it is: refused with 422"
            in (sync.told("app")[reason])
        )

        sync.source("app", {"password": "two"})
        await sync.settle()
        assert sync.data("app", "team-a") == {"password": coded("two")}

    async def test_a_wait_for_the_server_does_not_outlast_the_mistake(self):
        sync = Syncing("team-a")
        sync.source("app", {"password": "one"})
        await sync.settle()

        async def refuse(sent):
            if sent.verb == "create" and sent.body["type"] == "kubernetes.io/tls":
                raise errors.Invalid("data[tls.crt] is missing", code=422)

        sync.world.cluster.before = refuse
        sync.source("app", {"password": "one"}, annotations={TARGET_TYPE: "kubernetes.io/tls"})
        for _ in range(6):
            sync.server.now += 400
            await sync.settle()
        sync.source("app", {"password": "one"}, annotations={TARGET_TYPE: "Opaque"})
        sync.world.deliver()
        await sync.world.work()
        sync.world.deliver()
        await sync.world.work()

        assert sync.the("app", "team-a")["type"] == "Opaque"

    async def test_a_refusal_that_only_sounds_as_if_the_name_were_taken_keeps_the_copy(self):
        sync = Syncing("team-a")
        sync.source("app", {"password": "one"})
        await sync.settle()

        async def refuse(sent):
            if sent.verb == "create":
                raise errors.AlreadyExists("a webhook says so", status={"details": {}}, code=409)

        sync.world.cluster.before = refuse
        sync.source("app", {"password": "one"}, annotations={TARGET_TYPE: "Opaque"})
        await sync.settle()

        assert not [line for line in sync.writes if line.startswith("delete")]
        assert sync.get("app", "team-a") is not None

    async def test_nor_does_one_vanish_when_its_source_goes_and_another_has_its_target(self):
        sync = Syncing("team-a")
        sync.source("old", {"a": "1"}, target="app")
        sync.source("new", {"b": "2"}, target="app", annotations={TARGET_TYPE: "example.com/new"})
        await sync.settle()

        async def refuse(sent):
            if sent.verb == "create":
                raise errors.Invalid("data[username] is missing", code=422)

        sync.world.cluster.before = refuse
        sync.delete("old")
        await sync.settle()

        assert sync.data("app", "team-a") == {"a": coded("1")}
        assert "stays as it is" in sync.told("new")["Rejected"]


class TestValues:
    async def test_a_refusal_that_repeats_a_value_does_not_get_out(self):
        sync = Syncing("team-a")
        marker = "pl4nted-m4rker"

        async def refuse(sent):
            if sent.verb in {"apply", "create"} and sent.namespace == "team-a":
                causes = (errors.Cause("data[password]", "", marker),)
                said = f"weak: {marker}, {coded(marker)}"
                raise errors.Invalid(said, causes=causes, code=422)

        await self.made(sync)
        sync.world.cluster.before = refuse
        sync.source("app", {"password": marker})
        sync.source("typed", {"password": marker}, annotations={TARGET_TYPE: "Opaque"})
        await sync.settle()

        told = str([sync.told("app"), sync.server.list("events.k8s.io", "Event").items])
        told += str(sync.world.logs.entries)
        told += str(generate_latest(sync.world.meters.registry))
        assert told.count("refused with 422 about data[password]") > 2
        assert "hedgerow_refusals_total{" in told
        assert "weak" not in told
        assert marker not in told
        assert coded(marker) not in told

    async def made(self, sync: Syncing) -> None:
        sync.source("typed", {"password": "one"})
        await sync.settle()


class TestWhatIsTold:
    async def test_each_child_and_reason_is_one_event_a_line_of_the_log_and_counted(self):
        names = ("team-a", "team-b", "team-c")
        sync = Syncing(*names)
        for name in names:
            sync.put("app", name, {"password": "theirs"})
        sync.source("app", {"password": "one"})
        await sync.settle()

        assert sync.events() == [(HOME, "app", "NameTaken")] * 3
        assert [(entry["log_level"], entry["reason"]) for entry in sync.problems] == [
            ("warning", "NameTaken")
        ] * 3
        assert sync.counted == 3
        before = len(sync.world.writes)
        for _ in range(5):
            sync.server.now += 700
            sync.world.life.look()
            await sync.settle()
        assert sync.world.writes[before:] == []
        assert sync.counted == 3

    async def test_a_mistake_of_a_source_is_told_once_and_not_by_each_namespace(self):
        sync = Syncing("team-a", "team-b", "team-c")
        sync.source("app", {"password": "one"}, target="No Name")
        await sync.settle()

        assert sync.events() == [(HOME, "app", "InvalidAnnotation")]
        assert len(sync.problems) == sync.counted == 1

    async def test_one_that_is_refused_is_told_when_the_namespace_is_next_looked_at(self):
        sync = Syncing("team-a")
        sync.source("old", {"password": "one"}, target="app")
        await sync.settle()

        async def refuse(sent):
            if is_down and sent.api.kind == "Event":
                raise errors.Unavailable("down", code=503)

        is_down = True
        sync.world.cluster.before = refuse
        sync.source("young", {"user": "two"}, target="app")
        await sync.settle()
        assert sync.events() == []
        is_down = False
        sync.world.life.look()
        await sync.settle()

        assert sync.events() == [(HOME, "young", "TargetTaken")]

    async def test_many_in_one_namespace_are_no_flood_of_events(self):
        names = tuple(f"team-{number:03}" for number in range(60))
        sync = Syncing(*names)
        for name in names:
            sync.put("app", name, {"password": "theirs"})
        sync.source("app", {"password": "one"})
        sync.world.deliver()
        await sync.world.work()

        assert len(sync.events()) <= 30
        assert sync.counted == len(names)

    async def test_a_problem_of_the_namespace_itself_is_logged_once_and_counted(self):
        sync = Syncing("team-a")
        sync.annotate("team-a", {CLAIM: "Secret/app"})
        sync.source("app", {"password": "one"})
        await sync.settle()

        assert sync.data("app", "team-a") == {"password": coded("one")}
        logged = [(entry["log_level"], entry["object"], entry["reason"]) for entry in sync.problems]
        assert logged == [("warning", "team-a", "InvalidAnnotation")]
        assert sync.counted == 1
        assert sync.events() == sync.events("Namespace") == []

    async def test_a_copy_that_is_too_large_is_logged_and_stays_until_it_is_smaller(self):
        sync = Syncing("team-a")
        sync.source("app", {"password": "one"})
        await sync.settle()
        sync.put("app", "team-a", {f"key{n}": "x" * 100 for n in range(4000)})
        sync.delete("app")
        await sync.settle()
        assert sync.get("app", "team-a") is not None
        assert {entry["reason"] for entry in sync.problems} == {"TooLarge"}

        sync.put("app", "team-a", {"theirs": "kept"})
        await sync.settle()
        assert sync.data("app", "team-a") == {"theirs": coded("kept")}

    async def test_what_says_that_a_namespace_has_said_something_is_not_believed(self):
        sync = Syncing("team-a")
        told = '{"conditions": [{"type": "Stalled", "status": "True", "reason": "NameTaken"}]}'
        sync.annotate("team-a", {"hedgerow.dev/status": told})
        sync.source("app", {"password": "one"})
        await sync.settle()

        assert sync.data("app", "team-a") == {"password": coded("one")}
        assert not [line for line in sync.world.writes if "Namespace" in line]


class TestPasses:
    async def test_what_nobody_reads_of_a_source_is_no_pass_of_the_namespaces(self):
        sync = Syncing("team-a")
        sync.source("app", {"password": "one"})
        await sync.settle()
        said = {"metadata": {"annotations": {"example.com/said": "{}"}}}
        sync.server.merge(secret("app", HOME), said, "somebody")
        sync.world.deliver()
        assert not sync.world.life.is_due

        other = {"metadata": {"annotations": {"k8s.ziwon.dev/target-name": "other"}}}
        sync.server.merge(secret("app", HOME), other, "somebody")
        sync.world.deliver()
        assert sync.world.life.is_due


class TestText:
    async def test_however_many_keys_of_a_copy_are_contested_it_is_one_event(self):
        sync = Syncing("team-a")
        keys = {f"key{number:02}": "one" for number in range(20)}
        sync.source("app", keys)
        await sync.settle()
        for key in keys:
            sync.put("app", "team-a", {key: "mine"}, by=f"by-{key}")
        sync.source("app", dict.fromkeys(keys, "two"))
        await sync.settle()

        assert sync.events() == [(HOME, "app", "FieldConflict")]
