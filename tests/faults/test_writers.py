"""Writers that break a rule are told, each by a log that has little else."""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow.shard import Shard, lease_name
from support.cluster.writers import Entry, Writers, started_twice


def serving(place: str, count: int) -> str:
    """Return the shard of so many that serves a place."""
    return next(str(s) for s in (Shard(n, count) for n in range(count)) if s.serves(place))


ONE, OTHER, LATER = serving("shop", 2), "1/2", serving("shop", 3)
DURATION = 6.0


def at(seconds: float) -> str:
    return f"2026-01-01T00:{int(seconds) // 60:02}:{seconds % 60:09.6f}Z"


def entry(began: float, shard: str, **more: Any) -> Entry:
    """Return an apply of a Deployment that takes a tenth of a second."""
    given = {
        "verb": "patch",
        "userAgent": f"hedgerow/0.1.0 (shard {shard})" if shard else "hedgerow/0.1.0",
        "requestURI": "/apis/apps/v1/namespaces/shop/deployments/cache",
        "requestReceivedTimestamp": at(began),
        "stageTimestamp": at(more.pop("ended", began + 0.1)),
        "objectRef": {"resource": "deployments", "namespace": "shop", "name": "cache"},
        "requestObject": {},
        "responseStatus": {"code": 200},
    }
    return {**given, **more}


def renewal(began: float, shard: str, code: int = 200) -> Entry:
    name = lease_name("hedgerow", Shard.parse(shard) if shard else None)
    lease = {"resource": "leases", "namespace": "system", "name": name}
    status = {"code": code}
    return entry(began, shard, userAgent="hedgerow-lease", objectRef=lease, responseStatus=status)


def broken(*entries: Entry) -> list[str]:
    leases = (renewal(0.1, shard) for shard in ("", ONE, OTHER, LATER))
    return Writers.of((*leases, *entries)).broken(DURATION)


class TestWriters:
    @pytest.mark.parametrize("then", ["", LATER])
    def test_one_division_after_the_other_is_right(self, then):
        log = (entry(1, ONE), entry(2, ONE), entry(4, then))

        assert broken(*log) == []
        assert Writers.of(log).turns("shop") == [ONE, then or "all"]
        assert Writers.of(log).divisions() == [2, 3 if then else 1]

    def test_two_at_once_are_told(self):
        log = (entry(1, ONE, ended=5), entry(2, ONE), entry(4, LATER))

        assert [line.split(":")[0] for line in broken(*log)] == ["at once"]

    def test_a_division_that_writes_again_after_another_is_told_wherever_that_was(self):
        elsewhere = {"resource": "deployments", "namespace": "a", "name": "cache"}
        other = serving("a", 3)
        log = (entry(1, ONE), entry(2, other, objectRef=elsewhere), entry(3, ONE))

        told = broken(renewal(0.1, other), *log)
        assert told == ["divisions wrote in turns: [2, 3, 2]"]

    def test_who_writes_in_anothers_namespace_is_told(self):
        assert [line.split(":")[0] for line in broken(entry(1, OTHER))] == ["in shop"]

    @pytest.mark.parametrize(("code", "told"), [(200, 0), (409, 1)])
    def test_a_write_after_the_lease_has_run_out_is_told(self, code, told):
        log = (renewal(3, ONE, code), entry(7, ONE))

        assert [line.split(":")[0] for line in broken(*log)] == ["without a Lease"] * told

    def test_one_who_never_had_a_lease_is_told(self):
        assert len(Writers.of([entry(2, ONE)]).broken(DURATION)) == 1

    def test_copies_of_secrets_are_of_no_namespace(self):
        copy = {"resource": "secrets", "namespace": "shop", "name": "app"}
        event = {"resource": "events", "namespace": "shop", "name": "app.1"}
        about = {"regarding": {"kind": "Secret"}}
        uri = "/api/v1/namespaces/shop/secrets/app?fieldManager=hedgerow-secretsync&x=y"
        log = [
            entry(1, ONE, objectRef=copy, requestURI=uri),
            entry(2, ONE, objectRef=event, requestObject=about),
        ]

        assert (Writers.of(log).turns(""), Writers.of(log).turns("shop")) == ([ONE], [])
        assert broken(*log) == []

    @pytest.mark.parametrize("agent", ["kubectl", "hedgerow/0.1.0 (plan)", "hedgerow-lease"])
    def test_what_others_write_is_left_out(self, agent):
        assert Writers.of([entry(1, ONE, userAgent=agent)]).turns("shop") == []


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
