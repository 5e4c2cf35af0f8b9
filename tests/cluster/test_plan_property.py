"""The promise of `hedgerow plan` on a real API server, which takes both ways to apply.

Of server-side apply alone, tests/tools/planning/test_promise.py draws more in memory.
"""

from __future__ import annotations

import json
import secrets
import subprocess
from datetime import timedelta

import anyio
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from controllers.subject import Subject
from controllers.worlds import SUBJECTS
from hedgerow.kube.client import connect
from hedgerow.runtime.clock import SystemClock
from hedgerow_testing.api import Api, Object
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
    """Fact: what the server and kubectl make of each change of a resource."""
    met: set[str] = set()

    def by_client(manifest: Object) -> bool:
        command = [str(sandbox.kubectl), "--kubeconfig", str(sandbox.kubeconfig), "apply"]
        ended = subprocess.run(
            [*command, "-f", "-"],
            input=json.dumps(manifest),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return ended.returncode == 0

    async def tried(found: Drawn, is_by_client: bool) -> None:
        namespace = api.namespace(f"plan-{secrets.token_hex(5)}")
        World(api, namespace).allow_claims()
        # Before any resource comes to be: nothing new is due.
        clock = FixedClock(SystemClock().now().replace(microsecond=0) - timedelta(minutes=1))
        applies = by_client if is_by_client else None
        async with connect(kubeconfig=str(sandbox.kubeconfig)) as cluster:
            trial = Trial(subject, cluster, RealWorld(api), clock, namespace, applies, met)
            await trial.run(found)

    @settings(
        max_examples=6,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(drawn(subject), st.booleans())
    def holds(found: Drawn, is_by_client: bool) -> None:
        anyio.run(tried, found, is_by_client)

    for number in range(ROUNDS):
        seed(number)(holds)()
        if met >= {*COMMON, "by client"} and (len(met & RARER) > 1 or subject.lasting):
            return
    pytest.fail(f"the examples brought about no more than {met}")
