"""Held up: an operator whose event loop stands still at work, from SIGUSR1 until SIGUSR2."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import anyio

from hedgerow import app
from hedgerow.cli.errors import explain
from hedgerow.settings import Settings
from support.operator.contender import SHORT, Started
from support.operator.registered import REGISTRY


class HeldUp(Started):
    """Such a process, from outside."""

    def __init__(self, kubeconfig: Path, namespace: str, log: Path) -> None:
        super().__init__("held-up", log, __file__, str(kubeconfig), namespace)

    def hold_up(self) -> None:
        self.send(signal.SIGUSR1)
        self.says("stands still")

    def let_go(self) -> None:
        self.send(signal.SIGUSR2)
        self.says("turns")


async def _operate(kubeconfig: str, namespace: str) -> None:
    settings = Settings(
        kubeconfig=kubeconfig,
        namespaces=(namespace,),
        system_namespace=namespace,
        leader_elect=True,
        lease_duration=SHORT.duration,
        metrics_bind_address="0",
        health_probe_bind_address="0",
    )
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, stand_still(signal.SIGUSR2))
    await app.run(settings, REGISTRY)


def stand_still(until: signal.Signals) -> Callable[[], None]:
    """Return what works on and on, as a long pass does, until a signal comes."""
    let_go = list[int]()
    signal.signal(until, lambda number, _: let_go.append(number))

    def work() -> None:
        print("stands still", flush=True)
        while not let_go:
            pass
        print("turns", flush=True)

    return work


def main(kubeconfig: str, namespace: str) -> int:
    """Operate; give the exit code."""
    try:
        anyio.run(_operate, kubeconfig, namespace)
    except Exception as error:  # noqa: BLE001 - told as the command line does
        line, code = explain(error)
        print(line, flush=True)
        return code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
