"""What is made once: names that others have, going owners, and what is never sent again."""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow.kube import errors
from runtime.clockwork import MINUTE, POD, Clockwork, started
from runtime.scenes import refuse

Object = dict[str, Any]

pytestmark = pytest.mark.anyio

STATUS = "apply CronJob default/demo/status"


def put_up(world: Clockwork, minute: int, *, by: str = "kubectl-create", **meta: Any) -> Object:
    """Somebody else has a Job of the name of that minute's start, or we had made it."""
    target = world.target("Job", world.job(minute))
    body = {**target, "spec": {"template": {"spec": POD}}}
    body["metadata"] |= meta
    return world.server.create(body, by)


def owned_by(uid: str, name: str = "other", kind: str = "CronJob") -> list[Object]:
    api = "batch.tutorial.kubebuilder.io/v1"
    return [{"apiVersion": api, "kind": kind, "name": name, "uid": uid, "controller": True}]


class TestTakenNames:
    @pytest.mark.parametrize(
        "meta",
        [
            {},
            {"ownerReferences": owned_by("other")},
            {
                "ownerReferences": owned_by("other"),
                "labels": {"hedgerow.dev/controller": "cronjob"},
            },
        ],
        ids=["nobody's", "another's", "another's in our cache"],
    )
    async def test_a_job_of_another_is_never_written_and_is_no_start(self, meta):
        world = await started()
        theirs = put_up(world, 1, **meta)
        world.deliver()
        await world.live_through(MINUTE)

        assert world.the("Job", world.job(1)) == theirs
        assert world.condition("Ready") == "False/NameTaken"
        assert world.last == ""
        assert world.status()["activeCount"] == 0
        assert world.events() == ["NameTaken"]
        assert world.failures == []

    async def test_the_start_is_made_once_the_name_is_free(self):
        world = await started()
        put_up(world, 1)
        await world.live_through(MINUTE)
        world.delete("Job", world.job(1))
        await world.live_through(31)

        assert world.made == [world.job(1)] * 2
        assert world.condition("Ready") == "True/Scheduled"
        assert world.last == world.at(MINUTE)

    async def test_the_next_start_has_a_name_of_its_own(self):
        world = await started()
        theirs = put_up(world, 1)
        await world.live_through(2 * MINUTE)

        assert world.made == [world.job(1), world.job(2)]
        assert world.the("Job", world.job(1)) == theirs
        assert world.condition("Ready") == "True/Scheduled"
        assert world.last == world.at(2 * MINUTE)

    async def test_a_job_of_ours_that_no_watch_shows_is_found_by_its_name(self):
        # It lost its label while the operator was away, before its start was on record.
        world = await started()
        uid = world.the("CronJob")["metadata"]["uid"]
        put_up(world, 1, by="hedgerow-cronjob", ownerReferences=owned_by(uid, "demo"))
        await world.live_through(MINUTE)

        assert world.made == [world.job(1)]
        assert world.last == world.at(MINUTE)
        assert world.condition("Ready") == "True/Scheduled"

    @pytest.mark.parametrize("label", [{}, {"hedgerow.dev/controller": "cronjob"}], ids=str)
    async def test_one_that_somebody_else_made_ours_by_its_marks_is_none_of_ours(self, label):
        world = await started()
        uid = world.the("CronJob")["metadata"]["uid"]
        theirs = put_up(world, 1, ownerReferences=owned_by(uid, "demo"), labels=label)
        world.deliver()
        await world.live_through(MINUTE)

        assert world.the("Job", world.job(1)) == theirs
        assert (world.condition("Stalled"), world.last) == ("True/NameTaken", "")
        await world.live_through(MINUTE)
        assert world.last == world.at(2 * MINUTE)
        assert world.the("Job", world.job(1)) == theirs

    async def test_what_a_resource_of_the_name_left_is_waited_for(self):
        world = await started()
        label = {"hedgerow.dev/controller": "cronjob"}
        put_up(world, 1, ownerReferences=owned_by("former", "demo"), labels=label)
        world.deliver()
        await world.live_through(MINUTE)
        assert world.condition("Ready") == "False/WaitingForDeletion"
        world.server.collect()
        world.deliver()
        await world.live_through(1)

        assert world.made == [world.job(1)] * 2
        assert world.condition("Ready") == "True/Scheduled"


class TestGoing:
    async def test_a_resource_that_is_being_deleted_starts_nothing(self):
        world = await started()
        hold = {"metadata": {"finalizers": ["example.com/hold"]}}
        world.edit("CronJob", "demo", hold)
        world.delete("CronJob")
        world.deliver()
        before = len(world.writes)
        await world.live_through(3 * MINUTE)

        assert world.writes[before:] == []

    async def test_nothing_is_started_in_a_namespace_that_is_going_and_it_is_asked_once(self):
        world = await started()
        world.server.terminate("default")
        await world.live_through(3 * MINUTE)

        assert world.made == []
        assert [w for w in world.writes if " Job " in w] == [f"apply Job default/{world.job(1)}"]

    async def test_a_resource_that_is_gone_starts_nothing(self):
        world = await started()
        world.delete("CronJob")
        world.deliver()
        await world.live_through(3 * MINUTE)

        assert world.made == []

    async def test_one_made_anew_begins_with_its_own_creation(self):
        world = await started()
        await world.live_through(3 * MINUTE)
        world.delete("CronJob")
        world.server.collect()
        world.apply()
        world.deliver()
        await world.live_through(MINUTE)

        assert world.made == [world.job(minute) for minute in (1, 2, 3, 4)]


class TestOnce:
    RESPELLED = {
        **POD,
        "containers": [
            {
                "name": "c",
                "image": "i:1",
                "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            }
        ],
    }

    async def test_what_the_server_spells_its_own_way_is_sent_once_in_all_lives(self):
        world = await started(jobTemplate={"spec": {"template": {"spec": self.RESPELLED}}})
        await world.live_through(MINUTE)

        written = [write for write in world.writes[1:] if "Event" not in write]
        assert written == [f"apply Job default/{world.job(1)}", STATUS]
        before = len(world.writes)
        world.restart()
        await world.work()
        assert world.writes[before:] == []

    async def test_a_template_that_the_server_refuses_is_told_until_it_is_another(self):
        world = await started(
            jobTemplate={"spec": {"template": {"spec": {**POD, "restartPolicy": "Always"}}}}
        )
        await world.live_through(MINUTE)
        assert world.condition("Ready") == "False/Rejected"
        world.restart()
        await world.live_through(MINUTE - 1)
        world.apply()
        world.deliver()
        await world.live_through(2)

        assert world.made == [world.job(1), world.job(2)]
        assert world.condition("Ready") == "True/Scheduled"

    async def test_a_create_that_may_not_be_made_is_retried_until_it_may(self):
        world = await started()
        refuse(world, errors.Forbidden("exceeded quota", code=403), world.job(1), times=3)
        await world.live_through(MINUTE + 10)

        assert world.made == [world.job(1)]
        assert world.last == world.at(MINUTE)
