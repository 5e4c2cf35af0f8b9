"""What planning makes of a Deployment that somebody scaled to nothing, which nobody holds."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hedgerow.contract import Apply, Desired
from hedgerow.objects import Installation
from hedgerow.plan.children import Plan, plan_resource
from hedgerow.plan.input import PlanInput
from hedgerow.plan.ledger import LedgerEntry
from hedgerow.plan.writes import declare
from hedgerow_schemas.builtin import Deployment
from plan.made import entry, in_one_turn, live, without
from plan.one_child import NOW, OWNER, OWNS, only_write

SERVERS = Apply(Deployment, "demo", {"spec": {"minReadySeconds": 5, "replicas": 3}})
WANT = declare(SERVERS, OWNER, "bluegreen")
ZERO = {**WANT, "spec": {**WANT["spec"], "replicas": 0}}
# A scale of 0 is an Update whose replicas are left out as empty: it takes ours and books nothing.
SCALED = live(ZERO, without(entry(WANT), "f:spec", "f:replicas"))


def planned(
    there: dict[str, object],
    history: LedgerEntry | None = None,
    child: Apply = SERVERS,
    **how: bool,
) -> Plan:
    demo = ("Deployment", "demo")
    known = {demo: history} if history else {}
    plan_input = PlanInput(
        OWNER,
        "bluegreen",
        Installation(),
        NOW,
        {demo: there},
        entries=known,
        content_versions={demo: 1 if history is None else 2},
        **how,
    )
    return in_one_turn(plan_resource(plan_input, Desired(children=(child,)), OWNS))


@pytest.mark.parametrize(
    "history",
    [
        None,
        planned(live(WANT)).judged["Deployment", "demo"],
        LedgerEntry(restored={".spec.replicas": NOW - timedelta(days=1)}),
    ],
    ids=["after a restart", "seen settled", "restored long ago"],
)
def test_it_is_reported_at_once_and_left(history):
    made = planned(SCALED, history)

    assert made.writes == ()
    (field,) = made.contested
    assert (field.path, field.manager, field.operation) == (".spec.replicas", None, None)


def test_a_new_size_is_written():
    history = planned(live(WANT)).judged["Deployment", "demo"]
    more = Apply(Deployment, "demo", {"spec": {"minReadySeconds": 5, "replicas": 5}})

    write = only_write(planned(SCALED, history, more))

    assert write.body["spec"] == more.fields["spec"]
    assert write.restores == ()


def test_a_new_size_is_written_after_a_restart_too():
    more = Apply(Deployment, "demo", {"spec": {"minReadySeconds": 5, "replicas": 5}})

    write = only_write(planned(SCALED, None, more, spec_changed=True))

    assert write.body["spec"] == more.fields["spec"]


@pytest.mark.parametrize("blocking", [True, False])
def test_an_adopted_childs_reference_keeps_what_it_says_of_blocking(blocking):
    theirs = {**WANT["metadata"]["ownerReferences"][0], "blockOwnerDeletion": blocking}
    there = {**WANT, "metadata": {**WANT["metadata"], "ownerReferences": [theirs]}}
    original = entry(there, "original", "Update")

    made = planned(live(there, original))

    assert made.contested == ()
    assert only_write(made).body["metadata"]["ownerReferences"] == [theirs]
