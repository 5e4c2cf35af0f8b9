"""`hedgerow promote` and `hedgerow rollback`, as typed: what happens meanwhile, on the model."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from support.cluster.bluegreens import bluegreen
from support.commands.gardens import RESOURCE, Garden

Object = dict[str, Any]
HASH = "0123456789"
HELD = {"phase": "Held", "routeTo": "Blue",
        "switch": {"from": "Blue", "to": "Green", "template": HASH}}  # fmt: skip
COMMAND = ()


@pytest.fixture
def garden(garden: Garden) -> Garden:
    hold(garden, {"manager": "kubectl"})
    return garden


def hold(garden: Garden, *entries: Object) -> None:
    """Let somebody else, or nobody, have written what is there."""
    there = live(garden)
    [written] = [one for one in there["metadata"]["managedFields"] if "subresource" not in one]
    there["metadata"]["managedFields"] = [{**written, **one} for one in entries]
    garden.store.put(there)


def apply(garden: Garden, manager: str = "kubectl", **spec: Any) -> None:
    garden.store.apply(bluegreen("default", **spec), manager)


def live(garden: Garden) -> Object:
    found = garden.store.get(RESOURCE)
    assert found is not None
    return found


def report(garden: Garden, **status: Any) -> None:
    """Be the operator that has seen the present spec."""
    garden.note(observedGeneration=live(garden)["metadata"]["generation"], **status)


def on_reads(garden: Garden, *actions: Any) -> list[Any]:
    """Do something before each read of the BlueGreen; return what was not done yet."""
    left = list(actions)
    before = garden.before

    async def hook(sent):
        if sent.verb == "read" and left:
            left.pop(0)()
        await before(sent)

    garden.before = hook
    return left


def nothing() -> None:
    """Leave it as it is."""


class TestWriting:
    def test_a_signal_ends_it_after_what_was_begun_and_that_is_told(self, garden, typed):
        apply(garden, route_to="Green", hold=True)
        report(garden, **HELD)
        garden.interrupt("apply")

        code, out, err = typed("promote", "demo", "--wait", "1m")

        assert code == 130
        assert "BlueGreen/demo: .spec.promoted was applied as hedgerow-promote" in out
        assert "interrupted by SIGINT" in err
        assert live(garden)["spec"]["promoted"] == HASH

    def test_what_changed_meanwhile_is_looked_at_again(self, garden, typed):
        apply(garden, route_to="Green", hold=True)
        report(garden, **HELD)
        other = {**HELD, "switch": {**HELD["switch"], "template": "f" * 10}}
        garden.interruptions[1] = lambda: report(garden, **other)

        code, out, _ = typed("promote", "demo")

        assert (code, live(garden)["spec"]["promoted"]) == (0, "f" * 10)
        assert "BlueGreen/demo: .spec.promoted was applied as hedgerow-promote\n" in out
        assert [sent.manager for sent in garden.writes] == ["hedgerow-promote"] * 2

    def test_a_status_of_an_older_spec_is_not_believed(self, garden, typed):
        apply(garden, route_to="Green", hold=True)
        report(garden, **HELD)
        apply(garden, route_to="Green", hold=True, ports=[{"port": 81}])

        code, out, err = typed("promote", "demo")

        assert (code, out, garden.writes) == (1, "", [])
        assert "the operator has not seen the newest change of BlueGreen/demo yet" in err

    def test_one_that_comes_soon_is_waited_for(self, garden, typed):
        garden.note(observedGeneration=0)
        report_it = partial(report, garden, routeTo="Blue")

        left = on_reads(garden, nothing, nothing, report_it)
        code, out, _ = typed("rollback", "demo")

        assert (code, left, live(garden)["spec"]["routeTo"]) == (0, [], "Green")
        assert ".spec.routeTo: Blue → Green" in out

    def test_one_field_is_written_and_from_whom_it_was_taken_is_told(self, garden, typed):
        before = live(garden)["spec"]
        report(garden, routeTo="Blue")

        told = typed("rollback", "demo")[1].splitlines()

        [sent] = garden.writes
        assert (sent.body["spec"], sent.force) == ({"routeTo": "Green"}, True)
        assert live(garden)["spec"] == {**before, "routeTo": "Green"}
        line = "BlueGreen/demo: .spec.routeTo was applied as hedgerow-rollback"
        assert told[:2] == [".spec.routeTo: Blue → Green", f"{line}, taken from kubectl Apply"]

    def test_what_somebody_else_wrote_under_its_name_stays(self, garden, typed):
        apply(garden, "hedgerow-rollback", promotion="WhenAvailable")
        before = live(garden)["spec"]
        report(garden, routeTo="Blue")

        assert typed("rollback", "demo")[0] == 0
        assert live(garden)["spec"] == {**before, "routeTo": "Green"}

    def test_what_admission_drops_was_not_set(self, garden, typed, monkeypatch):
        report(garden, routeTo="Blue")
        applied = garden.store.apply

        def admitted(body, manager, **how):
            spec = {**body["spec"], "routeTo": "Blue"}
            return applied({**body, "spec": spec}, manager, **how)

        monkeypatch.setattr(garden.store, "apply", admitted)
        code, out, err = typed("rollback", "demo")

        assert (code, out) == (1, "")
        assert "the server accepted `routeTo: Green` and did not keep it" in err

    @pytest.mark.parametrize(
        ("held", "told"),
        [
            ([], "hedgerow-rollback\n"),
            ([{"manager": "before-first-apply", "operation": "Update"}],
             "hedgerow-rollback, taken from before-first-apply Update\n"),
            ([{"manager": "kubectl"}, {"manager": "k9s", "operation": "Update"}],
             "hedgerow-rollback, taken from kubectl Apply and k9s Update\n"),
        ],
        ids=["nobody", "nobody known", "persons"],
    )  # fmt: skip
    def test_it_is_taken_from_nobody_and_from_persons(self, garden, typed, held, told):
        report(garden, routeTo="Blue")
        hold(garden, *held)

        code, out, _ = typed("rollback", "demo")

        assert (code, live(garden)["spec"]["routeTo"]) == (0, "Green")
        assert f".spec.routeTo was applied as {told}" in out

    def test_a_field_of_a_program_stays_though_a_person_has_it_too(self, garden, typed):
        report(garden, routeTo="Blue")
        hold(garden, {"manager": "kubectl-edit", "operation": "Update"}, {"manager": "team"})
        before = live(garden)

        code, out, err = typed("rollback", "demo", "--wait", "1s")

        assert (code, out, live(garden)) == (3, "", before)
        assert err.startswith("hedgerow: team holds .spec.routeTo of BlueGreen/demo and would put")
        assert garden.writes == []


class TestWaiting:
    @pytest.fixture(autouse=True)
    def held(self, garden) -> None:
        apply(garden, route_to="Green", hold=True)
        report(garden, **HELD)

    def test_each_phase_is_told_until_the_end(self, garden, typed):
        ready = {"type": "Ready", "status": "False", "reason": "Baking", "message": "for 5 s"}
        end = {"phase": "Routed", "routeTo": "Green"}
        on_reads(
            garden,
            nothing,
            partial(report, garden, phase="Overlapping", routeTo="Blue"),
            nothing,
            partial(report, garden, phase="Baking", routeTo="Green", conditions=[ready]),
            partial(report, garden, **end),
        )

        code, out, err = typed("promote", "demo", "--wait", "1m")

        assert code == 0
        assert err == ""
        assert out.splitlines()[-3:-1] == ["Overlapping", "Baking: for 5 s"]
        assert out.splitlines()[-1] == "BlueGreen/demo: Green is routed"

    def test_another_end_is_a_failure(self, garden, typed):
        ready = {"type": "Ready", "status": "False", "reason": "x", "message": "Green crashed"}
        left = {"phase": "RolledBack", "routeTo": "Blue", "conditions": [ready]}
        on_reads(garden, nothing, partial(report, garden, **left))

        code, _, err = typed("promote", "demo", "--wait", "1m")

        assert (code, err) == (1, "hedgerow: BlueGreen/demo: RolledBack: Green crashed\n")

    def test_it_is_not_waited_for_longer_than_said(self, garden, typed):
        code, _, err = typed("promote", "demo", "--wait", "50ms")

        assert (code, live(garden)["spec"]["promoted"]) == (1, HASH)
        assert "BlueGreen/demo has not ended its switch in time: Held" in err

    def test_what_was_set_before_is_waited_for_as_well(self, garden, typed):
        apply(garden, "other", promoted=HASH, blueSpec=None, greenSpec=None, route_to="Green")
        report(garden, phase="Baking", routeTo="Green", switch=HELD["switch"])
        on_reads(garden, nothing, partial(report, garden, phase="Routed", routeTo="Green"))

        code, out, _ = typed("promote", "demo", "--wait", "1m")

        assert (code, garden.writes) == (0, [])
        assert out.splitlines() == [
            f"BlueGreen/demo: .spec.promoted is {HASH} already; nothing was changed",
            "Baking",
            "BlueGreen/demo: Green is routed",
        ]


class TestUsage:
    @pytest.mark.parametrize(
        ("words", "told"),
        [
            (("demo", "--wait", "soon"), "--wait takes a duration"),
            (("svc/demo",), "is no name of a BlueGreen"),
            ((".",), "is no name of a BlueGreen"),
        ],
    )
    def test_what_makes_no_sense_is_refused_before_anything_is_read(
        self, garden, typed, words, told
    ):
        code, out, err = typed("rollback", *words)

        assert (code, out, garden.exchanges) == (2, "", [])
        assert told in err

    def test_one_that_does_not_exist_is_told(self, garden, typed):
        code, _, err = typed("rollback", "none")

        assert (code, "BlueGreen/none does not exist in namespace default" in err) == (1, True)
