"""Any interleaving of time, edits, lag, loss and crashes starts nothing twice."""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from hedgerow.kube.errors import Forbidden, Unreachable
from hedgerow_testing.memory.answers import Refused
from hedgerow_testing.memory.cluster import Sent
from hedgerow_testing.virtual import run
from runtime.clockwork import (
    CRONJOBS,
    MINUTE,
    Clockwork,
    settled,
    standstill,
    started,
)
from runtime.ledger import Ledger
from runtime.world import Crash, calm
from support.objects import generated

Object = dict[str, Any]

pytestmark = pytest.mark.anyio


def step(name: str, *args: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(st.just(name), *args)


which = st.sampled_from([-1, -1, 0, 1])
requests = st.integers(0, 3)
JOBS = st.one_of(
    step("end", which, st.sampled_from(["Complete", "Failed"])),
    step("delete", which),
    step("delete", which),
)
EDITS = st.one_of(
    step("edit", st.fixed_dictionaries({"suspend": st.booleans()})),
    step(
        "edit",
        st.fixed_dictionaries(
            {"concurrencyPolicy": st.sampled_from(["Allow", "Forbid", "Replace"])}
        ),
    ),
    step("edit", st.fixed_dictionaries({"startingDeadlineSeconds": st.sampled_from([0, 30, 90])})),
    step("edit", st.sampled_from([{"schedule": "*/2 * * * *"}, {"schedule": "@every 45s"}])),
    step("edit", st.fixed_dictionaries({"timeZone": st.sampled_from(["Asia/Seoul", None])})),
)
LIMITS = step(
    "edit",
    st.fixed_dictionaries(
        {},
        optional={
            "successfulJobsHistoryLimit": st.integers(0, 1),
            "failedJobsHistoryLimit": st.integers(0, 1),
        },
    ),
)
TOUCHES = step("touch", st.sampled_from(["1", "2"]))
WATCHES = st.one_of(
    step("deliver", st.integers(1, 4), st.sampled_from(["", "CronJob", "Job"])),
    step("lose", st.sampled_from(["", "CronJob", "Job"])),
)
TIME = st.one_of(
    step("live", st.sampled_from([1, 30, 60, 61, 150])),
    step("live", st.sampled_from([60, 61])),
    step("wait", st.sampled_from([1, 30, 60, 61, 150])),
    step("work"),
)
CRASHES = step("crash", requests, st.sampled_from(["before", "after"]), st.booleans())
FAULTS = st.one_of(
    step("restart"),
    CRASHES,
    step("lose_answer", requests, st.booleans()),
    step("lose_request", requests),
)


def meanwhile(*acts: st.SearchStrategy[tuple[Any, ...]]) -> st.SearchStrategy[tuple[Any, ...]]:
    """Something that happens between two requests of a pass, told at once or later."""
    return step(
        "meanwhile", requests, st.one_of(*acts), st.sampled_from(["", "CronJob", "Job", "all"])
    )


def stories(*steps: st.SearchStrategy[tuple[Any, ...]]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.one_of(*steps), max_size=20)


ANYTHING = (TIME, TIME, FAULTS, WATCHES, JOBS, JOBS, EDITS, LIMITS, TOUCHES)
ALL = stories(*ANYTHING, meanwhile(JOBS, EDITS, TOUCHES), meanwhile(JOBS))


class Story:
    """One example: a CronJob, its Jobs, and the operator, step by step."""

    def __init__(self, world: Clockwork) -> None:
        self.world = world
        self.ledger = Ledger(world.server)
        self.spec: Object = {}

    async def tell(self, name: str, *args: Any) -> None:
        world = self.world
        match name, args:
            case "live", (seconds,):
                await self.survive(world.live_through(seconds))
            case "wait", (seconds,):
                world.pass_time(seconds)
            case "work", ():
                await self.survive(world.work())
            case "deliver", (most, kind):
                world.deliver(most, kind)
            case "lose", (kind,):
                world.lose_and_relist(kind)
            case "restart", ():
                self.restart()
            case _:
                await self.upset(name, *args)

    async def upset(self, name: str, *args: Any) -> None:
        """Do something around one of the requests to come, or at once."""
        world = self.world
        match name, args:
            case "crash", (number, when, gone):
                world.during(number, lambda: self.crash(gone), when=when)
            case "lose_answer", (number, gone):
                self.lose_answer(number, gone)
            case "lose_request", (number,):
                world.during(number, _unreachable, when="before")
            case "meanwhile", (number, act, told):
                world.during(number, lambda: self.meanwhile(act, told))
            case _:
                self.act(name, *args)
                return
        await self.survive(world.live_through(MINUTE))

    async def survive(self, doing: Any) -> None:
        try:
            await doing
        except Crash:
            self.restart()

    def restart(self) -> None:
        self.ledger.process_ends()
        self.world.restart()

    def crash(self, gone: bool) -> None:
        """End the process; the newest Job may be gone before the next one begins."""
        if gone:
            self.act("delete", -1)
        raise Crash

    def lose_answer(self, number: int, gone: bool) -> None:
        asked = -1

        async def hook(sent: Sent) -> None:
            nonlocal asked
            asked += 1
            if asked == number:
                self.ledger.answer_is_lost(sent.name)
                if gone:
                    self.act("delete", -1)
                raise Unreachable("no answer", sent=True)

        self.world.during(-1, lambda: None)
        self.world.cluster.after = hook

    def meanwhile(self, act: tuple[Any, ...], told: str) -> None:
        self.act(*act)
        if told:
            self.world.deliver(kind=told.replace("all", ""))

    def act(self, name: str, *args: Any) -> None:
        world = self.world
        # An edit of what is not there, or that the server refuses, is no edit.
        with suppress(Refused, IndexError):
            match name, args:
                case "end", (index, how):
                    world.end_job(world.jobs[index], how)
                case "delete", (index,):
                    world.delete("Job", world.jobs[index])
                case "edit", (change,):
                    self.spec |= change
                    world.apply(**self.spec)
                case "touch", (value,):
                    world.edit("CronJob", "demo", {"metadata": {"annotations": {"t": value}}})

    async def end(self) -> None:
        """Let the watches catch up, and then time stand still."""
        self.world.cluster.before = self.world.cluster.after = calm
        await standstill(self.world)
        self.ledger.process_ends()
        await settled(self.world)


def _unreachable() -> None:
    raise Unreachable("no route", sent=False)


async def told(steps: list[Any], **spec: Any) -> Story:
    story = Story(await started(**spec))
    story.spec = spec
    for name, *args in steps:
        await story.tell(name, *args)
    await story.end()
    assert story.world.failures == []
    assert not any(sent.force for sent in story.world.cluster.writes)
    for said in story.ledger.records().values():
        assert said == sorted(said)
    return story


class TestGenerated:
    async def test_a_template_as_programs_in_go_print_it_is_applied_and_started(self):
        world = await started(jobTemplate=generated.JOB_TEMPLATE)
        await world.live_through(MINUTE)

        assert world.made == [world.job(1)]

    async def test_a_null_in_place_of_a_default_is_none(self):
        world = await started(suspend=None)

        assert world.the("CronJob")["spec"]["suspend"] is False

    async def test_a_null_elsewhere_is_refused_as_the_api_server_does(self):
        pod = {**generated.POD, "nodeSelector": None}
        with pytest.raises(Refused, match="null"):
            await started(jobTemplate={"spec": {"template": {"spec": pod}}})


class TestUnrecorded:
    async def test_a_start_is_not_made_again_though_the_status_could_not_record_it(self):
        is_broken = False

        def compose(*given: Any) -> Any:
            if is_broken:
                raise RuntimeError("a defect, for a while")
            return CRONJOBS.compose(*given)

        async def hook(sent: Sent) -> None:
            nonlocal is_broken
            is_broken = is_broken or str(sent).startswith("apply Job")

        world = Clockwork(how=dataclasses.replace(CRONJOBS, compose=compose))
        world.apply()
        world.cluster.after = hook
        await world.live_through(70)
        world.deliver()
        await world.work()
        assert world.condition("Ready") == "False/ComposeFailed"
        world.delete("Job", world.jobs[0])
        world.deliver()
        world.cluster.after, is_broken = calm, False
        await world.live_through(15)

        assert len(world.made) == 1


class TestLostAnswers:
    async def test_with_forbid_nothing_starts_beside_a_job_of_which_no_answer_came(self):
        world = await started(concurrencyPolicy="Forbid")
        lost: list[str] = []

        async def hook(sent: Sent) -> None:
            if sent.writes and sent.api.kind == "Job" and not lost:
                lost.append(sent.name)
                world.pass_time(MINUTE)  # it took as long as until the next start
                raise Unreachable("no answer", sent=True)

        world.cluster.after = hook
        await world.live_through(3 * MINUTE)  # no watch tells of the Job

        assert world.made == lost == [world.job(1)]
        assert world.last == world.at(MINUTE)

    async def test_without_the_right_to_look_what_the_watch_tells_stands(self):
        world = await started()

        async def lose(sent: Sent) -> None:
            if sent.writes and sent.api.kind == "Job":
                raise Unreachable("no answer", sent=True)

        async def forbid(sent: Sent) -> None:
            if sent.verb == "read":
                raise Forbidden("may not", code=403)

        world.cluster.after, world.cluster.before = lose, forbid
        await world.live_through(MINUTE)
        world.cluster.after = calm
        world.deliver()
        await world.live_through(MINUTE)

        assert world.made == [world.job(1), world.job(2)]
        assert world.failures == []


class TestAnyStory:
    @given(ALL)
    def test_no_start_is_made_twice_but_through_the_one_hole(self, steps):
        async def example() -> None:
            story = await told(steps)
            doubles = story.ledger.doubles()
            event(f"doubles: {len(doubles)}")
            assert [double for double in doubles if not story.ledger.is_excused(double)] == []

        run(example)

    @given(stories(TIME, WATCHES, JOBS, TOUCHES, LIMITS, meanwhile(JOBS, TOUCHES, LIMITS)))
    def test_without_faults_each_start_is_made_exactly_once(self, steps):
        async def example() -> None:
            alive = [("live", *args) if name == "wait" else (name, *args) for name, *args in steps]
            story = await told(alive)
            world = story.world
            passed = (world.server.now - world.began) // MINUTE
            assert world.made == [world.job(minute) for minute in range(1, passed + 1)]

        run(example)

    @settings(max_examples=settings().max_examples // 2)
    @given(
        st.sampled_from(["Forbid", "Replace"]),
        stories(
            TIME,
            WATCHES,
            JOBS,
            TOUCHES,
            step("restart"),
            CRASHES,
            step("lose_answer", requests, st.just(False)),
            meanwhile(JOBS, TOUCHES),
        ),
    )
    def test_no_job_begins_beside_one_that_has_not_ended(self, policy, steps):
        async def example() -> None:
            story = await told(steps, concurrencyPolicy=policy)
            assert story.ledger.companions() == []

        run(example)
