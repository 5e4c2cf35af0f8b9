"""Contributions to objects that the resource does not own, planned on the cluster in memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from hedgerow.contract import ContributesTo, Contribution, Desired
from hedgerow.fields import managed_fields, ownership
from hedgerow.objects import Installation, ObjectRef
from hedgerow.plan.children import Plan, plan_own, plan_resource
from hedgerow.plan.input import PlanInput
from hedgerow.plan.ledger import LedgerEntry
from hedgerow.plan.status_annotation import STATUS_ANNOTATION, said
from hedgerow.plan.writes import (
    ChildId,
    Write,
    admitted_digest,
    give_back,
    judge_admitted,
    unguarded,
)
from hedgerow.plan.yield_and_claim import NO_FIELD_POLICY, YIELD, FieldPolicy, field_policy_of
from hedgerow_schemas.base import Status
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.builtin import Deployment, Service
from hedgerow_testing.memory.server import Server
from plan.made import in_one_turn

Object = dict[str, Any]

MANAGER = "hedgerow-scaler"
FIELDS = (
    *(("spec", name) for name in ("replicas", "minReadySeconds", "paused", "selector")),
    ("metadata", "labels", "a"),
)
ID: ChildId = ("Deployment", "web")
TARGET = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
}
LABELS = {"app": "web"}
POD = {"containers": [{"name": "web", "image": "web:1"}]}
SPEC = {
    "selector": {"matchLabels": LABELS},
    "template": {"metadata": {"labels": LABELS}, "spec": POD},
}


class Stage:
    """One server with a Deployment, and what passes over one resource remember."""

    def __init__(self, *, built_in: bool = False) -> None:
        self.server = Server()
        self.server.apply({**TARGET, "spec": SPEC}, "helm")
        self.history: dict[ChildId, LedgerEntry] = {}
        self.built_in = built_in
        self.contributable = {Deployment.api: FIELDS}

    @property
    def live(self) -> Object:
        found = self.server.get(TARGET)
        assert found is not None
        return found

    @property
    def replicas(self) -> int:
        return self.live["spec"]["replicas"]

    def hold(self, count: int, manager: str = "hpa") -> None:
        """Have somebody else apply a number of replicas."""
        self.server.apply({**TARGET, "spec": {"replicas": count}}, manager)

    def go(self) -> None:
        """Have the Deployment deleted, which waits for a finalizer."""
        meta = {**TARGET["metadata"], "finalizers": ["a/b"]}
        self.server.apply({**TARGET, "metadata": meta}, "f")
        self.server.delete(TARGET)

    def say(
        self, text: str, contributions: Mapping[ChildId, Contribution] = MappingProxyType({})
    ) -> None:
        """Write what the resource says of itself, with these contributions to it."""
        (write,) = plan_own(self.plan_input(), contributions, text).writes
        self.server.apply(write.body, MANAGER)

    def plan_input(self, field_policy: FieldPolicy = NO_FIELD_POLICY) -> PlanInput:
        found = self.server.get(TARGET)
        uid = found["metadata"]["uid"] if found else "gone"
        owner = (
            ObjectRef(Deployment.api, "default", "web", uid)
            if self.built_in
            else ObjectRef(BlueGreen.api, "default", "demo", "owner-uid")
        )
        return PlanInput(
            owner,
            "scaler",
            Installation(),
            datetime.fromtimestamp(self.server.now, UTC),
            {ID: found} if found else {},
            entries=self.history,
            field_policy=field_policy,
            writes_resource=self.built_in,
        )

    def plan(
        self, *contributions: Contribution, field_policy: FieldPolicy = NO_FIELD_POLICY
    ) -> Plan:
        desired = Desired(contributions=contributions)
        planning = plan_resource(
            self.plan_input(field_policy), desired, (Service,), self.contributable
        )
        made = in_one_turn(planning)
        self.history |= made.judged
        return made

    def carry_out(
        self, *contributions: Contribution, field_policy: FieldPolicy = NO_FIELD_POLICY
    ) -> list[Write]:
        """Plan and write until nothing is left to do; give the writes."""
        done: list[Write] = []
        while step := next(
            iter(self.plan(*contributions, field_policy=field_policy).requests), None
        ):
            assert isinstance(step, Write)
            self.server.apply(step.body, MANAGER, force=bool(step.claims))
            done.append(step)
            assert len(done) < 5, "no end"
        return done

    @property
    def is_held(self) -> bool:
        return managed_fields.entry(self.live, MANAGER) is not None


def replicas(number: int, **more: Any) -> Contribution:
    return contribution({"spec": {"replicas": number, **more}})


def contribution(fields: Object) -> Contribution:
    return Contribution(Deployment, "web", fields)


def yielding(word: str, term: str = "Deployment/web: spec.replicas") -> FieldPolicy:
    return field_policy_of({f"hedgerow.dev/{word}": term})


@pytest.fixture
def stage() -> Stage:
    return Stage()


class TestContribution:
    def test_only_the_identity_with_the_uid_and_the_fields_are_applied(self, stage):
        uid = stage.live["metadata"]["uid"]

        (write,) = stage.carry_out(replicas(3))

        assert write.body == {
            **TARGET,
            "metadata": {"name": "web", "namespace": "default", "uid": uid},
            "spec": {"replicas": 3},
        }
        assert (write.create, write.claims, write.foreign) == (False, (), True)
        assert managed_fields.entry(stage.live, MANAGER) == {"f:spec": {"f:replicas": {}}}

    def test_one_that_is_settled_is_not_written_again_even_after_a_restart(self, stage):
        stage.carry_out(replicas(3))
        stage.history.clear()

        assert stage.carry_out(replicas(3)) == []

    def test_nothing_is_written_while_the_object_is_not_there(self, stage):
        stage.server.delete(TARGET)

        made = stage.plan(replicas(3))

        assert (made.requests, made.problems, made.contested) == ((), (), ())

    def test_nor_while_it_is_being_deleted(self, stage):
        stage.go()

        assert stage.plan(replicas(3)).requests == ()

    def test_the_object_is_never_deleted(self, stage):
        assert stage.plan().requests == ()

    def test_nulls_are_not_contributed(self, stage):
        (write,) = stage.carry_out(replicas(2, paused=None))

        assert unguarded(write.body)["spec"] == {"replicas": 2}


class TestConflict:
    def test_a_field_of_another_manager_is_reported_and_not_written(self, stage):
        stage.hold(9)

        made = stage.plan(replicas(3))

        assert made.requests == ()
        (field,) = made.contested
        assert (field.object, field.path) == ("Deployment/web", ".spec.replicas")
        assert field.manager == "hpa"

    def test_a_field_that_was_taken_from_us_is_reported_and_left(self, stage):
        stage.carry_out(replicas(3))
        stage.server.scale(TARGET, 7, "kubectl")

        assert stage.carry_out(replicas(3)) == []
        assert [field.manager for field in stage.plan(replicas(3)).contested] == ["kubectl"]
        assert stage.replicas == 7

    def test_what_was_scaled_to_zero_stays_so_and_is_reported(self, stage):
        stage.carry_out(replicas(3))
        live = stage.live
        entries = live["metadata"]["managedFields"]
        unrecorded = [one for one in entries if one["manager"] != MANAGER]
        live["metadata"] |= {"managedFields": unrecorded}
        live["spec"]["replicas"] = 0
        plan_input = replace(stage.plan_input(), live={ID: live})

        desired = Desired(contributions=(replicas(3),))
        made = in_one_turn(plan_resource(plan_input, desired, (), stage.contributable))

        assert made.requests == ()
        assert [field.reason for field in made.contested] == ["ScaledToZero"]

    def test_a_yielded_field_is_left_without_a_report(self, stage):
        stage.hold(9)

        made = stage.plan(replicas(3), field_policy=yielding("yield"))

        assert (made.requests, made.contested, made.unmatched) == ((), (), ())

    def test_what_is_said_of_its_kind_may_yet_mean_another_object(self, stage):
        said_of_all = field_policy_of({YIELD: "Deployment/*: spec.paused; Job/*: spec.paused"})

        plan_input = replace(stage.plan_input(said_of_all), live={})

        made = in_one_turn(plan_resource(plan_input, Desired(), (), stage.contributable))

        assert made.unmatched == (f"{YIELD}: Job/*: spec.paused",)

    def test_a_claimed_field_is_taken_by_force_in_exactly_this_version(self, stage):
        stage.hold(9)
        version = stage.live["metadata"]["resourceVersion"]
        policy = yielding("claim", "Deployment/*: spec.replicas")

        (write,) = stage.carry_out(replicas(3), field_policy=policy)

        assert write.body["metadata"]["resourceVersion"] == version
        assert [leaf.path for leaf in write.claims] == [".spec.replicas"]
        assert stage.replicas == 3


class TestGivingBack:
    def test_a_contribution_that_is_not_desired_any_more_is_given_back_by_applying_nothing(
        self, stage
    ):
        stage.carry_out(replicas(3))
        stage.history.clear()
        uid = stage.live["metadata"]["uid"]

        (write,) = stage.carry_out()

        assert write.body == {
            **TARGET,
            "metadata": {"name": "web", "namespace": "default", "uid": uid},
        }
        assert not stage.is_held
        assert stage.carry_out() == []

    def test_a_field_that_somebody_holds_too_stays(self, stage):
        stage.server.apply({**TARGET, "spec": {**SPEC, "replicas": 3}}, "helm")
        stage.carry_out(replicas(3))

        stage.carry_out()

        assert stage.replicas == 3

    def test_a_contribution_of_fewer_fields_gives_the_others_back(self, stage):
        stage.carry_out(replicas(3, minReadySeconds=5))

        stage.carry_out(replicas(3))

        assert managed_fields.entry(stage.live, MANAGER) == {"f:spec": {"f:replicas": {}}}

    def test_a_contribution_of_no_field_is_none(self, stage):
        stage.carry_out(replicas(3))

        stage.carry_out(contribution({}))

        assert not stage.is_held

    def test_what_remains_is_declared_and_then_settled(self, stage):
        stage.carry_out(replicas(3, minReadySeconds=5))
        remains = {"spec": {"replicas": 2}}

        write = give_back(Deployment.api, stage.live, MANAGER, remains)
        assert write is not None
        assert not write.claims
        stage.server.apply(write.body, MANAGER)

        assert stage.replicas == 2
        assert managed_fields.entry(stage.live, MANAGER) == {"f:spec": {"f:replicas": {}}}
        assert give_back(Deployment.api, stage.live, MANAGER, remains) is None

    def test_what_remains_is_without_what_others_hold(self, stage):
        stage.carry_out(replicas(3, minReadySeconds=5))
        stage.server.scale(TARGET, 7, "kubectl")
        remains = {"spec": {"replicas": 2, "minReadySeconds": 5}}

        assert give_back(Deployment.api, stage.live, MANAGER, remains) is None
        write = give_back(Deployment.api, stage.live, MANAGER, {"spec": {"replicas": 2}})
        assert write is not None
        stage.server.apply(write.body, MANAGER)

        assert (stage.replicas, stage.is_held) == (7, False)

    def test_what_is_being_deleted_keeps_what_we_hold(self, stage):
        stage.carry_out(replicas(3))
        stage.go()

        assert stage.plan().requests == ()


class TestMistakes:
    BESIDE: ClassVar = {
        "metadata": {"labels": {"a": "b", "other": "x"}},
        "spec": {"strategy": {"type": "Recreate"}, "replicas": 1},
    }

    @pytest.mark.parametrize(
        ("contributions", "why"),
        [
            ((Contribution(Service, "web", {"spec": {}}),), "declares no contributions to it"),
            ((contribution({"status": {"replicas": 1}}),), "does not declare status"),
            ((contribution({"metadata": {"finalizers": ["a/b"]}}),), "declare metadata.finalizers"),
            ((contribution(BESIDE),), "does not declare metadata.labels.other, spec.strategy"),
            ((contribution({"spec": 3}),), "does not declare spec"),
            ((replicas(3), replicas(4)), "it is declared twice"),
        ],
        ids=["kind", "status", "finalizers", "beside others", "no map", "twice"],
    )
    def test_a_contribution_that_may_not_be_made_is_a_problem(self, stage, contributions, why):
        made = stage.plan(*contributions)

        (problem,) = made.problems
        assert (problem.reason, problem.stalled) == ("InvalidContribution", True)
        assert why in problem.message

    def test_its_object_keeps_what_was_contributed_before(self, stage):
        stage.carry_out(replicas(3))

        assert stage.plan(contribution({"status": {}})).requests == ()
        assert stage.is_held


class TestSpelling:
    def test_a_respelled_contribution_is_settled_by_what_is_remembered_of_it(self, stage):
        (write,) = stage.carry_out(replicas(3))
        want, live = unguarded(write.body), stage.live
        live["spec"]["replicas"] = 4  # as admission changes it: it stays in our own entry

        verdict = ownership.judge(want, live, MANAGER)
        known = judge_admitted(want, live, MANAGER, admitted_digest(want, verdict))

        assert not verdict.settled
        assert known.settled
        assert [leaf.live for leaf in known.rewritten] == [4]
        assert not judge_admitted(want, live, MANAGER, "another").settled
        assert not judge_admitted(want, live, MANAGER, "").settled


class TestWaiting:
    """A contribution that the author claims, and compose holds back."""

    POLICY = yielding("claim")
    WAITING = dataclasses.replace(replicas(3), waits="it was taken before")

    @pytest.fixture(params=[False, True], ids=["of another", "of itself"])
    def stage(self, request) -> Stage:
        stage = Stage(built_in=request.param)
        stage.hold(7, "rival")
        return stage

    def test_nothing_is_taken_by_force_and_the_reason_is_told(self, stage):
        made = stage.plan(self.WAITING, field_policy=self.POLICY)

        assert (made.requests, [field.path for field in made.contested]) == ((), [".spec.replicas"])
        (line,) = made.ignored
        assert line.startswith("hedgerow.dev/claim: Deployment/web: spec.replicas has no effect on")
        assert line.endswith(": it was taken before")

    def test_once_it_waits_no_longer_it_is_taken_although_nothing_else_has_changed(self, stage):
        stage.plan(self.WAITING, field_policy=self.POLICY)
        (write,) = stage.carry_out(replicas(3), field_policy=self.POLICY)

        assert [leaf.path for leaf in write.claims] == [".spec.replicas"]
        assert stage.replicas == 3

    def test_what_is_never_taken_by_force_has_a_reason_of_its_own(self, stage):
        policy = yielding("claim", "Deployment/web: spec.selector")
        wanted = contribution({"spec": {"selector": {"matchLabels": {"a": "b"}}}})

        (line,) = stage.plan(wanted, field_policy=policy).ignored
        assert "a field that selects pods" in line

    def test_what_yields_as_well_says_so(self, stage):
        term = "Deployment/web: spec.replicas"
        both = field_policy_of({"hedgerow.dev/claim": term, "hedgerow.dev/yield": term})

        assert stage.plan(self.WAITING, field_policy=both).contested == ()
        assert both.word("Deployment", "web", ("spec", "replicas")) == "yield"
        assert self.POLICY.word("Deployment", "web", ("spec", "replicas")) == "claim"
        assert self.POLICY.word("Deployment", "other", ("spec", "replicas")) == ""


class TestBuiltIn:
    @pytest.fixture
    def stage(self) -> Stage:
        return Stage(built_in=True)

    def test_the_annotation_and_the_contribution_are_one_declaration(self, stage):
        stage.carry_out(replicas(3))
        stage.say('{"a":1}', {ID: replicas(3)})

        assert stage.replicas == 3
        assert stage.live["metadata"]["annotations"] == {STATUS_ANNOTATION: '{"a":1}'}
        assert stage.carry_out(replicas(3)) == []

    def test_the_annotation_stays_until_a_pass_says_otherwise(self, stage):
        stage.say('{"a":1}')

        assert stage.carry_out() == []
        assert plan_own(stage.plan_input(), {}, '{"a":1}').writes == ()

    def test_without_text_and_contribution_everything_is_given_back(self, stage):
        stage.say('{"a":1}')
        stage.say("")

        assert not stage.is_held
        assert "annotations" not in stage.live["metadata"]

    def test_a_contribution_to_another_object_of_its_kind_is_not_declared(self, stage):
        made = stage.plan(Contribution(Deployment, "other", {"spec": {"replicas": 1}}))

        assert [problem.reason for problem in made.problems] == ["InvalidContribution"]

    def test_a_contribution_to_itself_that_cannot_be_made_leaves_it_as_it_is(self, stage):
        stage.carry_out(replicas(3))
        made = stage.plan(contribution({"status": {}}))

        assert [problem.reason for problem in made.problems] == ["InvalidContribution"]
        assert made.requests == ()
        assert stage.replicas == 3

    def test_an_annotation_that_cannot_be_read_says_nothing(self):
        live = {"metadata": {"annotations": {STATUS_ANNOTATION: "{"}}}

        assert said(live) == Status()


def test_the_resource_that_may_contribute_is_the_one_of_the_same_name_unless_said_otherwise():
    assert ContributesTo(Deployment, FIELDS).of(Deployment(TARGET)) == ("default", "web")
