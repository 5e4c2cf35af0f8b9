"""Checks: whose Job counts, when its time is over, when another follows, and whose words are told.

The attacks here are those of somebody who may do everything with Jobs and pods but write their
status: every name, label, annotation, owner reference and field manager is theirs to choose.
"""

from __future__ import annotations

from copy import deepcopy
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

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

if TYPE_CHECKING:
    from collections.abc import Callable

Object = dict[str, Any]
TIMEOUT = 45
COMPLETE: Object = {"conditions": [{"type": "Complete", "status": "True"}]}


def checking(**check: Any) -> SwitchWorld:
    """A BlueGreen that serves Blue; the Job that checks Green runs."""
    world = SwitchWorld(**CHECKED).settle().finish().settle()
    world.spec["checks"][0] |= check
    world.spec["routeTo"] = "Green"
    assert world.settle().phase == "Checking"
    assert len(world.jobs) == 1
    return world


def name_of(world: SwitchWorld) -> str:
    (told,) = world.status["checks"]
    return told["job"]


def forged(world: SwitchWorld, manager: str = "evil", **more: Any) -> str:
    """Somebody makes a Job of the told name that has completed, a copy of ours but for its uid."""
    name = name_of(world)
    body = deepcopy(world.jobs.pop(name, {"spec": {"template": {}}}))
    world.make_job(name, {**body, "status": COMPLETE, **more}, manager)
    return name


def gate(**spec: Any) -> SwitchWorld:
    """A BlueGreen whose status names the Job that is to check its first colour, before it is."""
    world = SwitchWorld(**CHECKED | spec)
    while not world.status.get("checks"):
        world.do_pass()
    assert not world.jobs
    return world


def created(world: SwitchWorld, *, recorded: bool) -> None:
    """Go on until the Job is created; the answer is lost, and the status `recorded` or not."""
    while not world.jobs:
        desired = world.compose()
        writes = [child for child in desired.children if not isinstance(child, Keep)]
        creates = any(isinstance(child, Create) for child in writes)
        world.do_pass(cut=len(writes) if creates and not recorded else 1000)
        world.now += timedelta() if creates else desired.requeue_after or timedelta()
    world.created.clear()


class TestWhoseJob:
    """Only the Job that the API server answered to our own creation passes a check."""

    def test_the_status_has_the_uid_of_the_answer(self):
        world = checking()
        (told,) = world.status["checks"]

        assert told["uid"] == world.jobs[told["job"]]["metadata"]["uid"]
        assert told["attempts"] == 1

    @pytest.mark.parametrize("when", ["before ours", "after ours failed", "while ours runs"])
    def test_one_of_the_told_name_counts_for_nothing_and_is_named(self, when):
        world = gate() if when == "before ours" else checking()
        if when == "after ours failed":
            world.finish("Failed").settle()
        name = forged(world)
        routed = world.selected
        world.settle()

        assert (world.selected, world.phase) == (routed, "Checking")
        assert world.ready(reason=True) == "NameTaken"
        assert f"Job {name} exists" in world.why("Stalled")
        assert list(world.jobs) == [name]  # It is somebody's, and stays.

    def test_once_it_is_gone_ours_is_created(self):
        world = gate()
        name = forged(world)
        world.settle()
        del world.jobs[name]
        world.settle()

        assert list(world.jobs) == [name]
        assert world.finish().settle().selected == ("Blue",)

    @pytest.mark.parametrize("lost", ["the answer", "the record", "nothing: it is forged"])
    def test_one_that_may_be_ours_counts_for_nothing_and_the_check_has_another(self, lost):
        world = gate()
        if lost == "nothing: it is forged":
            forged(world, MANAGER)
        else:
            created(world, recorded=lost == "the answer")
        (first,) = world.finish().jobs
        world.do_pass()
        assert first in world.jobs  # It stays until the status has the other name.
        world.settle()

        (second,) = world.jobs
        assert (second != first, name_of(world)) == (True, second)
        assert (world.selected, world.ready(reason=True)) == ((), "Checking")
        assert world.finish().settle().selected == ("Blue",)

    def test_a_name_that_was_given_up_does_not_come_back(self):
        world = gate()
        names = [forged(world, MANAGER)]
        for _ in range(5):
            world.do_pass()
            names.append(forged(world, MANAGER))

        assert len(set(names)) == len(names)
        assert world.selected == ()

    @pytest.mark.parametrize(
        ("place", "value"),
        [
            (("metadata", "annotations"), {"app.demo.kakao.com/template": "forged"}),
            (("metadata", "annotations"), {}),
            (("metadata", "labels"), {"hedgerow.dev/controller": "another"}),
            (("metadata", "managedFields"), []),
            (("spec", "suspend"), True),
            (("spec", "parallelism"), 7),
        ],
        ids=str,
    )
    def test_an_edit_of_our_own_job_neither_passes_nor_replaces_it(self, place, value):
        world = checking()
        (name,) = world.jobs
        world.jobs[name][place[0]][place[1]] = value
        world.settle()
        assert (list(world.jobs), world.phase) == ([name], "Checking")

        assert world.finish().settle().selected == ("Green",)

    def test_a_check_that_has_passed_does_not_fail_by_a_job_of_its_name(self):
        world = checking()
        world.spec["hold"] = True
        world.finish().settle()
        forged(world, status={"conditions": [{"type": "Failed", "status": "True"}]})

        assert world.settle().phase == "Held"

    def test_a_verdict_of_an_earlier_version_counts_and_its_job_does_not(self):
        """They recorded no uid."""
        world = checking()
        (first,) = world.jobs
        for name in ("uid", "startTime", "attempts"):
            del world.status["checks"][0][name]
        world.finish().settle()
        (second,) = world.jobs
        assert second != first

        world.spec["hold"] = True
        world.finish().settle()
        del world.status["checks"][0]["uid"]
        assert world.settle().phase == "Held"


class TestEnd:
    """A check that never ends has failed by our own clock."""

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

    def test_what_it_says_after_that_comes_too_late(self):
        world = checking()
        world.wait()
        assert world.finish().settle().phase == "CheckFailed"

    def test_one_that_ended_in_time_is_not_late_because_nobody_looked(self):
        world = checking()
        world.pass_time(3600)

        assert world.finish().settle().selected == ("Green",)

    def test_the_reason_is_told_of_one_whose_pods_take_their_time_to_end(self):
        world = checking()
        (job,) = world.jobs.values()
        failing = {"type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded"}
        job["status"] = {"conditions": [failing]}

        assert "s: DeadlineExceeded" in world.wait().why("Checked")

    def test_a_clock_that_was_ahead_makes_no_check_longer(self):
        world = checking()
        world.now -= timedelta(days=1)
        world.settle()

        wait = world.compose().requeue_after
        assert wait is not None
        assert wait <= timedelta(seconds=TIMEOUT) + LONG_GRACE


class TestPauses:
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

    def test_why_it_waits_is_told(self):
        world = checking()
        for _ in range(2):
            world.jobs.clear()
            world.do_pass()
            world.do_pass()
        world.jobs.clear()
        world.do_pass()

        assert "is created again after a pause" in world.why()

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
