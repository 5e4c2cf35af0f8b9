"""What is planned for children that are made once."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from hedgerow.contract import Create, Keep
from hedgerow.plan.ledger import LedgerEntry
from plan.made import live, taken
from plan.one_child import CHILD, DATA, ID, WANT, ConfigMap, only_write, plan_input, planned

Object = dict[str, Any]

ONCE = Create(ConfigMap, "settings", {"data": DATA})


def going(obj: Object) -> Object:
    marked = copy.deepcopy(obj)
    marked["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return marked


class TestCreate:
    def test_a_child_that_is_not_there_is_created_as_any_other_and_marked_so(self):
        write, usual = (
            only_write(planned(plan_input(), ONCE)),
            only_write(planned(plan_input(), CHILD)),
        )

        assert (write.create, write.once) == (True, True)
        assert (usual.create, usual.once) == (True, False)
        assert write.body == usual.body
        assert write.body["metadata"]["resourceVersion"] == "1"

    @pytest.mark.parametrize(
        "there",
        [
            live(WANT),
            taken(WANT, ("data", "a"), "9"),
            live({**WANT, "data": {"other": "template"}}),
            going(live(WANT)),
            live(WANT, {}),
        ],
        ids=["as declared", "taken by others", "of another declaration", "going", "nobody's"],
    )
    def test_a_child_that_is_there_is_kept_as_it_is(self, there):
        made = planned(plan_input(there), ONCE)

        assert (made.writes, made.deletions, made.contested, made.problems) == ((), (), (), ())
        assert made.judged == {ID: LedgerEntry()}

    def test_once_it_is_declared_no_more_it_is_pruned_unless_kept(self):
        assert [d.id for d in planned(plan_input(live(WANT)), Keep(ConfigMap, "x")).deletions] == [
            ID
        ]
        assert planned(plan_input(live(WANT)), Keep(ConfigMap, "settings")).deletions == ()
