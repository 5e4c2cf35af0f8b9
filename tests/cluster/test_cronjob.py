"""CronJob on a real API server with controllers and a simulated node, as its users meet it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from http import HTTPStatus

import pytest

from hedgerow_testing.api import Api, Reply
from hedgerow_testing.audit_log import AuditLog, must_be_unforced_applies
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.settled import Silence
from hedgerow_testing.waiting import eventually
from support.cluster.cronjobs import (
    FIELD_MANAGER,
    SCHEDULED_AT,
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


@pytest.fixture(scope="module")
def began(nodes_audit: AuditLog) -> int:
    """The audit log's end before the operator wrote anything."""
    return nodes_audit.mark()


@pytest.fixture(scope="module")
def operator(began: int, nodes_sandbox: Sandbox, run_as: RunAs) -> Operator:
    """The operator, with its own identity and no right beyond what it needs."""
    api = Api(nodes_sandbox.kubeconfig)
    prepare(api)
    api.close()
    return run_as(nodes_sandbox, USER, "--controllers", "cronjob", normal_events=True)


@pytest.fixture
def world(operator: Operator, nodes_sandbox: Sandbox, nodes_namespace: str) -> Iterator[World]:
    """A fresh namespace with the operator at work, whatever became of it in the test before."""
    if not operator.running:
        operator.start()
    api = Api(nodes_sandbox.kubeconfig)
    yield World(api, nodes_namespace)
    api.close()


@pytest.fixture(scope="module", autouse=True)
def minutely(operator: Operator, nodes_sandbox: Sandbox) -> Iterator[World]:
    """A namespace with a CronJob whose minute passes while the other tests do what they do."""
    api = Api(nodes_sandbox.kubeconfig)
    world = World(api, api.namespace("every-minute"))
    world.apply("minutely", "*/1 * * * *")
    yield world
    api.raw("DELETE", f"/api/v1/namespaces/{world.namespace}")
    api.close()


class TestRules:
    """What the definition has the server refuse."""

    @pytest.mark.parametrize(
        ("name", "spec", "said"),
        [
            ("x" * 53, {}, "the name must be no more than 52 characters"),
            ("zoned", {"schedule": "TZ=UTC @daily", "timeZone": "UTC"}, "the zone is given twice"),
        ],
        ids=["name", "zone"],
    )
    def test_what_no_schema_can_say_is_refused(self, minutely: World, name, spec, said):
        """Fact: the server evaluates the definition's rules on names and zones."""
        refused = tried(minutely, name, **spec)

        assert refused.status == HTTPStatus.UNPROCESSABLE_ENTITY
        assert said in refused.body["message"]

    def test_the_longest_name_and_one_zone_are_taken(self, minutely: World):
        """Fact: the server's verdict on the longest name."""
        assert tried(minutely, "x" * 52, timeZone="UTC").ok


def tried(world: World, name: str, **spec: str) -> Reply:
    """Return what the server answers when a CronJob is applied as a dry run."""
    full = {"schedule": "@daily", "jobTemplate": template(), **spec}
    return world.api.apply({**world.target(name), "spec": full}, "user", dry_run=True)


class TestStarting:
    def test_every_start_gets_one_job_named_after_its_second(self, world: World):
        """Fact: the Job controller runs, completes and fails what we create."""
        # Of starts that are missed only the latest is made up for: the pace leaves room for none.
        live = world.apply("hello", "@every 3s", successfulJobsHistoryLimit=10)
        hopeless = template(600)
        hopeless["spec"]["activeDeadlineSeconds"] = 1
        world.apply("bad", "@every 3s", jobTemplate=hopeless)

        eventually(lambda: len(world.names("hello")) >= 2, what="two Jobs")
        names = world.names("hello")
        first = int(created(live).timestamp()) + 3
        assert [seconds_of(name) for name in names[:2]] == [first, first + 3]
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

        eventually(lambda: any(ended(job, "Failed") for job in world.jobs("bad")), what="failed")
        last = eventually(lambda: world.status("hello").get("lastScheduleTime"))
        for name, limit in (("hello", "successful"), ("bad", "failed")):
            world.edit(name, schedule="0 0 1 1 *", **{f"{limit}JobsHistoryLimit": 0})
        for name in ("hello", "bad"):
            eventually(lambda name=name: not world.names(name), what="none of what ended is kept")
        assert world.status("hello")["lastScheduleTime"] >= last


class TestQuiet:
    def test_nothing_is_written_while_no_start_is_due_nor_after_a_restart(
        self, world: World, operator: Operator, nodes_audit: AuditLog
    ):
        """Fact: how the server respells and fills in CronJobs and Jobs."""
        world.apply("waiting", "0 0 1 1 *")
        world.apply("held", "* * * * *", suspend=True)
        world.apply("bad", "not a schedule")
        for name in ("waiting", "held"):
            eventually(lambda name=name: world.condition("Ready", name).startswith("True"))
        eventually(lambda: world.condition("Stalled", "bad") == "True/UnparseableSchedule")
        silence = Silence.fallen(nodes_audit, 2, user=USER, namespace=world.namespace)
        assert operator.stop() == 0
        operator.start()
        silence.kept_on(2, "after a restart")


def test_one_of_every_minute_starts_on_the_minute(minutely: World):
    """Fact: the clocks of the operator and of the server as time passes."""
    (name, *_) = eventually(lambda: minutely.names("minutely"), 70, "its minute")

    assert seconds_of(name) % 60 == 0
    (job, *_) = minutely.jobs("minutely")
    assert created(job).timestamp() - seconds_of(name) < 20


def test_every_write_was_an_unforced_apply_or_a_guarded_delete(began: int, nodes_audit: AuditLog):
    """Fact: the server's audit log has every write that reached it."""
    must_be_unforced_applies(nodes_audit.writes(began, user=USER), FIELD_MANAGER)
