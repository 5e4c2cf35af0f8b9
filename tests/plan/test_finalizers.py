from __future__ import annotations

from typing import Any

import pytest

from hedgerow.contract import Create
from hedgerow.objects import ObjectRef
from hedgerow.plan.finalizers import finalization, finalizers_of
from hedgerow.plan.writes import declare
from hedgerow.testing.memory.answers import Refused
from hedgerow.testing.memory.kinds import BUILTIN
from hedgerow.testing.memory.server import Server
from hedgerow_schemas.cronjob import CronJob
from hedgerow_schemas.job import Job
from plan.made import entry, live

Object = dict[str, Any]

OURS = "hedgerow-cronjob"
GUARD, OTHER = "example.com/guard", "example.com/other"
OWNER = ObjectRef(CronJob.api, "default", "demo", "owner-uid")
POD = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}


def declared(*finalizers: str) -> Object:
    fields: Object = {
        "metadata": {"annotations": {"a": "b"}, "finalizers": list(finalizers)},
        "spec": {"template": {"spec": POD}},
    }
    return declare(Create(Job, "demo-60", fields), OWNER, "cronjob")


@pytest.fixture
def server() -> Server:
    return Server(BUILTIN)


def put_up(server: Server, *finalizers: str) -> Object:
    return server.apply(declared(*finalizers), OURS)[0]


def add(server: Server, name: str) -> None:
    """Somebody else adds a finalizer, as garbage collection does."""
    found = server.get(declared())
    finalizers = [*finalizers_of(found), name]
    server.update({**found, "metadata": {**found["metadata"], "finalizers": finalizers}}, "gc")


class TestFinalizersOf:
    @pytest.mark.parametrize("meta", [{}, {"finalizers": None}, {"finalizers": []}, None])
    def test_an_object_without_any_has_none(self, meta):
        assert finalizers_of({"metadata": meta}) == ()

    def test_they_are_given_in_order(self):
        assert finalizers_of({"metadata": {"finalizers": ["b/b", "a/a"]}}) == ("b/b", "a/a")


class TestFinalization:
    def test_it_takes_ours_off_and_nothing_else_with_it(self, server):
        there = put_up(server, GUARD)
        write = finalization(Job.api, there, OURS, {GUARD})
        answer = server.apply(write.body, OURS)[0]

        assert finalizers_of(answer) == ()
        for obj in (there, answer):
            for name in ("managedFields", "resourceVersion", "finalizers"):
                obj["metadata"].pop(name, None)
        assert answer == there

    def test_it_is_an_apply_that_is_made_once_to_exactly_that_object(self, server):
        there = put_up(server, GUARD)
        write = finalization(Job.api, there, OURS, {GUARD})

        assert (write.create, write.once, write.restores) == (False, True, ())
        assert write.ref == ObjectRef(Job.api, "default", "demo-60", there["metadata"]["uid"])
        assert write.body["metadata"]["uid"] == write.ref.uid
        assert write.fingerprint

    def test_it_is_refused_once_the_owner_was_taken_off_to_orphan_the_object(self, server):
        there = put_up(server, GUARD)
        write = finalization(Job.api, there, OURS, {GUARD})
        orphan = {k: v for k, v in there["metadata"].items() if k != "ownerReferences"}
        server.update({**there, "metadata": orphan}, "gc")

        with pytest.raises(Refused, match="has been modified"):
            server.apply(write.body, OURS)

    def test_the_write_is_named_by_what_it_says(self, server):
        there = put_up(server, GUARD)
        first = finalization(Job.api, there, OURS, {GUARD})
        there["metadata"]["resourceVersion"] = "999"

        assert finalization(Job.api, there, OURS, {GUARD}).fingerprint == first.fingerprint

    def test_it_is_done_once(self, server):
        there = put_up(server, GUARD)
        answer = server.apply(finalization(Job.api, there, OURS, {GUARD}).body, OURS)[0]

        assert finalization(Job.api, answer, OURS, {GUARD}) is None

    def test_another_finalizer_of_ours_stays(self, server):
        there = put_up(server, GUARD, OTHER)
        answer = server.apply(finalization(Job.api, there, OURS, {GUARD}).body, OURS)[0]

        assert finalizers_of(answer) == (OTHER,)
        assert finalization(Job.api, answer, OURS, {GUARD}) is None
        assert finalization(Job.api, answer, OURS, {GUARD, OTHER}) is not None

    def test_those_of_others_stay(self, server):
        put_up(server, GUARD)
        add(server, "foregroundDeletion")
        there = server.get(declared())
        answer = server.apply(finalization(Job.api, there, OURS, {GUARD}).body, OURS)[0]

        assert finalizers_of(answer) == ("foregroundDeletion",)

    def test_an_object_that_is_going_is_let_go(self, server):
        put_up(server, GUARD)
        server.delete(declared())
        there = server.get(declared())
        assert there["metadata"]["deletionTimestamp"]
        server.apply(finalization(Job.api, there, OURS, {GUARD}).body, OURS)

        assert server.get(declared()) is None

    def test_what_others_took_meanwhile_is_left_with_them(self, server):
        put_up(server, GUARD)
        note = {"metadata": {"annotations": {"a": "theirs"}}}
        server.merge(declared(), note, "kubectl-edit")
        there = server.get(declared())
        answer = server.apply(finalization(Job.api, there, OURS, {GUARD}).body, OURS)[0]

        assert finalizers_of(answer) == ()
        assert answer["metadata"]["annotations"] == {"a": "theirs"}

    @pytest.mark.parametrize(
        "there",
        [
            live(declared()),
            live(declared(GUARD), entry(declared(GUARD), "somebody")),
            live(declared(GUARD), entry(declared(GUARD), OURS, "Update")),
            live(declared(GUARD), {}),
        ],
        ids=["without it", "somebody else's", "ours by update", "nobody's"],
    )
    def test_what_is_not_held_by_our_applies_is_not_ours_to_take_off(self, there):
        assert finalization(Job.api, there, OURS, {GUARD}) is None

    def test_without_anything_given_up_there_is_nothing_to_write(self, server):
        assert finalization(Job.api, put_up(server, GUARD), OURS, ()) is None
