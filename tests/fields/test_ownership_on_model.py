"""Any history, any declaration: the verdict foretells what an unforced apply meets on the model.

`tests/cluster/test_conformance.py` earns the model its trust.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from hedgerow.fields.ownership import judge, leave_out, residual
from model.programs import APPLIERS, Apply, ModelWorld, Outcome, laid, opened, programs, requests
from model.subjects import SUBJECTS
from support.objects.judged import Object

pytestmark = pytest.mark.timeout(900)  # the nightly profile

OURS = APPLIERS[0]


class Played:
    """An object after a generated history, and a declaration of ours to hold against it."""

    def __init__(self, kind: str, data: st.DataObject) -> None:
        self.subject, self.data = SUBJECTS[kind], data
        self.world, self.target = opened(kind)
        program = data.draw(programs(self.subject))
        for request in program:
            request.run(self.world, self.target)
        ours = [r.body for r in program if isinstance(r, Apply) and not r.subresource]
        want = data.draw(st.one_of(st.sampled_from(ours), self.subject.bodies))
        self.want = laid(self.target, without_empty_lists(want))

    def live(self) -> Object:
        found = self.world.get(self.target)
        assume(found is not None)
        assert found is not None
        return found

    def apply(self, want: Object) -> Outcome:
        """Apply as if, in a copy of the world."""
        return ModelWorld(self.world.server.fork()).apply(want, OURS)

    def go_on(self) -> None:
        self.data.draw(requests(self.subject)).run(self.world, self.target)


def without_empty_lists(value: Any) -> Any:
    """A custom resource takes two applies to get an empty list where items were pruned."""
    if isinstance(value, dict):
        return {k: without_empty_lists(v) for k, v in value.items() if v != []}
    return [without_empty_lists(v) for v in value] if isinstance(value, list) else value


def changed(live: Object, answer: Object) -> bool:
    return live["metadata"]["resourceVersion"] != answer["metadata"]["resourceVersion"]


@pytest.mark.parametrize("kind", SUBJECTS)
class TestVerdict:
    @given(data=st.data())
    def test_it_foretells_what_an_unforced_apply_meets_with_and_without_what_is_contested(
        self, kind: str, data: st.DataObject
    ) -> None:
        played = Played(kind, data)
        live = played.live()
        verdict = judge(played.want, live, OURS)
        answer = played.apply(played.want)
        event("settled" if verdict.settled else f"{answer.code}")
        if verdict.settled:
            assert not changed(live, answer.must())
        if answer.error in {"", "Conflict"} and verdict.tracked:
            paths = {leaf.path for leaf in verdict.contested}
            # In a custom resource only the schema tells whether another's `{}` is an atomic field.
            custom = kind in {"BlueGreen", "Memcached"}
            unsure = {leaf.path for leaf in verdict.contested if custom and leaf.live in ({}, [])}
            assert paths - unsure <= set(answer.conflicts) <= paths
        if verdict.contested and verdict.tracked:
            event("contested")
            rest = leave_out(played.want, verdict.contested)
            assert played.apply(rest).error != "Conflict"

    @given(data=st.data())
    def test_the_residual_of_our_answer_means_that_an_apply_changes_nothing(
        self, kind: str, data: st.DataObject
    ) -> None:
        played = Played(kind, data)
        answer = played.world.apply(played.want, OURS)
        assume(answer.code in {200, 201})
        played.live()  # else our apply took the last finalizer away
        assume("deletionTimestamp" not in answer.must()["metadata"])  # gone with the answer
        verdict = judge(played.want, answer.must(), OURS)
        assume(verdict.tracked)  # else nothing is declared at all
        assume(not verdict.contested)  # an empty map that two declare and the server omits
        recall = residual(verdict)
        assert not changed(answer.must(), played.apply(played.want).must())

        for _ in range(2):
            played.go_on()
            live = played.live()
            if residual(judge(played.want, live, OURS)) == recall:
                event("recalled")
                assert not changed(live, played.apply(played.want).must())


# Most of what is drawn is no example of it, which makes it as dear as all others together. This
# stands not above the test, whose source the examples are drawn by: they are the first of the same.
settings(
    max_examples=max(25, settings().max_examples // 2),
    suppress_health_check=[*settings().suppress_health_check, HealthCheck.filter_too_much],
)(TestVerdict.test_the_residual_of_our_answer_means_that_an_apply_changes_nothing)
