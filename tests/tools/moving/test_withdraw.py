"""`hedgerow release --instance`, as typed: all that it holds, on the model of a cluster."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hedgerow.kube import errors
from hedgerow.kube.retry import RetryClock
from hedgerow.process.leaderelection.record import micro_time
from hedgerow.runtime.clock import SystemClock
from hedgerow_tools.moving import outcomes
from hedgerow_tools.objects import selection, writing
from support.commands.gardens import NAME, OURS, Garden

TWO = "hedgerow-two-bluegreen"
LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "hedgerow-two", "namespace": "default"},
}
NAMED = {"name": "demo", "namespace": "default"}
COMMAND = ("release",)


@pytest.fixture
def garden(garden: Garden, monkeypatch) -> Garden:
    garden.declare(replicas=5)
    garden.also(TWO, replicas=5)

    async def at_once(_seconds: float) -> None:
        """Wait for nothing."""

    monkeypatch.setattr(writing, "RetryClock", lambda: RetryClock(sleep=at_once))
    return garden


def managers(garden: Garden) -> set[str]:
    return {entry["manager"] for entry in garden.live["metadata"]["managedFields"]}


def report(garden: Garden, manager: str, **status: Any) -> None:
    body = {
        "apiVersion": garden.owner["apiVersion"],
        "kind": "BlueGreen",
        "metadata": {"name": "demo", "namespace": "default"},
        "status": status,
    }
    garden.store.apply(body, manager, subresource="status")


def status_of(garden: Garden) -> Any:
    return garden.store.get(garden.owner).get("status", {})


ALL = ("--instance", "two")


class TestAsShown:
    def test_nothing_is_written_until_it_is_told_to(self, garden, typed):
        code, out, err = typed(*ALL)

        assert (code, err) == (0, "")
        assert out.splitlines() == [
            f"Deployment default/{NAME}: 1 field would be given up",
            "Instance 'two' would let go of 1 object; nothing was changed. --yes does it.",
        ]
        assert garden.writes == []

    @pytest.mark.parametrize("place", ["", "default"])
    def test_of_a_namespace_nothing_is_given_up_that_is_in_none(self, garden, typed, place):
        labelled = {"name": "other", "labels": {"a": "b"}}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": labelled}
        garden.store.apply(body, "hedgerow-two-secretsync")

        out = typed(*ALL, *(("-n", place) if place else ()))[1]

        assert f"Deployment default/{NAME}: 1 field would be given up" in out
        assert ("Namespace other" in out) == (not place)

    def test_what_goes_is_named(self, garden, typed):
        report(garden, OURS, routeTo="Blue")
        report(garden, TWO, observedGeneration=4)

        code, out, _ = typed(*ALL)

        assert code == 0
        told = "BlueGreen default/demo status: 1 field would be given up; would be removed with it:"
        assert f"{told} .status.observedGeneration" in out

    def test_in_json_values_are_told(self, garden, typed):
        report(garden, OURS, routeTo="Blue")
        report(garden, TWO, observedGeneration=4)

        told = json.loads(typed(*ALL, "-o", "json")[1])

        assert (told["instance"], told["dryRun"]) == ("two", True)
        assert [one["kind"] for one in told["objects"]] == ["Deployment", "BlueGreen"]
        (change,) = told["objects"][1]["changes"]
        assert change == {"path": ".status.observedGeneration", "before": 4}


class TestAsDone:
    def test_all_is_given_up_and_no_value_of_others_changes(self, garden, typed):
        report(garden, OURS, routeTo="Blue")
        report(garden, TWO, observedGeneration=4, routeTo="Blue")
        before = garden.live["spec"]

        code, out, _ = typed(*ALL, "--yes")

        assert code == 0
        assert "Instance 'two' let go of 2 objects." in out
        assert "removed with it: .status.observedGeneration" in out
        assert garden.live["spec"] == before
        assert TWO not in managers(garden)
        assert status_of(garden) == {"routeTo": "Blue"}
        assert {(sent.manager, sent.force) for sent in garden.writes} == {(TWO, False)}

    def test_a_reason_without_which_a_condition_is_invalid_is_handed_to_the_other(
        self, garden, typed
    ):
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        report(garden, TWO, conditions=[ready | {"reason": "Serving", "message": "m"}])
        report(garden, OURS, conditions=[ready])
        before, refused = status_of(garden), list[Any]()

        async def refuse(sent: Any) -> None:
            if not refused and sent.verb == "apply" and sent.subresource == "status":
                refused.append(sent)
                raise errors.Invalid("status.conditions[0].reason: Required value")

        garden.before = refuse

        code, out, _ = typed(*ALL, "--yes")

        assert code == 0
        assert "BlueGreen default/demo status: 5 fields handed over, no value changed" in out
        assert status_of(garden) == before
        entries = garden.store.get(garden.owner)["metadata"]["managedFields"]
        assert TWO not in {entry["manager"] for entry in entries}

    def test_a_signal_ends_it_after_what_was_begun_and_that_is_told(
        self, garden, typed, monkeypatch
    ):
        report(garden, OURS, routeTo="Blue")
        report(garden, TWO, routeTo="Blue")
        monkeypatch.setattr(outcomes, "AT_ONCE", 1)
        garden.interrupt("apply")

        code, out, err = typed(*ALL, "--yes")

        assert code == 130
        assert f"Deployment default/{NAME}: 1 field given up" in out
        assert "Instance 'two' let go of 1 object." in out
        assert "ended early: run the command again" in err
        assert TWO not in managers(garden)

    def test_a_resource_counts_once_with_its_status(self, garden, typed):
        report(garden, OURS, routeTo="Blue")
        report(garden, TWO, routeTo="Blue")
        owner = {**garden.owner, "metadata": {**NAMED, "labels": {"team": "shop"}}}
        garden.store.apply(owner, TWO)
        garden.store.apply(owner, "user")

        _, out, _ = typed(*ALL, "--yes")

        assert [line.partition(":")[0] for line in out.splitlines()] == [
            f"Deployment default/{NAME}",
            "BlueGreen default/demo",
            "BlueGreen default/demo status",
            "Instance 'two' let go of 2 objects.",
        ]

    def test_one_of_which_a_part_is_kept_is_not_let_go(self, garden, typed):
        report(garden, OURS, routeTo="Blue")
        report(garden, TWO, routeTo="Blue")
        owner = {**garden.owner, "metadata": {**NAMED, "labels": {"team": "shop"}}}
        garden.store.apply(owner, TWO)

        code, out, err = typed(*ALL, "--yes")

        assert code == 3
        assert "BlueGreen default/demo: 10 fields kept" in out
        assert "BlueGreen default/demo status: 1 field given up" in out
        assert "Instance 'two' let go of 1 object." in out
        assert "1 kept" in err

    def test_a_second_time_nothing_is_done(self, garden, typed):
        typed(*ALL, "--yes")
        written = len(garden.writes)

        code, out, _ = typed(*ALL, "--yes")

        assert (code, len(garden.writes)) == (0, written)
        assert out == "Instance 'two' holds nothing there.\n"

    def test_one_that_just_changed_is_looked_at_again(self, garden, typed):
        garden.interruptions[1] = lambda: garden.also("other", minReadySeconds=3)

        assert typed(*ALL, "--yes")[0] == 0

        assert TWO not in managers(garden)
        assert garden.live["spec"]["minReadySeconds"] == 3

    def test_one_that_never_rests_fails_and_that_is_told(self, garden, typed):
        for number in range(1, 9):
            garden.interruptions[number] = lambda n=number: garden.also("other", minReadySeconds=n)

        code, out, err = typed(*ALL, "--yes")

        assert code == 1
        assert "failed: it changes all the time" in out
        assert "1 failed" in err

    def test_one_that_has_let_go_meanwhile_is_not_told_of(self, garden, typed):
        garden.interruptions[1] = lambda: garden.store.apply(garden.target, TWO)

        code, out, _ = typed(*ALL, "--yes")

        assert code == 0
        assert "Deployment" not in out

    @pytest.mark.parametrize(
        ("error", "verb"),
        [
            *((error, "read") for error in selection.OF_ONE),
            # An apply that is refused as invalid keeps what it was to give up: see below.
            *((error, "apply") for error in selection.OF_ONE if error is not errors.Invalid),
        ],
    )
    def test_what_is_wrong_with_one_object_leaves_the_rest(self, garden, typed, error, verb):
        report(garden, OURS, routeTo="Blue")
        report(garden, TWO, routeTo="Blue")
        before = garden.before

        async def fail(sent: Any) -> None:
            if sent.verb == verb and sent.api.kind == "Deployment":
                raise error("not this one")
            await before(sent)

        garden.before = fail

        code, out, _ = typed(*ALL, "--yes")

        assert code == 1
        assert f"Deployment default/{NAME}: failed: not this one" in out
        assert "BlueGreen default/demo status: 1 field given up" in out

    def test_what_cannot_be_decoded_is_not_written(self, garden, typed):
        report(garden, OURS, routeTo="Blue")
        report(garden, TWO, routeTo="Blue")
        garden.odd = {"Deployment"}

        code, out, _ = typed(*ALL, "--yes")

        assert code == 1
        assert f"Deployment default/{NAME}: failed: cannot be decoded: its JSON has" in out
        assert "BlueGreen default/demo status: 1 field given up" in out
        assert [sent.api.kind for sent in garden.writes] == ["BlueGreen"]


class TestWhatNobodyElseHolds:
    @pytest.fixture(autouse=True)
    def sole(self, garden) -> None:
        garden.also(TWO, replicas=5, minReadySeconds=7)

    def test_it_is_kept_and_told_with_what_to_do(self, garden, typed):
        code, out, err = typed(*ALL, "--yes")

        assert code == 3
        assert "2 fields kept: nobody else holds .spec.minReadySeconds" in out
        assert "--to MANAGER" in err
        assert "--drop" in err
        assert TWO in managers(garden)
        assert garden.writes == []

    def test_told_to_it_goes(self, garden, typed):
        code, out, _ = typed(*ALL, "--drop", "--yes")

        assert code == 0
        assert "removed with it: .spec.minReadySeconds" in out
        assert garden.live["spec"].get("minReadySeconds", 0) != 7
        assert TWO not in managers(garden)

    def test_somebody_else_may_have_it(self, garden, typed):
        shown = typed(*ALL, "--to", "team")
        assert garden.writes == []
        code, out, _ = typed(*ALL, "--to", "team", "--yes")

        assert (shown[0], code) == (0, 0)
        assert "would be handed over, no value changed" in shown[1]
        assert "2 fields handed over, no value changed" in out
        assert garden.live["spec"]["minReadySeconds"] == 7
        assert garden.held("minReadySeconds") == {"team"}
        assert TWO not in managers(garden)

    def test_admission_that_changes_it_on_the_way_ends_it(self, garden, typed, monkeypatch):
        apply = garden.store.apply

        def rewriting(body: Any, manager: str, **how: Any) -> Any:
            answer = apply(body, manager, **how)
            if manager == TWO and "team" in managers(garden):
                return {**answer[0], "spec": {**garden.live["spec"], "minReadySeconds": 9}}, False
            return answer

        monkeypatch.setattr(garden.store, "apply", rewriting)

        code, out, _ = typed(*ALL, "--to", "team", "--yes")

        assert code == 3
        assert "2 fields kept: admission changes .spec.minReadySeconds" in out
        assert TWO in managers(garden)

    def test_a_status_that_no_other_hedgerow_reports_on_stays(self, garden, typed):
        report(garden, TWO, routeTo="Blue")

        code, out, _ = typed(*ALL, "--yes")

        assert code == 3
        assert "BlueGreen default/demo status: 1 field kept: nobody else holds" in out
        assert status_of(garden) == {"routeTo": "Blue"}


class TestWhileItIsAtWork:
    @pytest.mark.parametrize(
        ("words", "code", "told"),
        [
            ("--yes", 1, "): stop it first\n"),
            ("", 0, "): stop it first\n"),
            ("--controller bluegreen --yes", 0, "does not tell which controllers it runs"),
            ("--controller bluegreen", 0, "does not tell which controllers it runs"),
        ],
    )
    def test_beside_a_leader_that_renewed_just_now_all_of_it_is_only_shown(
        self, garden, typed, words, code, told
    ):
        spec = {
            "holderIdentity": "pod-1",
            "leaseDurationSeconds": 15,
            "renewTime": micro_time(SystemClock().now()),
        }
        garden.store.apply({**LEASE, "spec": spec}, "hedgerow-two-lease")

        ended, _, err = typed(*ALL, *words.split())

        assert ended == code
        assert "pod-1 is at work (Lease default/hedgerow-two, renewed " in err
        assert told in err
        assert (TWO in managers(garden)) == (words != "--controller bluegreen --yes")

    def test_one_that_is_gone_is_not(self, garden, typed):
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1}
        garden.store.apply({**LEASE, "spec": spec}, "hedgerow-two-lease")

        assert typed(*ALL, "--yes")[0] == 0

    def test_where_that_may_not_be_read_it_is_told_and_done(self, garden, typed):
        before = garden.before

        async def forbid(sent: Any) -> None:
            if sent.api.kind == "Lease":
                raise errors.Forbidden("no right", code=403)
            await before(sent)

        garden.before = forbid

        code, out, err = typed(*ALL, "--yes")

        assert code == 0
        assert "cannot tell whether another operator is at work" in out + err


class TestUsage:
    @pytest.mark.parametrize(
        "words",
        [
            (),
            ("deploy/x", "--instance", "two"),
            ("--instance", "two", "--field", "spec"),
            ("--instance", "two", "--to", "x", "--drop"),
            ("deploy/x", "--drop"),
            ("--unowned", "deploy/x", "--field", "a", "--save", "f"),
            ("--undo", "f", "--to", "x"),
            ("deploy/x", "--controller", "bluegreen"),
            ("--controller", "nonsense"),
            ("--instance", "No Name"),
        ],
    )
    def test_what_makes_no_sense_is_told_in_one_line(self, garden, typed, words):
        code, out, err = typed(*words)

        assert (code, out) == (2, "")
        assert len(err.splitlines()) == 1
        assert garden.exchanges == []
