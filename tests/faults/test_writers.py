"""Writers that break a rule are told, each by a log that has little else."""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow.shards import assignment
from hedgerow.shards.assignment import Assignment
from hedgerow.shards.members import ASSIGNMENT
from support.cluster.writers import Entry, Writers, started_twice

ONE, OTHER = "hedgerow-1", "hedgerow-2"
DURATION = 6.0


def at(seconds: float) -> str:
    return f"2026-01-01T00:{int(seconds) // 60:02}:{seconds % 60:09.6f}Z"


def entry(began: float, replica: str, **more: Any) -> Entry:
    """Return an apply of a Deployment that takes a tenth of a second."""
    given = {
        "verb": "patch",
        "userAgent": f"hedgerow-memcached ({replica})",
        "requestURI": "/apis/apps/v1/namespaces/shop/deployments/cache",
        "requestReceivedTimestamp": at(began),
        "stageTimestamp": at(more.pop("ended", began + 0.1)),
        "objectRef": {"resource": "deployments", "namespace": "shop", "name": "cache"},
        "requestObject": {},
        "responseStatus": {"code": 200},
    }
    return {**given, **more}


def renewal(began: float, replica: str, code: int = 200) -> Entry:
    lease = {"resource": "leases", "namespace": "system", "name": replica}
    return entry(began, replica, objectRef=lease, responseStatus={"code": code})


def assigned(began: float, *owners: str, code: int = 200) -> Entry:
    """Return an assignment by the first one: an equal part for each."""
    parts = tuple((2**24 * number // len(owners), number) for number in range(len(owners)))
    text = assignment.text(Assignment(1, "n", owners, parts))
    body = {"metadata": {"annotations": {ASSIGNMENT: text}}}
    lease = {"resource": "leases", "namespace": "system", "name": "hedgerow-shards"}
    told = {"objectRef": lease, "requestObject": body, "responseStatus": {"code": code}}
    return entry(began, owners[0], **told)


def broken(*entries: Entry) -> list[str]:
    leases = (renewal(0.1, ONE), renewal(0.1, OTHER))
    return Writers.of((assigned(0, ONE), *leases, *entries)).broken(DURATION)


class TestWriters:
    def test_one_after_the_other_in_its_turn_is_right(self):
        log = (entry(1, ONE), entry(2, ONE), assigned(3, OTHER), entry(4, OTHER))

        assert broken(*log) == []
        assert Writers.of(log).turns("shop") == [ONE, OTHER]

    def test_two_at_once_are_told(self):
        late = entry(1, ONE, ended=5)
        log = (late, entry(2, ONE), assigned(3, OTHER), entry(4, OTHER))

        assert [line.split(":")[0] for line in broken(*log)] == ["at once"]

    def test_who_writes_again_without_being_assigned_again_is_told(self):
        log = [entry(1, ONE), assigned(2, OTHER), entry(3, OTHER), entry(4, ONE)]

        assert len(broken(*log)) == 1
        assert broken(*log, assigned(3.5, ONE)) == []

    def test_who_writes_before_it_was_assigned_is_told(self):
        assert len(broken(entry(1, OTHER), assigned(2, OTHER), entry(3, OTHER))) == 1

    def test_an_assignment_that_was_refused_permits_nothing(self):
        assert len(broken(assigned(1, OTHER, code=409), entry(2, OTHER))) == 1

    def test_only_the_part_counts_that_the_namespace_is_in(self):
        both = Writers.of([assigned(0, ONE, OTHER), renewal(0, ONE), renewal(0, OTHER)])
        places = [f"{number}-shop" for number in range(9)]
        for replica in (ONE, OTHER):
            for place in places:
                reference = {"resource": "deployments", "namespace": place, "name": "cache"}
                both.take(entry(1, replica, objectRef=reference))

        # Each of them is one replica's: the other one must not write there.
        assert sum("wrote" in line for line in both.broken(DURATION)) == len(places)

    @pytest.mark.parametrize(("code", "told"), [(200, 0), (409, 1)])
    def test_a_write_after_the_lease_has_run_out_is_told(self, code, told):
        log = (renewal(3, ONE, code), entry(7, ONE))

        assert [line.split(":")[0] for line in broken(*log)] == ["without a Lease"] * told

    def test_one_who_never_had_a_lease_is_told(self):
        log = (assigned(1, "hedgerow-3"), entry(2, "hedgerow-3"))

        assert len(broken(*log)) == 1

    def test_copies_of_secrets_are_of_no_namespace(self):
        copy = {"resource": "secrets", "namespace": "shop", "name": "app"}
        event = {"resource": "events", "namespace": "shop", "name": "app.1"}
        about = {"regarding": {"kind": "Secret"}}
        found = Writers.of(
            [entry(1, ONE, objectRef=copy), entry(2, ONE, objectRef=event, requestObject=about)]
        )

        assert (found.turns(""), found.turns("shop")) == ([ONE], [])

    def test_what_others_write_is_left_out(self):
        users = entry(1, ONE, userAgent="kubectl")

        assert Writers.of([users]).turns("shop") == []


class TestStarts:
    def made(self, name: str, uid: str = "u", code: int = 201) -> Entry:
        reference = {"resource": "jobs", "namespace": "shop", "name": name}
        body = {"metadata": {"ownerReferences": [{"uid": uid}]}}
        status = {"code": code}
        return entry(1, ONE, objectRef=reference, requestObject=body, responseStatus=status)

    def test_a_job_that_is_made_twice_is_told(self):
        twice = [self.made("cron-1795337413"), self.made("cron-1795337413")]

        assert len(started_twice(twice)) == 1

    @pytest.mark.parametrize(("next_", "told"), [("cron-1795337415", 1), ("cron-1795337416", 0)])
    def test_a_start_before_its_time_is_told(self, next_, told):
        both = [self.made("cron-1795337413"), self.made(next_)]

        assert len(started_twice(both, 3)) == told

    @pytest.mark.parametrize("more", [{"uid": "v"}, {"code": 200}])
    def test_another_owner_or_what_was_there_is_no_second_start(self, more):
        both = [self.made("cron-1795337413"), self.made("cron-1795337413", **more)]

        assert started_twice(both) == []
