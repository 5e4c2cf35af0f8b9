"""The promise of `hedgerow plan` on a real API server.

tests/tools/planning/test_promise.py draws more in memory.
"""

from __future__ import annotations

import secrets
from datetime import timedelta

import anyio
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from controllers.subject import Subject
from controllers.worlds import SUBJECTS
from hedgerow.kube.client import connect
from hedgerow.runtime.clock import SystemClock
from hedgerow_testing.api import Api
from hedgerow_testing.sandbox.cluster import Sandbox
from support.cluster.bluegreens import World
from support.cluster.worlds import RealWorld
from support.operator.planned import FixedClock
from support.operator.promise import COMMON, RARER, Drawn, Trial, drawn

pytestmark = pytest.mark.cluster

ROUNDS = 10
"""Of examples, at most."""


@pytest.mark.usefixtures("same_everywhere")
@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_what_is_planned_is_what_then_happens(subject: Subject, sandbox: Sandbox, api: Api):
    """Fact: what the server makes of each change of a resource."""
    met: set[str] = set()

    async def tried(found: Drawn) -> None:
        namespace = api.namespace(f"plan-{secrets.token_hex(5)}")
        World(api, namespace).allow_claims()
        # Before any resource comes to be: nothing new is due.
        clock = FixedClock(SystemClock().now().replace(microsecond=0) - timedelta(minutes=1))
        async with connect(kubeconfig=str(sandbox.kubeconfig)) as cluster:
            trial = Trial(subject, cluster, RealWorld(api), clock, namespace, met)
            await trial.run(found)

    @settings(
        max_examples=6,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(drawn(subject))
    def holds(found: Drawn) -> None:
        anyio.run(tried, found)

    for number in range(ROUNDS):
        seed(number)(holds)()
        if met >= COMMON and (len(met & RARER) > 1 or subject.lasting):
            return
    pytest.fail(f"the examples brought about no more than {met}")
