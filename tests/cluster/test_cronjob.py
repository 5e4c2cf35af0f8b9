"""CronJob on a real API server with controllers and a simulated node, as its users meet it."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http import HTTPStatus

import pytest

from hedgerow.runtime.clock import SystemClock
from hedgerow.sandbox.cluster import Sandbox
from hedgerow.testing.api import Api, Object
from hedgerow.testing.audit_log import AuditLog, must_be_unforced_applies
from hedgerow.testing.silence import Silence
from hedgerow.testing.waiting import eventually, throughout
from support.cluster.cronjobs import (
    FIELD_MANAGER,
    SCHEDULED_AT,
    START_GUARD,
    USER,
    World,
    created,
    ended,
    prepare,
    seconds_of,
    template,
)
from support.operator.running import Operator, RunAs

pytestmark = pytest.mark.cluster

NEVER = "0 0 30 2 *"


@pytest.fixture(scope="module")
def operator(nodes_sandbox: Sandbox, run_as: RunAs) -> Operator:
    """The operator, with its own identity and no right beyond what it needs."""
    api = Api(nodes_sandbox.kubeconfig)
    prepare(api)
    api.close()
    return run_as(nodes_sandbox, USER, "--controllers", "cronjob", "--events", "all")


@pytest.fixture
def world(operator: Operator, nodes_sandbox: Sandbox, nodes_namespace: str) -> Iterator[World]:
    """A fresh namespace with the operator at work, whatever became of it in the test before."""
    if not operator.running:
        operator.start()
    api = Api(nodes_sandbox.kubeconfig)
    yield World(api, nodes_namespace)
    api.close()


@pytest.fixture(scope="module", autouse=True)
def every_minute(operator: Operator, nodes_sandbox: Sandbox) -> Iterator[World]:
    """CronJobs that run, or are held, while the other tests do what they do."""
    api = Api(nodes_sandbox.kubeconfig)
    world = World(api, api.namespace("every-minute"))
    world.apply("minutely", "* * * * *")
    world.apply("held", "@every 1s", suspend=True)
    # One start within minutes, and no other for a day: a Job that runs is in its way.
    start = SystemClock().now().replace(second=0, microsecond=0) + timedelta(minutes=2)
    daily = f"{start.minute} {start.hour} * * *"
    waits = world.apply("waits", daily, concurrencyPolicy="Forbid")
    world.own(waits, "waits-running", "somebody", runs_for=6000)
    yield world
    api.raw("DELETE", "/api/v1/namespaces/every-minute")
    api.close()


class TestStarting:
    def test_every_start_gets_one_job_named_after_its_second(self, world: World):
        # Of starts that are missed only the latest is made up for: the pace leaves room for none.
        live = world.apply("hello", "@every 4s", successfulJobsHistoryLimit=10)

        eventually(lambda: len(world.names("hello")) >= 3, what="three Jobs")
        names = world.names("hello")
        first = int(created(live).timestamp()) + 4
        assert [seconds_of(name) for name in names[:3]] == [first, first + 4, first + 8]
        job = world.get(names[0], "Job")
        meta = job["metadata"]
        at = datetime.fromtimestamp(first, UTC)
        assert meta["annotations"][SCHEDULED_AT] == f"{at:%Y-%m-%dT%H:%M:%SZ}"
        assert meta["annotations"]["note"] == "b"
        assert meta["labels"]["team"] == "a"
        (owner,) = meta["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("CronJob", live["metadata"]["uid"])
        assert owner["controller"] is True
        assert "finalizers" not in meta

    def test_the_status_tells_of_the_last_start_the_next_and_the_last_success(self, world: World):
        world.apply("hello", "@every 3s")
        eventually(lambda: "lastSuccessfulTime" in world.status("hello"), what="a success")
        world.edit("hello", suspend=True)
        eventually(lambda: world.condition("Ready", "hello") == "True/Suspended")
        eventually(lambda: "active" not in world.status("hello"), what="all have ended")

        status, newest = world.status("hello"), world.jobs("hello")[-1]
        assert status["lastScheduleTime"] == newest["metadata"]["annotations"][SCHEDULED_AT]
        assert status["lastSuccessfulTime"] == newest["status"]["completionTime"]
        assert status["activeCount"] == 0
        assert "nextScheduleTime" not in status

        world.edit("hello", suspend=False, schedule="0 0 1 1 *")
        year = SystemClock().now().year + 1
        eventually(
            lambda: world.status("hello").get("nextScheduleTime") == f"{year}-01-01T00:00:00Z"
        )

    def test_a_suspended_one_starts_nothing(self, world: World):
        world.apply("hello", "@every 1s", suspend=True)
        eventually(lambda: world.condition("Ready", "hello") == "True/Suspended")

        throughout(lambda: world.names("hello"), 3, "while suspended")

        world.edit("hello", suspend=False)
        eventually(lambda: world.names("hello"), what="a start after all")

    def test_a_bad_schedule_is_told_and_mended(self, world: World):
        world.apply("hello", "61 * * * *")

        eventually(lambda: world.condition("Stalled", "hello") == "True/UnparseableSchedule")
        assert "61" in world.message("Ready", "hello")
        (note,) = eventually(lambda: world.events("hello", "UnparseableSchedule"))
        assert note == world.message("Stalled", "hello")

        world.edit("hello", schedule="@every 1s")
        eventually(lambda: world.condition("Ready", "hello") == "True/Scheduled")
        eventually(lambda: world.names("hello"))
        assert world.condition("Stalled", "hello") == ""

    def test_what_was_asked_of_a_template_the_server_refuses_is_told(self, world: World):
        broken = template()
        broken["spec"]["template"]["spec"]["restartPolicy"] = "Always"
        world.apply("hello", "@every 2s", jobTemplate=broken)

        eventually(lambda: world.condition("Stalled", "hello") == "True/Rejected")
        assert "restartPolicy" in world.message("Stalled", "hello")

        world.edit("hello", jobTemplate=template())
        eventually(lambda: world.names("hello"))
        eventually(lambda: world.condition("Ready", "hello") == "True/Scheduled")


class TestConcurrency:
    def test_allow_lets_jobs_run_side_by_side(self, world: World):
        world.apply("hello", "@every 1s", runs_for=60)

        eventually(lambda: len(world.running("hello")) >= 2, what="two at once")
        listed = eventually(lambda: world.status("hello").get("active"))
        assert {ref["kind"] for ref in listed} == {"Job"}

    def test_forbid_waits_for_the_job_that_runs_and_says_so(self, world: World):
        world.apply("hello", "@every 2s", runs_for=5, concurrencyPolicy="Forbid")

        eventually(lambda: world.events("hello", "JobAlreadyActive"), what="a start that waits")
        first = world.names("hello")
        assert len(first) == 1
        eventually(lambda: len(world.names("hello")) == 2, what="the start that had waited")
        assert ended(world.get(first[0], "Job"), "Complete")

    def test_forbid_waits_for_a_job_that_has_lost_its_label(self, world: World):
        world.apply("hello", "@every 2s", runs_for=600, concurrencyPolicy="Forbid")
        eventually(lambda: len(world.jobs("hello")) == 1, what="a Job")
        name = world.jobs("hello")[0]["metadata"]["name"]
        eventually(lambda: world.status("hello").get("active"), what="it is on record")
        lost = {"metadata": {"labels": {"hedgerow.dev/controller": None}}}
        world.api.merge(world.target(name, "Job"), lost, "kubectl-label").must()

        def is_back() -> bool:
            labels = (world.get(name, "Job") or {})["metadata"].get("labels", {})
            return labels.get("hedgerow.dev/controller") == "cronjob"

        eventually(is_back, 60, "the label is back")
        assert [job["metadata"]["name"] for job in world.jobs("hello")] == [name]

    def test_replace_deletes_the_job_that_runs(self, world: World):
        world.apply("hello", "@every 3s", runs_for=600, concurrencyPolicy="Replace")
        (first,) = eventually(lambda: world.names("hello"))

        eventually(lambda: world.names("hello") not in ([], [first]), what="the next one")

        assert len(world.running("hello")) == 1
        assert first not in world.names("hello")

        def pods() -> list[str]:
            found = world.api.raw("GET", f"/api/v1/namespaces/{world.namespace}/pods").must()
            return [pod["metadata"]["labels"]["job-name"] for pod in found["items"]]

        eventually(lambda: first not in pods(), what="its pods are gone too")

    def test_no_more_jobs_run_than_the_limit_allows(self, world: World):
        world.apply("hello", "@every 1s", runs_for=600, activeLimit=2)

        eventually(lambda: world.condition("Ready", "hello") == "False/ActiveLimitReached")
        throughout(lambda: len(world.running("hello")) != 2, 3, "at the limit")
        assert len(eventually(lambda: world.events("hello", "ActiveLimitReached"))) == 1

        world.edit("hello", activeLimit=3)
        eventually(lambda: len(world.running("hello")) == 3, what="one more")


class TestHistory:
    def test_only_so_many_that_succeeded_and_that_failed_are_kept(self, world: World):
        world.apply("good", "@every 1s", successfulJobsHistoryLimit=2)
        hopeless = template(600, activeDeadlineSeconds=1)
        world.apply("bad", "@every 1s", jobTemplate=hopeless, failedJobsHistoryLimit=1)

        def kept(name: str, ending: str) -> list[str]:
            return [job["metadata"]["name"] for job in world.jobs(name) if ended(job, ending)]

        first = eventually(lambda: kept("good", "Complete"))[0]
        failed = eventually(lambda: kept("bad", "Failed"))[0]
        eventually(lambda: first not in world.names("good"), what="the oldest success is gone")
        eventually(lambda: failed not in world.names("bad"), what="the oldest failure is gone")
        for name in ("good", "bad"):
            world.edit(name, suspend=True)
            eventually(lambda name=name: not world.running(name), what="all have ended")
        eventually(lambda: len(kept("good", "Complete")) == 2)
        eventually(lambda: len(kept("bad", "Failed")) == 1)

    def test_a_job_deleted_by_hand_is_not_made_again(self, world: World, operator: Operator):
        world.apply("hello", "@every 2s")
        eventually(lambda: world.names("hello"))
        world.edit("hello", schedule="0 0 1 1 *")
        eventually(lambda: world.status("hello").get("nextScheduleTime", "").endswith("00:00Z"))
        eventually(lambda: "active" not in world.status("hello"))
        last = world.status("hello")["lastScheduleTime"]

        for name in world.names("hello"):
            world.delete(name, "Job")
        eventually(lambda: not world.names("hello"))
        operator.stop(signal.SIGKILL)
        operator.start()

        throughout(lambda: world.names("hello"), 3, "after the Job was deleted")
        assert world.status("hello")["lastScheduleTime"] == last


class TestMissing:
    def test_of_starts_missed_while_the_operator_was_down_the_newest_is_made(
        self, world: World, operator: Operator
    ):
        world.apply("hello", "@every 2s")
        eventually(lambda: world.names("hello"))
        operator.stop(signal.SIGKILL)
        before = world.names("hello")
        throughout(lambda: world.names("hello") != before, 5, "while nothing runs")
        operator.start()

        (name, *_) = eventually(lambda: [n for n in world.names("hello") if n not in before])
        assert seconds_of(name) - seconds_of(before[-1]) >= 4


class TestAhead:
    """What lies after now is no record of a start."""

    def test_a_job_dated_ahead_holds_no_start_back_and_is_named(self, world: World):
        live = world.apply("hello", "@every 2s", suspend=True)
        eventually(lambda: world.condition("Ready", "hello") == "True/Suspended")
        ahead = ["hello-9999999999999", "hello-rerun"]
        world.own(live, ahead[0], "somebody", runs_for=600)
        forever = {SCHEDULED_AT: "9999-12-31T23:59:59Z"}
        world.own(live, ahead[1], "somebody", runs_for=600, annotations=forever)
        eventually(lambda: "(and 1 more)" in world.message("DatedAhead", "hello"))
        assert any(name in world.message("DatedAhead", "hello") for name in ahead)

        world.edit("hello", suspend=False)
        eventually(lambda: set(world.names("hello")) - set(ahead), what="a start")
        eventually(lambda: world.condition("Ready", "hello") == "True/Scheduled")

        for name in ahead:
            world.delete(name, "Job")
        eventually(lambda: world.condition("DatedAhead", "hello") == "", what="nothing is ahead")

    def test_a_record_that_a_clock_ahead_has_left_is_put_right_by_itself(self, world: World):
        world.apply("hello", "@every 2s", suspend=True)
        eventually(lambda: world.condition("Ready", "hello") == "True/Suspended")
        now = SystemClock().now()
        world.record("hello", now + timedelta(days=365))

        assert len(eventually(lambda: world.events("hello", "RecordAhead"))) == 1
        tomorrow = f"{now + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"
        eventually(lambda: world.status("hello").get("lastScheduleTime", "") < tomorrow)
        world.edit("hello", suspend=False)
        (name, *_) = eventually(lambda: world.names("hello"), what="a start")
        assert now.timestamp() - 2 < seconds_of(name) <= SystemClock().now().timestamp()


class TestNames:
    def test_a_job_of_somebody_else_is_no_start_and_is_left_alone(
        self, world: World, operator: Operator
    ):
        with operator.frozen():
            live = world.apply("hello", "@every 4s")
            taken = f"hello-{int(created(live).timestamp()) + 4}"
            squatter = {**world.target(taken, "Job"), "spec": template(600)["spec"]}
            theirs = world.api.apply(squatter, "squatter").must()

        def refused() -> Object:
            status = world.status("hello")
            reasons = {c["reason"] for c in status.get("conditions", ())}
            return status if "NameTaken" in reasons else {}

        assert "lastScheduleTime" not in eventually(refused)
        assert (
            world.get(taken, "Job")["metadata"]["managedFields"][0]
            == (theirs["metadata"]["managedFields"][0])
        )

        eventually(lambda: len(world.names("hello")) > 1, what="the next start is made")
        eventually(lambda: world.condition("Ready", "hello") == "True/Scheduled")

    def test_a_name_too_long_for_its_jobs_is_refused(self, world: World):
        body = {**world.target("x" * 53), "spec": {"schedule": NEVER, "jobTemplate": template()}}

        refused = world.api.apply(body, "user")

        assert refused.status == 422
        assert "must be no more than 52 characters" in refused.body["message"]


@pytest.mark.oldest
class TestStartGuard:
    def test_a_job_carries_the_guard_until_its_start_is_on_record(
        self, world: World, nodes_audit: AuditLog
    ):
        mark = nodes_audit.mark()
        world.apply("hello", "@every 2s", startGuard=True, successfulJobsHistoryLimit=10)
        eventually(lambda: len(world.names("hello")) >= 2, what="two Jobs")
        name = world.names("hello")[0]
        eventually(lambda: "finalizers" not in world.get(name, "Job")["metadata"])

        wrote = nodes_audit.writes(mark, user=USER, namespace=world.namespace)
        begins = next(i for i, e in enumerate(wrote) if e["objectRef"]["name"] == name)
        mine = [
            entry
            for entry in wrote[begins:]
            if entry["objectRef"]["resource"] == "cronjobs" or entry["objectRef"]["name"] == name
            # Kubernetes's own controller may be quicker: then it was refused, and came again.
            if entry["responseStatus"]["code"] != HTTPStatus.CONFLICT
        ]
        made, recorded, freed = mine[:3]
        assert made["requestObject"]["metadata"]["finalizers"] == [START_GUARD]
        assert recorded["objectRef"]["subresource"] == "status"
        scheduled = made["requestObject"]["metadata"]["annotations"][SCHEDULED_AT]
        assert recorded["requestObject"]["status"]["lastScheduleTime"] == scheduled
        assert "finalizers" not in freed["requestObject"]["metadata"]
        assert freed["requestObject"]["metadata"]["uid"]
        assert freed["responseStatus"]["code"] == HTTPStatus.OK

    def test_a_job_that_outlives_its_cronjob_is_let_go(self, world: World, operator: Operator):
        """The operator died before the start was on record, and the CronJob was deleted."""
        live = world.apply("hello", "@every 1h", startGuard=True)
        operator.stop(signal.SIGKILL)
        world.own(live, "hello-1795222400", FIELD_MANAGER, finalizers=[START_GUARD])
        world.delete("hello")
        eventually(
            lambda: "deletionTimestamp" in world.get("hello-1795222400", "Job")["metadata"],
            # Kubernetes's garbage collector takes up to half a minute to notice a new kind.
            within=60,
            what="garbage collection",
        )

        operator.start()

        eventually(lambda: world.get("hello-1795222400", "Job") is None, what="the Job is gone")


class TestQuiet:
    def test_nothing_is_written_while_no_start_is_due_nor_after_a_restart(
        self, world: World, operator: Operator, nodes_audit: AuditLog
    ):
        world.apply("done", "@every 2s")
        world.apply("waiting", "0 0 1 1 *")
        world.apply("held", "* * * * *", suspend=True)
        world.apply("bad", "not a schedule")
        eventually(lambda: world.names("done"))
        world.edit("done", schedule="0 0 1 1 *")
        eventually(lambda: world.status("done").get("nextScheduleTime", "").endswith("00:00Z"))

        def told() -> bool:
            newest = world.jobs("done")[-1]
            end = newest["status"].get("completionTime")
            return bool(end) and world.status("done").get("lastSuccessfulTime") == end

        eventually(told)
        eventually(lambda: world.status("done").get("activeCount") == 0)
        for name in ("waiting", "held"):
            eventually(lambda name=name: world.condition("Ready", name).startswith("True"))
        eventually(lambda: world.condition("Stalled", "bad"))
        silence = Silence.fallen(nodes_audit, 2, user=USER, namespace=world.namespace)
        silence.kept(5, "in steady state")
        assert operator.stop() == 0
        operator.start()
        silence.kept_on(5, "after a restart")


def named(entry: Object, name: str) -> bool:
    """Return whether an entry of the audit log is about an object of that name."""
    return entry["objectRef"]["name"] == name


class TestTheWhole:
    def test_the_one_of_every_minute_ran_on_the_minute(self, every_minute: World):
        (name, *_) = eventually(lambda: every_minute.names("minutely"), within=70)

        assert seconds_of(name) % 60 == 0
        (job, *_) = every_minute.jobs("minutely")
        assert created(job).timestamp() - seconds_of(name) < 20
        eventually(lambda: ended(every_minute.jobs("minutely")[0], "Complete"))

    def test_of_more_than_a_hundred_missed_starts_the_newest_is_made_and_the_rest_are_told(
        self, every_minute: World, nodes_audit: AuditLog
    ):
        world = every_minute
        began = created(world.get("held"))
        eventually(
            lambda: SystemClock().now() - began > timedelta(seconds=105),
            within=110,
            what="more than a hundred missed starts",
        )
        mark = nodes_audit.mark()
        resumed = SystemClock().now().timestamp()

        world.edit("held", suspend=False)

        (name, *_) = eventually(lambda: world.names("held"))
        assert seconds_of(name) >= int(resumed) - 1
        (note,) = eventually(lambda: world.events("held", "TooManyMissedTimes"))
        assert note.startswith(f"more than 100 starts since {began:%Y-%m-%dT%H:%M:%SZ} were missed")
        assert world.condition("Stalled", "held") == ""

        def most() -> int:
            """The next start, a second later, ends the count: what was said in between tells."""
            wrote = nodes_audit.writes(mark, user=USER, resource="cronjobs")
            said = [e["requestObject"]["status"] for e in wrote if named(e, "held")]
            return max((status.get("missed", 0) for status in said), default=0)

        eventually(lambda: most() >= 100, what="the rest is counted")
        world.edit("held", suspend=True)

    def test_a_start_that_waits_is_not_lost_to_a_job_made_by_hand(self, every_minute: World):
        world = every_minute
        (note,) = eventually(lambda: world.events("waits", "JobAlreadyActive"), within=150)
        start = datetime.fromisoformat(note.split()[3])
        live = world.get("waits")
        by_hand = f"waits-{int(start.timestamp()) + 1}"
        eventually(lambda: SystemClock().now() > start + timedelta(seconds=2))

        world.own(live, by_hand, "somebody")
        eventually(lambda: ended(world.get(by_hand, "Job"), "Complete"))
        eventually(lambda: "lastSuccessfulTime" in world.status("waits"), what="it was seen")
        assert "lastScheduleTime" not in world.status("waits")
        world.delete("waits-running", "Job")

        eventually(lambda: world.get(f"waits-{int(start.timestamp())}", "Job"), what="the start")

    def test_no_start_was_made_twice(self, nodes_audit: AuditLog):
        made = Counter(
            (entry["objectRef"]["namespace"], entry["objectRef"]["name"])
            for entry in nodes_audit.writes(user=USER, resource="jobs")
            if entry["responseStatus"]["code"] == 201
        )

        assert len(made) > 20
        assert set(made.values()) == {1}

    def test_every_write_was_an_unforced_apply_or_a_guarded_delete(self, nodes_audit: AuditLog):
        must_be_unforced_applies(nodes_audit.writes(user=USER), FIELD_MANAGER)
