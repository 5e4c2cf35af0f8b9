"""Events: each once, create-only, and never worth a failure."""

from __future__ import annotations

import re
from typing import Any

import anyio
import pytest

from hedgerow.contract import Notice
from hedgerow.kube import errors
from hedgerow.objects import ObjectRef
from hedgerow.runtime.events import recorder as module
from hedgerow.runtime.events.recorder import (
    BURST,
    LONGEST_NOTE,
    PATIENCE,
    Limits,
    Recorder,
    event_name,
)
from hedgerow.runtime.namespaces import NAMESPACES
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_testing.memory.server import Server
from support.objects.foreign import POISON

pytestmark = pytest.mark.anyio

DEMO = ObjectRef(BlueGreen.api, "default", "demo", "u")
NOTICE = Notice("FieldConflict", "somebody holds it", "Warning")


def warning(number: int) -> Notice:
    return Notice("R", f"note {number}", "Warning")


@pytest.fixture
def recorder(world) -> Recorder:
    return Recorder(world.cluster, world.clock, "hedgerow-bluegreen")


def events(server: Server) -> tuple[Any, ...]:
    return server.list("events.k8s.io", "Event").items


class TestPublishing:
    async def test_an_event_says_what_happened_to_which_object(self, world, recorder):
        await recorder.publish(DEMO, NOTICE, "1")

        (event,) = events(world.server)
        assert event["regarding"] == {
            "apiVersion": "app.demo.kakao.com/v1",
            "kind": "BlueGreen",
            "name": "demo",
            "namespace": "default",
            "uid": "u",
        }
        told = {key: event[key] for key in ("reason", "type", "note", "action")}
        assert told == {
            "reason": "FieldConflict",
            "type": "Warning",
            "note": "somebody holds it",
            "action": "Reconcile",
        }
        assert event["reportingInstance"] == "hedgerow-bluegreen"
        assert re.fullmatch(r"[-0-9]{10}T[:0-9]{8}\.\d{6}Z", event["eventTime"])

    async def test_it_is_written_create_only_by_the_one_field_manager(self, world, recorder):
        await recorder.publish(DEMO, NOTICE, "1")

        (sent,) = world.cluster.writes
        assert sent.body["metadata"]["resourceVersion"] == "1"
        assert (sent.manager, sent.force) == ("hedgerow-bluegreen", False)

    async def test_the_same_is_told_once(self, world, recorder):
        for _ in range(3):
            await recorder.publish(DEMO, NOTICE, "1")

        assert len(world.cluster.writes) == 1

    @pytest.mark.parametrize(
        "error",
        [errors.Forbidden("no", code=403), errors.Unreachable("away", sent=False)],
        ids=lambda error: type(error).__name__,
    )
    async def test_one_that_cannot_be_written_may_be_tried_again(self, world, recorder, error):
        async def hook(_sent: Any) -> None:
            raise error

        world.cluster.before = hook
        assert await recorder.publish(DEMO, NOTICE, "1") is error
        assert await recorder.publish(DEMO, NOTICE, "1") is error
        assert len(world.cluster.writes) == 2

    async def test_one_that_gets_no_answer_keeps_the_status_waiting_for_a_while_only(
        self, world, recorder
    ):
        async def hook(_sent: Any) -> None:
            await anyio.sleep_forever()

        world.cluster.before, began = hook, anyio.current_time()
        assert isinstance(await recorder.publish(DEMO, NOTICE, "1"), errors.Unreachable)
        assert anyio.current_time() - began == PATIENCE

    async def test_what_is_forgotten_while_it_is_refused_may_be_tried_again(self, world, recorder):
        """A store that was restored from a backup is noticed at any time."""

        async def restored(_sent: Any) -> None:
            recorder.begin_anew()
            raise errors.Unreachable("gone", sent=False)

        before, world.cluster.before = world.cluster.before, restored
        assert isinstance(await recorder.publish(DEMO, NOTICE, "1"), errors.Unreachable)

        world.cluster.before = before
        assert await recorder.publish(DEMO, NOTICE, "1") is None
        assert len(events(world.server)) == 1

    async def test_one_that_is_there_already_was_told(self, world, recorder):
        assert await recorder.publish(DEMO, NOTICE, "1") is None
        again = Recorder(world.cluster, world.clock, "hedgerow-bluegreen")

        assert await again.publish(DEMO, NOTICE, "1") is None
        assert len(events(world.server)) == 1

    @pytest.mark.parametrize(("about", "told"), [("itself", True), ("a quota", False)])
    async def test_a_conflict_about_something_else_is_not_taken_for_that(
        self, world, recorder, about, told
    ):
        name = event_name(DEMO, NOTICE, "1") if about == "itself" else "quota"

        async def hook(_sent: Any) -> None:
            raise errors.Stale("modified", code=409, status={"details": {"name": name}})

        world.cluster.before = hook
        assert (await recorder.publish(DEMO, NOTICE, "1") is None) is told

    async def test_without_an_allowance_only_warnings_are_published(self, world, recorder):
        await recorder.publish(DEMO, Notice("Switched", "to Green"), "1")
        await recorder.publish(DEMO, NOTICE, "1")

        assert [event["reason"] for event in events(world.server)] == ["FieldConflict"]

    async def test_of_many_normal_events_at_once_most_are_left_out(self, world):
        limits = Limits(world.clock, normal=3)
        recorder = Recorder(world.cluster, world.clock, "m", limits)
        for number in range(10):
            await recorder.publish(DEMO, Notice("Created", str(number)), "1")
        assert len(events(world.server)) == 3

        world.server.now += 2
        for number in range(10, 20):
            await recorder.publish(DEMO, Notice("Created", str(number)), "1")
        assert len(events(world.server)) == 5

    async def test_of_many_warnings_of_a_namespace_those_beyond_its_share_are_left_out(
        self, world, recorder
    ):
        for number in range(30):
            assert await recorder.publish(DEMO, warning(number), "1") is None
        assert len(events(world.server)) == BURST

        world.server.now += 2
        for number in range(30):
            assert await recorder.publish(DEMO, warning(number), "1") is None
        assert len(events(world.server)) == BURST + 2

    @pytest.mark.parametrize(
        "elsewhere",
        [
            ObjectRef(BlueGreen.api, "other", "demo", "v"),
            ObjectRef(NAMESPACES, "", "other", "v"),
        ],
    )
    async def test_a_storm_in_one_namespace_takes_nothing_from_another(
        self, world, recorder, elsewhere
    ):
        for number in range(1000):
            await recorder.publish(DEMO, warning(number), "1")

        assert await recorder.publish(elsewhere, warning(0), "1") is None
        assert len(world.cluster.writes) == BURST + 1

    async def test_of_several_controllers_all_share_what_is_allowed(self, world):
        limits = Limits(world.clock)
        two = [Recorder(world.cluster, world.clock, m, limits) for m in ("a", "b")]
        for number in range(BURST):
            await two[number % 2].publish(DEMO, warning(number), "1")

        await two[0].publish(DEMO, warning(BURST), "1")
        assert len(events(world.server)) == BURST

    async def test_the_namespaces_that_are_remembered_are_bounded(self, world, monkeypatch):
        monkeypatch.setattr(module, "NAMESPACES", 2)
        limits = Limits(world.clock)
        for number in range(BURST):
            assert limits.take_warning("a")
            assert limits.take_warning(f"b{number}")
        assert not limits.take_warning("a")

        for name in ("b", "c"):
            assert limits.take_warning(name)
        assert limits.take_warning("a"), "it was forgotten"

    async def test_events_of_cluster_scoped_resources_are_in_default(self, world, recorder):
        await recorder.publish(ObjectRef(BlueGreen.api, "", "demo", "u"), NOTICE, "1")

        (sent,) = world.cluster.writes
        assert sent.namespace == "default"

    @pytest.mark.parametrize("letter", ["x", "ü", "\U0001f33f"])
    async def test_a_long_note_is_cut_at_what_the_server_takes_in_bytes(
        self, world, recorder, letter
    ):
        await recorder.publish(DEMO, Notice("R", "y" + letter * 2000, "Warning"), "1")

        (event,) = events(world.server)
        size = len(event["note"].encode())
        assert LONGEST_NOTE - 4 < size <= LONGEST_NOTE

    async def test_a_note_is_printable_as_kubectl_prints_it_as_it_is(self, world, recorder):
        await recorder.publish(DEMO, Notice("R", POISON * 20, "Warning"), "1")

        (event,) = events(world.server)
        assert event["note"].isprintable()

    async def test_what_is_remembered_is_bounded(self, world, recorder, monkeypatch):
        monkeypatch.setattr(module, "REMEMBERED", 3)
        for number in range(10):
            await recorder.publish(DEMO, NOTICE, str(number))

        names = [event["metadata"]["name"] for event in events(world.server)]
        assert len(names) == 10
        assert sum(map(recorder.is_published, names)) == 3
        assert len(events(world.server)) == 10


class TestNames:
    def test_the_name_tells_apart_whatever_is_told(self):
        other = ObjectRef(BlueGreen.api, "default", "demo", "v")
        names = {
            event_name(DEMO, NOTICE, "1"),
            event_name(other, NOTICE, "1"),
            event_name(DEMO, NOTICE, "2"),
            event_name(DEMO, Notice("Other", NOTICE.note, "Warning"), "1"),
            event_name(DEMO, Notice(NOTICE.reason, "other", "Warning"), "1"),
            event_name(DEMO, Notice(NOTICE.reason, NOTICE.note), "1"),
        }

        assert len(names) == 6
        assert event_name(DEMO, NOTICE, "1") in names

    @pytest.mark.parametrize("name", ["demo", "a" * 253, "a" * 199 + "-b", "a" * 198 + ".b.c"])
    def test_it_is_a_name_that_the_server_takes(self, name):
        made = event_name(ObjectRef(BlueGreen.api, "ns", name, "u"), NOTICE, "1")

        part = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
        assert re.fullmatch(rf"{part}(\.{part})*", made)
        assert len(made) <= 253
