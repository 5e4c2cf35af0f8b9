"""Call path: the files that one watch event passes through until its PATCH leaves.

    PYTHONPATH=tests python tests/architecture/callpath.py

An operator runs on the API server in memory, as the fault tests have it. Once a BlueGreen is at
rest its `routeTo` is changed, and each file of hedgerow's that is entered from the arrival of that
event to the first PATCH is noted, in the order in which it is first entered.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import anyio

import hedgerow
from faults.inmemory.machine import Machine
from faults.inmemory.more import BY_NAME
from faults.inmemory.people import ModelPeople
from faults.scenarios import DEMO
from support.server.apiserver import Exchange
from support.server.store import Entry

ROOT = Path(hedgerow.__file__).parent


class Trace:
    """Notes which of our files are entered while it is on."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.entries = 0

    def begin(self) -> None:
        sys.setprofile(self._heard)

    def end(self) -> None:
        sys.setprofile(None)

    def _heard(self, frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(f"{ROOT}/"):
            return
        file = str(Path(name).relative_to(ROOT))
        self.entries += file != (self.files[-1:] or [""])[0]
        self.files.append(file)

    def path(self) -> list[str]:
        """Return each file once, in the order of its first entry."""
        return list(dict.fromkeys(self.files))


def traced() -> Trace:
    """Change one BlueGreen, and return what was entered for it."""
    scenario = BY_NAME["bluegreen-flipped"]
    machine, trace = Machine(controllers=("bluegreen",)), Trace()

    async def main() -> None:
        people = ModelPeople(machine.api.store)
        people.settle_in()
        machine.processes[0].start()
        scenario.steps[0].act(people)
        await anyio.sleep(60)
        hook = machine.api.hook

        async def ended(exchange: Exchange, act: Any) -> Any:
            if exchange.verb == "apply" and exchange.api.kind != "Lease":
                trace.end()
            return await hook(exchange, act)

        machine.api.hook = ended
        told = machine.api.store.on_entry

        def begun(entry: Entry) -> None:
            told(entry)
            if entry.key[1] == "BlueGreen" and not trace.files:
                trace.begin()

        machine.api.store.on_entry = begun
        live = people.get(DEMO)
        people.apply({**DEMO, "spec": {**live["spec"], "routeTo": "Green"}}, "user", force=True)
        await anyio.sleep(10)
        trace.end()

    machine.run(main)
    return trace


def main(paths: Iterable[str] = ()) -> None:
    trace = traced()
    files = trace.path()
    for number, file in enumerate(files, 1):
        print(f"{number:3} {file}")
    print(f"{len(files)} files, entered {trace.entries} times")


if __name__ == "__main__":
    main()
