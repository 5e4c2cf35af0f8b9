"""Checks: whose Job counts, when its time is over, when another follows, and whose words are told.

The attacks here are those of somebody who may do everything with Jobs and pods but write their
status: every name, label, annotation, owner reference and field manager is theirs to choose.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from controllers.stories import (
    GREEN,
    Act,
    due,
    fails,
    first,
    later,
    lose_jobs,
    of_job,
    once,
    passes,
    play,
    spec,
    story,
    then,
)
from controllers.switching import CHECKED, MANAGER, SwitchWorld
from hedgerow.contract import Create, Keep
from hedgerow.controllers.bluegreen.checks import (
    FORGOTTEN,
    GRACE,
    JOB_CONTROLLER,
    LONG_GRACE,
    LONGEST_WORDS,
    PAUSES,
)
from hedgerow.controllers.bluegreen.scene import SETTLING
from support.objects.parts import Part

Object = dict[str, Any]
TIMEOUT = 45
COMPLETE: Object = {"conditions": [{"type": "Complete", "status": "True"}]}
FAILED: Object = {"conditions": [{"type": "Failed", "status": "True"}]}
FAILING = {"type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded"}


def checking(**check: Any) -> SwitchWorld:
    """A BlueGreen that serves Blue; the Job that checks Green runs."""
    checked = CHECKED | {"checks": [{**CHECKED["checks"][0], **check}]}
    return play(story("", checked, then(GREEN, phase="Checking", jobs=[2])))


def name_of(world: SwitchWorld) -> str:
    (told,) = world.status["checks"]
    return told["job"]


def forge(manager: str = "evil", **more: Any) -> Act:
    """Have a Job of the told name made that has completed, a copy of ours but for its uid."""

    def act(world: SwitchWorld) -> None:
        name = name_of(world)
        body = deepcopy(world.jobs.pop(name, {"spec": {"template": {}}}))
        world.make_job(name, {**body, "status": COMPLETE, **more}, manager)

    return act


def until_named(world: SwitchWorld) -> None:
    """Go on until the status names the Job that is to check the first colour, before it is."""
    while not world.status.get("checks"):
        world.do_pass()
    assert not world.jobs


def lost_answer(*, recorded: bool) -> Act:
    """Go on until the Job is created; the answer is lost, and the status `recorded` or not."""

    def act(world: SwitchWorld) -> None:
        while not world.jobs:
            desired = world.compose()
            writes = [child for child in desired.children if not isinstance(child, Keep)]
            creates = any(isinstance(child, Create) for child in writes)
            world.do_pass(cut=len(writes) if creates and not recorded else 1000)
            world.now += timedelta() if creates else desired.requeue_after or timedelta()
        world.created.clear()

    return act


def edit_job(part: str, name: str, value: object) -> Act:
    def act(world: SwitchWorld) -> None:
        [job] = world.jobs.values()
        job[part][name] = value

    return act


def forget(*names: str) -> Act:
    """Have the status lack what earlier versions did not record."""

    def act(world: SwitchWorld) -> None:
        for name in names:
            del world.status["checks"][0][name]

    return act


TAKEN = {
    "phase": "Checking",
    "ready": "False/NameTaken",
    "why_stalled": Part("Job demo-check-… exists"),
}
# Only the Job that the API server answered to our own creation passes a check. One of the told name
# counts for nothing, is named, and stays: it is somebody's.
WHOSE = (
    story("the status has the uid of the answer", CHECKED,
        then(GREEN, jobs=[2], recorded=[2], attempts=[1])),
    first("one of the told name before ours, and ours is created once it is gone", CHECKED,
        then(until_named, forge(), on="", jobs=[1], **TAKEN),
        then(lose_jobs, jobs=[2], recorded=[2]),
        then(passes, on="Blue")),
    story("one of the told name after ours failed", CHECKED,
        then(GREEN),
        then(fails),
        then(forge(), on="Blue", jobs=[3], **TAKEN)),
    story("one of the told name while ours runs", CHECKED,
        then(GREEN),
        then(forge(), on="Blue", jobs=[3], **TAKEN)),
    *(
        # It stays until the status has the other name.
        first(f"one that may be ours counts for nothing, and another follows: {lost}", CHECKED,
            once(until_named, act, passes, jobs=[1]),
            then(jobs=[2], recorded=[2], on="", ready="False/Checking"),
            then(passes, on="Blue"))
        for lost, act in (
            ("the answer is lost", lost_answer(recorded=True)),
            ("the record is lost", lost_answer(recorded=False)),
            ("it is forged", forge(MANAGER)),
        )
    ),
    *(
        story(f"an edit of our own Job neither passes nor replaces it: {edit}", CHECKED,
            then(GREEN),
            then(edit_job(*edit), jobs=[2], phase="Checking"),
            then(passes, on="Green"))
        for edit in (
            ("metadata", "annotations", {"app.demo.kakao.com/template": "forged"}),
            ("metadata", "annotations", {}),
            ("metadata", "labels", {"hedgerow.dev/controller": "another"}),
            ("metadata", "managedFields", []),
            ("spec", "suspend", True),
            ("spec", "parallelism", 7),
        )
    ),
    story("a check that has passed does not fail by a Job of its name", CHECKED,
        then(GREEN),
        then(spec(hold=True), passes),
        then(forge(status=FAILED), phase="Held")),
    story("a verdict of an earlier version counts and its Job does not", CHECKED,
        then(GREEN),
        then(forget("uid", "startTime", "attempts"), passes, jobs=[3]),
        then(spec(hold=True), passes),
        then(forget("uid"), phase="Held")),
)  # fmt: skip
# A check that never ends has failed by our own clock.
ENDS = (
    story("what it says after its time comes too late", CHECKED,
        then(GREEN),
        then(due),
        then(passes, phase="CheckFailed")),
    story("one that ended in time is not late because nobody looked", CHECKED,
        then(GREEN),
        then(later(3600), passes, on="Green")),
    story("the reason is told of one whose pods take their time to end", CHECKED,
        then(GREEN),
        then(of_job(status={"conditions": [FAILING]})),
        then(due, checked=Part("s: DeadlineExceeded"))),
    story("why it waits is told", CHECKED,
        then(GREEN),
        *[once(lose_jobs), once()] * 2,
        once(lose_jobs, why=Part("is created again after a pause"))),
)  # fmt: skip


@pytest.mark.parametrize("one", [*WHOSE, *ENDS], ids=str)
def test_each_step_shows(one):
    play(one)


def test_a_name_that_was_given_up_does_not_come_back():
    names = list[str]()
    again = [once(forge(MANAGER), lambda world: names.append(name_of(world)))] * 6
    play(first("", CHECKED, once(until_named), *again, then(on="")))

    assert len(set(names)) == len(names)


class TestEnd:
    @pytest.mark.parametrize(
        ("spec", "grace"),
        [
            ({"suspend": True}, GRACE),
            ({"managedBy": "example.com/x"}, GRACE),
            ({"managedBy": JOB_CONTROLLER}, LONG_GRACE),
            ({}, LONG_GRACE),
        ],
        ids=str,
    )
    def test_it_has_failed_when_its_time_is_over(self, spec, grace):
        job = {"spec": {**spec, "template": {"spec": {"containers": []}}}}
        world = checking(job=job, timeoutSeconds=TIMEOUT)
        wait = world.compose().requeue_after
        assert wait is not None
        assert grace < wait <= timedelta(seconds=TIMEOUT) + grace
        world.now += wait - timedelta(seconds=1)
        assert world.settle().phase == "Checking"

        world.now += timedelta(seconds=1)
        desired = world.do_pass()
        assert [event.reason for event in desired.events] == ["CheckFailed"]
        assert world.settle().phase == "CheckFailed"
        assert f"has not ended in {TIMEOUT} s" in world.why("Checked")
        assert world.compose().requeue_after is None

    def test_a_clock_that_was_ahead_makes_no_check_longer(self):
        world = checking()
        world.now -= timedelta(days=1)
        world.settle()

        wait = world.compose().requeue_after
        assert wait is not None
        assert wait <= timedelta(seconds=TIMEOUT) + LONG_GRACE


def test_of_several_that_run_the_first_is_named():
    two = [{**CHECKED["checks"][0], "name": name} for name in ("smoke", "load")]
    named = Part("check smoke has not passed yet")

    play(story("", CHECKED | {"checks": two}, then(GREEN, phase="Checking", checked=named)))


class TestPauses:
    def test_the_first_check_begins_once_the_preview_had_time_to_lead_to_its_pods(self):
        world = play(story("", CHECKED))
        GREEN(world)
        while not world.status.get("switch", {}).get("readySince"):
            world.do_pass()
        ready = world.now
        while not world.jobs:
            world.now += world.compose().requeue_after or timedelta()
            world.do_pass()

        assert world.now - ready == SETTLING

    def test_the_first_repetition_is_at_once_and_then_they_double(self):
        world = checking()
        began = [world.now]
        for _ in range(9):
            world.jobs.clear()
            world.do_pass()
            while not world.jobs:
                wait = world.compose().requeue_after
                world.now += wait or timedelta()
                world.do_pass()
            world.settle()
            began.append(world.now)
        gaps = [round((b - a).total_seconds()) for a, b in pairwise(began)]

        assert gaps == [0, 2, 4, 8, 16, 32, 64, 128, 256]

    def test_there_is_a_longest_one(self):
        world = checking()
        world.status["checks"][0]["attempts"] = 10**9
        world.jobs.clear()
        world.do_pass()
        wait = world.compose().requeue_after
        assert wait is not None

        assert wait <= timedelta(seconds=PAUSES[-1])

    def test_after_a_long_time_it_is_run_again_at_once(self):
        world = checking()
        for _ in range(6):
            world.jobs.clear()
            world.pass_time(PAUSES[-1])
            world.settle()
        world.now += FORGOTTEN
        before = world.now
        for _ in range(2):
            world.jobs.clear()
            world.settle()

        assert (world.now, len(world.jobs)) == (before, 1)


def by(uid: str) -> Callable[[str], Object]:
    """Return what says that a Job controls a pod."""
    reference = {"kind": "Job", "name": "x", "uid": uid, "controller": True}
    return lambda job: {"ownerReferences": [{**reference, "uid": uid or job}]}


class TestWords:
    """What a pod waits for is told of the pods of our Job, and harms nobody who reads it."""

    def pod(self, world: SwitchWorld, reason: str, **meta: Any) -> Object:
        labels = {
            "app.demo.kakao.com/checks": "demo",
            "batch.kubernetes.io/job-name": name_of(world),
        }
        return {
            "metadata": {"name": "p", "namespace": "ns", "labels": labels, **meta},
            "status": {"containerStatuses": [{"state": {"waiting": {"reason": reason}}}]},
        }

    @pytest.mark.parametrize(
        ("owner", "told"),
        [
            (by(""), True),
            (by("another"), False),
            (lambda _: {}, False),
            (lambda job: {"ownerReferences": [{"kind": "Job", "uid": job}]}, False),
        ],
        ids=["the Job", "another Job", "nobody", "no controller"],
    )
    def test_only_those_count_whose_controller_is_that_very_job(self, owner, told):
        world = checking()
        uid = world.status["checks"][0]["uid"]
        world.extra.append(self.pod(world, "ImagePullBackOff", **owner(uid)))

        assert ("pod p: ImagePullBackOff" in world.settle().why()) is told

    def test_a_pod_that_no_node_takes_is_told_too(self):
        world = checking()
        pod = self.pod(world, "", **by(world.status["checks"][0]["uid"])(""))
        says = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}
        world.extra.append(pod | {"status": {"phase": "Pending", "conditions": [says]}})

        assert "pod p: 0/1 nodes are available" in world.settle().why()

    @pytest.mark.parametrize(
        "words",
        [
            "\x1b]0;PWNED\x07\x1b[2J\x1b[31mred",
            "\u202e\u2066turned",
            "\u0085\u009b31m",
            "\u2028line\u2029",
            "A" * 5000,
            "\x1b" * 5000,
        ],
        ids=["control", "bidi", "C1", "lines", "long", "long when escaped"],
    )
    @pytest.mark.parametrize("who", ["a pod", "the Job"])
    def test_they_are_one_bounded_printable_line(self, who, words):
        world = checking()
        (job,) = world.jobs.values()
        if who == "a pod":
            uid = job["metadata"]["uid"]
            world.extra.append(self.pod(world, words, **by(uid)("")))
        else:
            failed = {"type": "Failed", "status": "True", "reason": words, "message": words}
            job["status"] = {"conditions": [failed]}
        world.settle()
        (told,) = world.status["checks"]

        assert told["message"].isprintable()
        assert 0 < len(told["message"]) < LONGEST_WORDS + 100


class TestJob:
    @pytest.mark.parametrize("count", ["parallelism", "completions"])
    @pytest.mark.parametrize(("given", "made"), [(1, 1), (16, 16), (17, 16), (10**6, 16)])
    def test_no_more_than_sixteen_pods_run_or_have_to_succeed(self, count, given, made):
        job = {"spec": {count: given, "template": {"spec": {"containers": []}}}}
        world = checking(job=job)
        (there,) = world.jobs.values()

        assert there["spec"][count] == made
