"""Meters: what is counted when, under names that Prometheus expects, in bounded numbers."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import anyio
import pytest
from prometheus_client import generate_latest

from faults.checked import DEMO
from faults.scenario import Step
from hedgerow.contract import Key, Lag
from hedgerow.controllers.cronjob import controller as cronjob
from hedgerow.kube import errors
from hedgerow.runtime.meters import ACTIONS, MANAGERS, OTHER, OUTCOMES, Meter, Meters
from hedgerow_schemas.base import Status
from hedgerow_schemas.builtin import Deployment
from hedgerow_testing.virtual import EPOCH
from runtime.bluegreens import (
    CREATED,
    claims,
    declare,
    delete,
    play_row,
    row,
    step,
    take_image,
)
from runtime.clockwork import MINUTE, Clockwork, started
from runtime.scenes import IMAGE, refuse
from runtime.shop import Shop, quiet
from runtime.stepwise import in_world
from runtime.world import World, pods

LABELS = {
    "action", "code", "controller", "le", "manager", "outcome", "reason", "resource", "verb",
    "version",
}  # fmt: skip
CONFLICT = errors.Conflict("theirs", causes=[errors.Cause("f:image", "helm", "held")])


def value(meters: Meters, name: str, /, **labels: str) -> float | None:
    return meters.registry.get_sample_value(f"hedgerow_{name}", labels)


def of_bluegreen(world: World | Shop, name: str, **labels: str) -> float:
    found = value(world.meters, name, controller="bluegreen", **labels)
    return 0 if found is None else found


@pytest.fixture
def meters() -> Meters:
    return Meters("1.2.3")


@pytest.fixture
def meter(meters: Meters) -> Meter:
    return meters.of_controller("shop")


class TestNames:
    def test_they_follow_the_conventions(self, meters: Meters) -> None:
        found = [m for m in meters.registry.collect() if m.name.startswith("hedgerow_")]

        assert len(found) > 15
        for metric in found:
            assert metric.documentation.endswith("."), metric.name
            timed = metric.type == "histogram"
            assert metric.name.endswith("_seconds") == (timed or "lag" in metric.name), metric.name

    def test_labels_are_few_and_known(self, meters: Meters, meter: Meter) -> None:
        meters.exchanged("get", 200, 0.1)
        meter.rewatched(Deployment.api, "ended")
        meter.contest(("ns", "a"), ["helm"])
        samples = [s for m in meters.registry.collect() for s in m.samples]
        used = {label for s in samples if s.name.startswith("hedgerow_") for label in s.labels}

        assert used <= LABELS

    def test_what_python_and_the_process_use_is_told_by_a_running_operator(self, meters) -> None:
        told = generate_latest(meters.registry).decode()

        assert 'hedgerow_build_info{version="1.2.3"} 1.0' in told
        assert "process_resident_memory_bytes" in told
        assert "python_gc_collections_total" in told

    def test_there_is_no_second_series_for_when_a_series_began(self, meters, meter) -> None:
        assert b"_created{" not in generate_latest(meters.registry)

    def test_two_operators_in_one_process_do_not_share_them(self, meter: Meter) -> None:
        meter.wrote("created")

        assert value(Meters(), "apply_total", controller="shop", action="created") is None


class TestSeries:
    def test_are_there_at_zero_before_anything_happened(self, meters: Meters, meter: Meter) -> None:
        for outcome in OUTCOMES:
            assert value(meters, "reconcile_total", controller="shop", outcome=outcome) == 0
        for action in ACTIONS:
            assert value(meters, "apply_total", controller="shop", action=action) == 0
        assert value(meters, "workqueue_retries_total", controller="shop") == 0
        assert value(meters, "leader") == 0

    def test_name_so_many_field_managers_and_no_more(self, meters: Meters, meter: Meter) -> None:
        crowd = [f"manager-{number}" for number in range(MANAGERS + 5)]
        meter.contest(("ns", "a"), crowd)
        meter.conflicted(crowd)
        meter.claimed(crowd)

        for name in ("contested_fields", "conflicts", "forced_claims"):
            told = [m for m in meters.registry.collect() if m.name == f"hedgerow_{name}"]
            samples = {s.labels["manager"]: s.value for s in told[0].samples}
            assert len(samples) == MANAGERS + 1
            assert samples[OTHER] == 5

    def test_a_field_that_nobody_owns_is_held_by_somebody_unknown(self, meters, meter) -> None:
        meter.conflicted([""])

        assert value(meters, "conflicts_total", controller="shop", manager="unknown") == 1


class TestContested:
    def held(self, meters: Meters, manager: str) -> float | None:
        return value(meters, "contested_fields", controller="shop", manager=manager)

    def test_fields_of_all_resources_are_added_up(self, meters: Meters, meter: Meter) -> None:
        meter.contest(("ns", "a"), ["helm", "helm", "kubectl"])
        meter.contest(("ns", "b"), ["helm"])

        assert (self.held(meters, "helm"), self.held(meters, "kubectl")) == (3, 1)

    def test_a_resource_counts_as_it_is_now(self, meters: Meters, meter: Meter) -> None:
        meter.contest(("ns", "a"), ["helm", "helm"])
        meter.contest(("ns", "a"), ["kubectl", "helm"])
        meter.contest(("ns", "a"), ["kubectl", "helm"])

        assert (self.held(meters, "helm"), self.held(meters, "kubectl")) == (1, 1)

    def test_what_is_over_is_taken_off_again(self, meters: Meters, meter: Meter) -> None:
        meter.contest(("ns", "a"), ["helm"])
        meter.contest(("ns", "b"), ["helm"])
        meter.contest(("ns", "a"), ())

        assert self.held(meters, "helm") == 1


class TestStarts:
    @pytest.fixture
    def meter(self, meters: Meters) -> Meter:
        return meters.of_controller("cronjob", cronjob.CONTROLLER.lag)

    def job(self, scheduled: str) -> Any:
        notes = {"batch.tutorial.kubebuilder.io/scheduled-at": scheduled}
        return {"metadata": {"name": "x", "annotations": notes}}

    def test_the_lag_is_that_between_the_time_noted_and_the_creation(self, meters, meter) -> None:
        meter.created(self.job("2026-01-01T12:00:00Z"), EPOCH + timedelta(seconds=1.5))

        assert value(meters, "cronjob_start_lag_seconds_count") == 1
        assert value(meters, "cronjob_start_lag_seconds_sum") == 1.5

    def test_a_clock_behind_makes_no_lag_below_none(self, meters: Meters, meter: Meter) -> None:
        meter.created(self.job("2026-01-01T12:00:00Z"), EPOCH - timedelta(seconds=1))

        assert value(meters, "cronjob_start_lag_seconds_sum") == 0

    @pytest.mark.parametrize("child", [{"metadata": {"name": "x"}}, None])
    def test_what_is_not_scheduled_has_none(self, meters, meter, child) -> None:
        meter.created(child or self.job("soon"), EPOCH)

        assert value(meters, "cronjob_start_lag_seconds_count") == 0


class TestMissed:
    def test_all_resources_are_added_up_until_nothing_is_known_of_one(self, meters: Meters) -> None:
        late = Lag("late", "h", lambda _: None, lambda status: status.observed_generation or 0)
        meter = meters.of_controller("shop", late)
        assert value(meters, "late_missed") == 0

        for name, missed in (("a", 3), ("b", 4), ("a", 5)):
            meter.miss(Key("n", name), Status(observed_generation=missed))
        assert value(meters, "late_missed") == 9

        meter.miss(Key("n", "a"), None)
        assert value(meters, "late_missed") == 4

    def test_without_a_word_about_it_there_is_no_metric(self, meters: Meters) -> None:
        meters.of_controller("shop", Lag("late", "h", lambda _: None)).miss(Key("n", "a"), Status())

        assert value(meters, "late_missed") is None


class TestProcess:
    def test_requests_count_by_verb_and_code(self, meters: Meters) -> None:
        meters.exchanged("apply", 409, 0.25)
        meters.exchanged("apply", 0, 10)

        assert value(meters, "api_requests_total", verb="apply", code="409") == 1
        assert value(meters, "api_requests_total", verb="apply", code="<error>") == 1
        assert value(meters, "api_request_duration_seconds_sum", verb="apply") == 10.25

    def test_leading_is_asked_for_when_it_is_told(self, meters: Meters) -> None:
        leading = [False]
        meters.leads(lambda: leading[0])
        before = value(meters, "leader")
        leading[0] = True

        assert (before, value(meters, "leader")) == (0, 1)

    def test_the_lag_of_the_loop_is_the_last_one(self, meters: Meters) -> None:
        meters.beat(0.5)
        meters.beat(0.25)

        assert value(meters, "loop_lag_seconds") == 0.25


@pytest.mark.anyio
class TestPasses:
    async def test_what_was_done_is_counted(self) -> None:
        shop = Shop()
        shop.world.apply()
        async with shop.open():
            await quiet()

            assert of_bluegreen(shop, "apply_total", action="created") == 3
            assert of_bluegreen(shop, "reconcile_total", outcome="success") >= 1
            assert of_bluegreen(shop, "reconcile_duration_seconds_count") >= 1
            assert of_bluegreen(shop, "workqueue_queue_duration_seconds_count") >= 1
            assert of_bluegreen(shop, "workqueue_depth") == 0
            assert of_bluegreen(shop, "cache_objects", resource="deployments.apps") == 2
            assert of_bluegreen(shop, "cache_objects", resource="services") == 1

    async def test_a_pass_without_an_answer_is_put_off_and_retried(self) -> None:
        shop = Shop()
        shop.world.apply()
        refuse(shop, errors.Unreachable("connection refused", sent=False))
        async with shop.open():
            await quiet()

        assert of_bluegreen(shop, "reconcile_total", outcome="put_off") == 1
        assert of_bluegreen(shop, "workqueue_retries_total") == 1

    async def test_a_bug_of_our_own_is_a_failed_pass(self) -> None:
        def compose(*_: Any) -> Any:
            raise ZeroDivisionError

        shop = Shop(compose=compose)
        shop.world.apply()
        async with shop.open():
            await quiet()

        assert of_bluegreen(shop, "reconcile_total", outcome="failed") == 1

    async def test_what_is_forbidden_is_a_pass_to_retry(self) -> None:
        shop = Shop()
        shop.world.apply()
        refuse(shop, errors.Forbidden("not yours"), kind="Service")
        async with shop.open():
            await quiet()

        assert of_bluegreen(shop, "reconcile_total", outcome="retry") == 1

    async def test_a_watch_that_fails_is_counted_with_its_reason(self) -> None:
        shop = Shop()
        shop.cluster.broken = {"Deployment": errors.Forbidden("not yours")}
        async with shop.open():
            await quiet()

            labels = {"resource": "deployments.apps", "reason": "forbidden"}
            assert of_bluegreen(shop, "watch_restarts_total", **labels) == 1
            assert shop.waiting() == "bluegreen waits for deployments.apps"

    async def test_a_runner_whose_caches_are_filled_waits_for_nothing(self) -> None:
        shop = Shop("default", "other")
        assert "services in default, services in other" in shop.waiting()
        async with shop.open():
            await quiet()
            assert shop.waiting() == ""

    async def test_time_in_the_queue_is_that_from_ready_to_handed_out(self) -> None:
        world = World()
        world.life.look(("default", "demo"))
        world.server.now += 7
        await world.work()

        assert of_bluegreen(world, "workqueue_queue_duration_seconds_sum") == 7


CLAIMED = claims(f"Deployment/*: {IMAGE}")
GRACEFUL = declare(blueSpec=pods("blue", terminationGracePeriodSeconds=7))
BEHIND = step(take_image(), declare(blueSpec=pods("blue", "mine:2")), lag="BlueGreen")
COUNTED: dict[str, tuple[Iterable[Step], dict[str, float]]] = {
    "what others hold": ((CREATED, step(take_image())), {"contested_fields manager=helm": 1}),
    "until the resource is gone": (
        (CREATED, step(take_image()), step(delete(DEMO))),
        {"contested_fields manager=helm": 0},
    ),
    "a refused write with who was in its way": (
        (CREATED, BEHIND),
        {"apply_total action=conflicted": 1, "conflicts_total manager=helm": 1},
    ),
    "a refused status is no write to a child": (
        (step(in_world(lambda world: refuse(world, CONFLICT, "demo/status", times=1)), declare()),),
        {"apply_total action=conflicted": 0, "conflicts_total manager=helm": 1},
    ),
    "a claim with who had the field": (
        (CREATED, step(take_image()), step(CLAIMED)),
        {"forced_claims_total manager=helm": 1},
    ),
    "a field given up is a release": (
        (CREATED, step(GRACEFUL), step(declare())),
        {"apply_total action=configured": 1, "apply_total action=released": 1},
    ),
    "what is pruned is deleted": (
        (CREATED, step(declare(greenSpec=None))),
        {"apply_total action=deleted": 1},
    ),
}
"""What is counted, by the metric and its label, after which steps."""


@pytest.mark.anyio
@pytest.mark.parametrize("name", COUNTED)
async def test_what_is_counted(name: str) -> None:
    steps, wanted = COUNTED[name]
    world = await play_row(row(name, *steps))

    found: dict[str, float] = {}
    for line in wanted:
        metric, _, label = line.partition(" ")
        found[line] = of_bluegreen(world, metric, **dict([label.split("=")]))
    assert found == wanted


@pytest.mark.anyio
class TestMissedStarts:
    async def test_starts_that_are_missed_in_a_row_are_counted_until_the_resource_is_gone(self):
        world = await started(concurrencyPolicy="Forbid")
        counted: list[float | None] = []
        for _ in range(5):
            await world.live_through(MINUTE)
            counted.append(value(world.meters, "cronjob_start_lag_missed"))

        assert counted == [0, 0, 0, 3, 4]
        assert world.condition("Ready") == "False/JobAlreadyActive"
        world.delete("CronJob", "demo")
        await world.settle()
        assert value(world.meters, "cronjob_start_lag_missed") == 0

    async def test_and_no_longer_once_the_job_has_ended(self):
        world = await started(concurrencyPolicy="Forbid")
        await world.live_through(5 * MINUTE)
        world.end_job(world.made[-1])
        world.deliver()
        await world.work()

        assert world.condition("Ready") == "True/Scheduled"
        assert value(world.meters, "cronjob_start_lag_missed") == 0

    async def test_a_start_is_measured_where_its_job_is_made(self) -> None:
        world: Clockwork = await started()
        before = value(world.meters, "cronjob_start_lag_seconds_count")
        world.pass_time(63)
        await world.work()

        assert before == 0
        assert value(world.meters, "cronjob_start_lag_seconds_count") == 1
        assert value(world.meters, "cronjob_start_lag_seconds_sum") == 3


@pytest.mark.anyio
class TestLogs:
    async def test_every_line_of_a_pass_names_it(self) -> None:
        shop = Shop()
        shop.world.apply()
        async with shop.open():
            await quiet()
            shop.world.apply("other")
            shop.cluster.wake()
            await quiet()

        lines = shop.logged("created")
        uid = shop.world.the("BlueGreen")["metadata"]["uid"]
        mine = [line for line in lines if line["object"] == "default/demo"]
        named = ("controller", "kind", "object", "uid")
        assert {tuple(line[n] for n in named) for line in mine} == {
            ("bluegreen", "BlueGreen", "default/demo", uid)
        }
        assert [line["child"].partition("/")[0] for line in mine].count("Deployment") == 2
        numbers = {line["object"]: line["pass_id"] for line in lines}
        assert len(set(numbers.values())) == len(numbers) == 2

    async def test_lines_outside_of_a_pass_name_none(self) -> None:
        shop = Shop()
        shop.world.apply()
        async with shop.open():
            await quiet()
            shop.cluster.broken = {"Service": errors.Forbidden("not yours")}
            shop.cluster.wake()
            await anyio.sleep(1)

        (line,) = shop.logged("watch in trouble")
        assert "pass_id" not in line
