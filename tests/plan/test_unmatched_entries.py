"""Terms that mean no field that is there are told; those that may yet are not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hedgerow.contract import Desired
from hedgerow.plan.children import plan_resource
from hedgerow.plan.yield_and_claim import CLAIM, YIELD, field_policy_of, unmatched
from hedgerow_schemas.builtin import Deployment
from plan import one_child
from plan.made import in_one_turn, live

WEB = live({
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"app.kubernetes.io/name": "web"}},
    "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "a"}]}}},
})  # fmt: skip
CHILD = ("Deployment", "web")
KINDS = ("Deployment", "Job")


def told(text: str, *, there: bool = True) -> tuple[str, ...]:
    objects = {CHILD: WEB} if there else {}
    return in_one_turn(unmatched(field_policy_of({YIELD: text}), objects, {CHILD}, KINDS))


class TestTold:
    @pytest.mark.parametrize(
        "text",
        [
            "Deployment/web: spec.replicsa",
            "Deployment/web: spec",
            "Deployment/wbe: spec.replicas",
            "Deploymnet/*: spec.replicas",
            "Job/named: spec.parallelism",
            "*/wbe: spec.replicas",
            'Deployment/*: spec.template.spec.containers[name="d"].image',
        ],
    )
    def test_one_that_means_nothing(self, text):
        assert told(text) == (f"{YIELD}: {text}",)

    @pytest.mark.parametrize(
        "text",
        [
            "Deployment/web: spec.replicas",
            "*/*: **",
            "Deployment/*: metadata.labels.*",
            'Deployment/*: spec.template.spec.containers[name="c"].image',
            'Deployment/*: spec.template.spec.containers[name="c"]',
            "Deployment/*: spec.template.**",
            "Job/*: spec.parallelism",
            "Job/*: spec.anything",
        ],
    )
    def test_one_that_means_something_or_may_yet_is_not(self, text):
        assert told(text) == ()

    def test_of_a_child_that_is_still_to_be_made_nothing_is_known(self):
        assert told("Deployment/web: spec.replicsa", there=False) == ()

    def test_both_annotations_are_looked_at_and_each_term_by_itself(self):
        field_policy = field_policy_of({YIELD: "*/web: spec.a, spec.replicas", CLAIM: "*/web: b"})

        assert in_one_turn(unmatched(field_policy, {CHILD: WEB}, {CHILD}, KINDS)) == (
            f"{YIELD}: */web: spec.a",
            f"{CLAIM}: */web: b",
        )

    def test_without_terms_there_is_nothing_to_tell(self):
        assert in_one_turn(unmatched(field_policy_of({}), {CHILD: WEB}, (), ())) == ()


class TestTurns:
    """Other work has its turn after each entry and each object, whatever there is to look for."""

    @pytest.mark.parametrize(
        ("text", "turns"),
        [
            ("Deployment/*: spec.replicsa", 21),
            ("Deployment/*: spec.replicas", 21),
            ("ConfigMap/*: data", 21),
            ("ConfigMap/*: data; Deployment/*: spec.a; Job/*: spec", 23),
        ],
    )
    def test_one_for_each(self, text, turns):
        objects = {("Deployment", f"web-{number}"): WEB for number in range(20)}
        own = one_child.plan_input()
        plan_input = replace(own, live=objects, field_policy=field_policy_of({YIELD: text}))

        without = plan_resource(replace(own, live=objects), Desired(), (Deployment,))
        looking = plan_resource(plan_input, Desired(), (Deployment,))

        assert len(tuple(looking)) - len(tuple(without)) == turns


def test_a_plan_tells_them():
    field_policy = field_policy_of({YIELD: "ConfigMap/settings: data.a, data.c"})
    made = one_child.planned(
        replace(one_child.plan_input(live(one_child.WANT)), field_policy=field_policy)
    )

    assert made.unmatched == (f"{YIELD}: ConfigMap/settings: data.c",)
