"""The promise of `hedgerow plan`: what it says equals what then happens, whatever is planned."""

from __future__ import annotations

from datetime import UTC, datetime

import anyio
import pytest
from hypothesis import given, settings

from controllers.subject import Subject
from controllers.worlds import SUBJECTS
from hedgerow.objects import ObjectRef
from hedgerow_testing.memory.kinds import BUILTIN
from hedgerow_testing.memory.server import Server
from model import ours
from model.programs import ModelWorld
from support.operator.planned import FixedClock, Told
from support.operator.promise import COMMON, RARER, Drawn, Trial, drawn, must_equal
from support.server.connected import connected
from tools.planning.asked import asked

MOST_ROUNDS = 10
"""The most rounds of examples until everything that is to be met has been, by chance."""
CUSTOM = (ours.bluegreen(), ours.cronjob(), ours.guestbook(), ours.memcached())


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_what_is_planned_is_what_then_happens(subject: Subject):
    met: set[str] = set()

    @settings(max_examples=10, deadline=None)
    @given(drawn(subject))
    def holds(found: Drawn) -> None:
        server = Server((*BUILTIN, *CUSTOM))
        clock = FixedClock(datetime.fromtimestamp(server.now, UTC))
        cluster = connected(asked(server))
        trial = Trial(subject, cluster, ModelWorld(server), clock, "default", met=met)
        anyio.run(trial.run, found)

    for _ in range(MOST_ROUNDS):
        holds()
        if met >= COMMON and (subject.lasting or met & RARER):
            return
    pytest.fail(f"too little was met: {sorted(met)}")


def test_the_words_of_plan_and_cluster_can_tell_differences_apart():
    ref = ObjectRef(SUBJECTS[0].controller.owns[0].api, "n", "a")
    told = Told({str(ref): ("created", frozenset())})

    with pytest.raises(AssertionError):
        must_equal(told, Told({str(ref): ("deleted", frozenset())}))
