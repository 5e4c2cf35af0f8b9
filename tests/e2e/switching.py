"""Switching: flips of a BlueGreen under load, as seen inside and outside of the cluster."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from e2e.callers import ask
from e2e.colours import PORT, TARGET, Coloured
from e2e.traffic import CALLERS, COLOURS, Balancer, Flip, Tally, Traffic, judge
from hedgerow_testing.api import Api
from hedgerow_testing.waiting import eventually

SLOW = 1.0
"""Seconds until the balancer asks a new endpoint."""
OVERLAP = {"switch": "Overlap", "overlapSeconds": 3}
"""Three times what the balancer needs, as it has to see the endpoints too."""
_SOON = 120.0


@dataclass(frozen=True)
class Measured:
    """What became of every request, by flips: of those of the Service, and of the balancer."""

    cluster: list[Tally]
    outside: list[Tally]

    def told(self) -> str:
        """Return it in a line, for whoever runs the tests with -rP."""
        return f"in the cluster {self.cluster}, outside {self.outside}"


def measure(api: Api, namespace: str, times: int, callers: int = CALLERS, **spec: Any) -> Measured:
    """Flip so many times under load; each flip begins when the one before has come to its end."""
    world = Coloured(api, namespace)
    world.route("Blue", **spec)
    address = world.served("Blue")
    eventually(lambda: world.available("demogreen-deployment"), _SOON, "green available as well")
    balancer = Balancer(api, namespace, "demo", TARGET, SLOW)
    cluster = Traffic(lambda: ask(address, PORT), callers)
    outside = Traffic(balancer.ask, callers)
    flips: list[tuple[Flip, Flip]] = []
    with balancer:
        eventually(lambda: balancer.ask() == "Blue", _SOON, "the balancer's answer")
        with cluster, outside:
            for number in range(times):
                to = COLOURS[(number + 1) % 2]
                began = time.monotonic()
                world.route(to, **spec)
                eventually(lambda to=to: world.selected() == to, _SOON, f"{to} selected alone")
                settled = [traffic.settled(to) for traffic in (cluster, outside)]
                flips.append((Flip(to, began, settled[0]), Flip(to, began, settled[1])))
                for traffic in (cluster, outside):
                    traffic.goes_on()
    return Measured(
        judge(cluster.answers, [flip for flip, _ in flips]),
        judge(outside.answers, [flip for _, flip in flips]),
    )
