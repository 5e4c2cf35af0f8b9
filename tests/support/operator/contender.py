"""Contender: a process that wants to lead, and writes through the fence as often as it can.

Its election has a thread of its own, as the operator's has.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Self

import anyio

from hedgerow.kube.client import connect
from hedgerow.kube.cluster import Cluster
from hedgerow.kube.errors import KubeError, NotLeading
from hedgerow.process.leaderelection.elector import Elector, LeadershipLost, Term
from hedgerow.process.leaderelection.record import Timing
from hedgerow.process.leaderelection.thread import own_thread, posting
from hedgerow.runtime.clock import SystemClock
from hedgerow_schemas.base import ApiResource
from hedgerow_testing.waiting import eventually

LEASE, LEASE_MANAGER = "hedgerow", "hedgerow-lease"
LEDGER = ApiResource("v1", "ConfigMap", "configmaps")
SHORT = Timing(5.0)
PAUSE = 0.01
"""Seconds between two writes of a leader."""


def agent(name: str) -> str:
    """Return the user agent of a contender, as the audit log tells it."""
    return f"contender/{name}/"


def term() -> Term:
    return Term(SystemClock(), SHORT.margin)


def leadership(cluster: Cluster, namespace: str, name: str, term: Term) -> Elector:
    return Elector(
        cluster,
        SystemClock(),
        term,
        name=LEASE,
        namespace=namespace,
        identity=name,
        manager=LEASE_MANAGER,
        timing=SHORT,
    )


class Contender:
    """Such a process, from outside: it says ready, at work, refused, and why it ended.

    On SIGUSR1 it stops itself as by SIGSTOP, in its next write right after the fence was asked
    for the time of that number; 0 is between two writes. Where a signal of ours would hit, nobody
    knows: after the last time there is nothing between the answer and the bytes that leave, and no
    program can be sure not to be stopped there.
    """

    def __init__(
        self, kubeconfig: Path, namespace: str, name: str, log: Path, *, stops_after: int = 0
    ) -> None:
        self.name = name
        self._log = log / f"{name}.log"
        tests = str(Path(__file__).parents[2])
        with self._log.open("wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(kubeconfig), namespace, name, str(stops_after)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**os.environ, "PYTHONPATH": tests},
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(10)

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def ended(self) -> int:
        """Wait until it has ended, and give its exit code."""
        return self._process.wait(15)

    @property
    def lines(self) -> list[str]:
        """What it has said so far."""
        return self._log.read_text("utf-8").splitlines()

    def says(self, line: str) -> None:
        """Wait until it has said that."""
        eventually(lambda: line in self.lines, what=f"{self.name} says {line}")


async def _contend(kubeconfig: str, namespace: str, name: str, stops_after: str) -> int:
    ours, gained, over = term(), anyio.Event(), False
    stand = partial(_stand, kubeconfig, namespace, name, ours, posting(gained.set))
    async with (
        connect(kubeconfig=kubeconfig, user_agent=agent(name)) as cluster,
        own_thread("election", stand) as errors,
    ):
        await cluster.get("/version")
        print("ready", flush=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_until_told, tasks.cancel_scope)

            async def hold() -> None:
                nonlocal over
                error = await errors.get()
                if not isinstance(error, LeadershipLost):
                    raise error
                # It takes its time to end, as long as the fence has to stop what it still does.
                await anyio.sleep(1)
                print("lost:", error, flush=True)
                over = True
                tasks.cancel_scope.cancel()

            tasks.start_soon(hold)
            await gained.wait()
            stopper = Stopper(ours.remaining, int(stops_after))
            tasks.start_soon(stopper.listen)
            fenced = cluster.fenced(stopper, ours.unanswered)
            tasks.start_soon(_write, fenced, stopper, namespace, name)
    return int(over)


async def _stand(
    kubeconfig: str, namespace: str, name: str, ours: Term, gained: Callable[[], None]
) -> None:
    async with connect(kubeconfig=kubeconfig, user_agent=agent(name)) as own:
        elector = leadership(own, namespace, name, ours)
        try:
            await elector.lead(gained)
        except anyio.get_cancelled_exc_class():
            await elector.release()
            raise


async def _until_told(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        await anext(signals)
        scope.cancel()


class Stopper:
    """A permit that stops its own process when it was told to."""

    def __init__(self, permit: Callable[[], float], after: int) -> None:
        self._permit, self._after = permit, after
        self._told, self._asked = False, 0

    async def listen(self) -> None:
        with anyio.open_signal_receiver(signal.SIGUSR1) as signals:
            async for _ in signals:
                self._told = True

    def begin(self) -> None:
        """A write is about to begin."""
        self._asked = 0
        self._stop()

    def __call__(self) -> float:
        left = self._permit()
        self._asked += 1
        self._stop()
        return left

    def _stop(self) -> None:
        if self._told and self._asked == self._after:
            self._told = False
            os.kill(os.getpid(), signal.SIGSTOP)


async def _write(fenced: Cluster, stopper: Stopper, namespace: str, name: str) -> None:
    told: set[str] = set()
    for number in count(1):
        stopper.begin()
        body = {
            "metadata": {"name": "ledger", "namespace": namespace},
            "data": {"by": name, "number": str(number)},
        }
        said = "at work"
        try:
            with anyio.CancelScope(shield=True):  # asked to stop, it lets a write end
                await fenced.apply(LEDGER, body, manager="contender")
        except NotLeading:
            said = "refused"
        except KubeError as error:
            said = f"trouble: {error}"
        if said not in told:
            print(said, flush=True)
        told.add(said)
        await anyio.sleep(PAUSE)


if __name__ == "__main__":
    sys.exit(anyio.run(_contend, *sys.argv[1:]))
