"""`task bench -- --shards 2 3 5`: what each shard of N costs, beside one operator that does all.

All manage the same resources on one API server, one division after the other: they start, every
BlueGreen is flipped and flipped back, and all rests. Then one of the shards is killed beside its
standby, while BlueGreens in namespaces all over are flipped: the answers tell for how long a
namespace was not served.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import yaml

from bench.scale import neutral
from hedgerow.shard import Shard
from hedgerow_testing.process import OperatorProcess
from hedgerow_testing.sandbox.cluster import Options, Sandbox
from hedgerow_testing.sandboxes import running
from hedgerow_testing.waiting import eventually

SHARD_MARKS = "<!-- shards -->", "<!-- /shards -->"
RESOURCES, NAMESPACES = 9000, 300
LARGEST = 0.1
"""The part of all resources that one namespace has."""
REST = 20.0
ROUNDS = 2
"""How often each BlueGreen is flipped and flipped back."""
PROBED = 24
"""Namespaces in which one BlueGreen is flipped all the time while a shard goes."""
PAUSE = 2.0
"""Seconds between an answer and the next flip: ever sooner, the probes take most of two cores."""
GOING = 3
"""With so many shards, one is killed."""
LEASE = 15.0
"""Seconds that a Lease lasts."""
CURRENT_TIMEOUT = 900.0
TICK = os.sysconf("SC_CLK_TCK")
COLUMNS = (
    *("shards", "CPU of one, at most, %", "in sum", "bytes of one, at most, %", "in sum"),
    *("memory of one, at most, %", "in sum", "CPU of the API server", "after a kill, s"),
)
PARTS = ("cpu_s", "bytes", "rss_mib")
MOST = {"cpu_s": 0.45, "rss_mib": 0.65}
"""How much each of three may take of what one operator takes that does all; memory is that above an
empty process."""
TAKEN_OVER = LEASE + 2.0
"""Seconds after a kill in which the standby serves what the shard did."""

Figures = dict[str, Any]
now = time.monotonic


def sizes(resources: int, namespaces: int) -> list[int]:
    """Return how many resources each namespace has: the first a tenth, the others ever fewer."""
    first = int(resources * LARGEST)
    weights = [1 / (rank + 20) for rank in range(namespaces - 1)]
    rest = [max(1, int((resources - first) * each / sum(weights))) for each in weights]
    rest[0] += resources - first - sum(rest)
    return [first, *rest]


class Answered(NamedTuple):
    """A change of a namespace, answered at an instant after so many seconds, or given up then."""

    namespace: str
    at: float
    took: float


def unanswered(answers: Iterable[Answered], since: float) -> Iterator[float]:
    """Yield for how many seconds namespaces gave no answer after an instant, pauses included."""
    last: dict[str, float] = {}
    for each in answers:
        if each.at > since:
            yield each.at - max(since, last.get(each.namespace, since))
        last[each.namespace] = each.at


class Relay(threading.Thread):
    """Passes the bytes of one process on to the API server, and counts them."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._to = port
        self._loop = asyncio.new_event_loop()
        self._up = threading.Event()
        self.port = self.bytes = 0

    def run(self) -> None:
        """Serve until the process ends."""
        self._loop.run_until_complete(self._serve())
        self._up.set()
        self._loop.run_forever()

    def opened(self) -> int:
        """Start, and return the port."""
        self.start()
        self._up.wait(10)
        return self.port

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]

    async def _accept(self, inner: asyncio.StreamReader, outer: asyncio.StreamWriter) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._to)
        await asyncio.gather(self._pass(inner, writer), self._pass(reader, outer))

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(1 << 16):
                self.bytes += len(data)
                target.write(data)
                await target.drain()
        target.close()


class Replica(OperatorProcess):
    """One process, which reaches the API server through a relay of its own."""

    def __init__(self, command: Sequence[str], sandbox: Sandbox, folder: Path, name: str) -> None:
        config = yaml.safe_load(sandbox.kubeconfig.read_text("utf-8"))
        cluster = config["clusters"][0]["cluster"]
        self.relay = Relay(int(cluster["server"].rpartition(":")[2]))
        cluster["server"] = f"https://127.0.0.1:{self.relay.opened()}"
        own = folder / f"{name}.kubeconfig"
        own.write_text(yaml.safe_dump(config), "utf-8")
        own.chmod(0o600)
        super().__init__(command, kubeconfig=own, log=folder / f"{name}.log")

    def memory(self) -> float:
        """Return its resident memory in MiB."""
        text = Path(f"/proc/{self.pid}/status").read_text("ascii")
        return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024  # type: ignore[index]


class Watched:
    """The BlueGreens of all namespaces, by a watch: which generation each status is about."""

    def __init__(self, run: Any, api: Any) -> None:
        self._news = threading.Condition()
        self._watch = run.Watch(api, run.BG, self._slim)
        self._watch.start()
        self._watch.ready.wait(60)

    def _slim(self, obj: Any) -> bool:
        status: Figures = obj.get("status") or {}
        with self._news:
            self._news.notify_all()
        return status.get("observedGeneration") == obj["metadata"]["generation"]

    def are_current(self) -> bool:
        """Return whether every status is about the present generation."""
        return all(list(self._watch.items.values()))

    def wait(self, key: tuple[str, str], until: float) -> bool:
        """Wait until a status is current."""
        while not self._watch.items.get(key, False):
            if now() > until:
                return False
            with self._news:
                self._news.wait(0.05)
        return True

    def stop(self) -> None:
        """End the watch."""
        self._watch.stopped = True


class Divided:
    """An API server with resources, and operators that manage them."""

    def __init__(self, command: str, sandbox: Sandbox, folder: Path) -> None:
        self._command, self._sandbox, self._folder = command.split(), sandbox, folder
        self._run = neutral()
        self._api = self._run.Api(str(sandbox.kubeconfig))
        self._chosen = ("--controllers", "bluegreen,memcached,cronjob")
        self._number = self._changes = 0

    def install(self) -> None:
        """Install the definitions."""
        own = {**os.environ, "KUBECONFIG": str(self._sandbox.kubeconfig)}
        command = [self._command[0], "install", *self._chosen]
        subprocess.run(command, check=True, env=own, stdout=subprocess.DEVNULL)
        self._namespace("hedgerow-system")

    def fill(self, resources: int, namespaces: int) -> None:
        """Create namespaces, and resources in them."""
        run, kinds = self._run, list(self._run.MAKE.values())
        wanted = list[tuple[str, int]]()
        for number, size in enumerate(sizes(resources, namespaces)):
            self._namespace(name := f"team-{number:03}")
            wanted += [(name, one) for one in range(size)]

        def create(place: tuple[str, int]) -> None:
            namespace, number = place
            resource, make, prefix = kinds[number % len(kinds)]
            body = make(namespace, f"{prefix}-{number}")
            self._api.call("POST", run.path(resource, namespace), body)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(create, wanted))

    def _namespace(self, name: str) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        self._api.call("POST", "/api/v1/namespaces", body)

    def measure(self, shards: int, *, going: bool = False) -> Figures:
        """Return what each of so many shards takes; 0 is one operator that does all.

        With `going`, also what is seen when one is killed.
        """
        watched = Watched(self._run, self._api)
        with ExitStack() as held:
            held.callback(watched.stop)
            team = [held.enter_context(self._replica(*each)) for each in flags(shards)]
            self._settle(team, watched)
            started = [one.cpu for one in team]
            read, server, before = [each.relay.bytes for each in team], self._server_cpu(), now()
            for _ in range(ROUNDS):
                for route in ("Green", "Blue"):
                    self._flip(route)
                    eventually(watched.are_current, CURRENT_TIMEOUT)
            flipped = now() - before
            time.sleep(REST)
            found = {
                "shards": shards,
                "start_cpu_s": [round(each, 2) for each in started],
                "start_bytes": read,
                "cpu_s": [
                    round(one.cpu - each, 2) for one, each in zip(team, started, strict=True)
                ],
                "bytes": [one.relay.bytes - each for one, each in zip(team, read, strict=True)],
                "rss_mib": [round(one.memory(), 1) for one in team],
                "flips_s": round(flipped, 1),
                "server_cpu_s": round(self._server_cpu() - server, 1),
            }
            return found | (self._going(held, team, watched) if going else {})

    def empty(self, *options: str) -> float:
        """Return the resident memory of an operator that has nothing to manage, in MiB."""
        with self._replica(*options) as alone:
            alone.wait_for("caches are filled", within=120)
            time.sleep(5)
            return round(alone.memory(), 1)

    def _going(self, held: ExitStack, team: list[Replica], watched: Watched) -> Figures:
        """Kill the first shard beside its standby."""
        names = (f"team-{number:03}" for number in range(NAMESPACES))
        first = Shard(0, len(team))
        probes = [name for name in names if first.serves(name)][:PROBED]
        standby = held.enter_context(self._replica(*flags(len(team))[0]))
        standby.wait_for("standing by", within=120)
        answers = list[Answered]()
        over = threading.Event()
        threads = [
            threading.Thread(target=self._probe, args=(name, watched, over, answers))
            for name in probes
        ]
        for each in threads:
            each.start()
        time.sleep(3 * PAUSE)
        usual, moment = median(each.took for each in answers), now()
        team[0].kill()
        time.sleep(2 * LEASE)
        over.set()
        for each in threads:
            each.join()
        return {
            "usual_s": round(usual, 3),
            "killed_s": round(max(unanswered(answers, moment)), 2),
        }

    def _probe(
        self, namespace: str, watched: Watched, over: threading.Event, answers: list[Answered]
    ) -> None:
        """Flip one BlueGreen again and again, and note how long each answer took."""
        run, name = self._run, "bg-0"
        api = run.Api(str(self._sandbox.kubeconfig))
        routes = ("Green", "Blue")
        number = 0
        while not over.wait(PAUSE) or number % 2:
            began = now()
            path = run.path(run.BG, namespace, name)
            api.merge(path, {"spec": {"routeTo": routes[number % 2]}})
            is_answered = watched.wait((namespace, name), began + 60)
            answers.append(Answered(namespace, now(), now() - began))
            if not is_answered:
                return
            number += 1

    def _flip(self, route: str) -> None:
        run = self._run
        listed = self._api.call("GET", "/".join(run.BG))["items"]
        keys = [(one["metadata"]["namespace"], one["metadata"]["name"]) for one in listed]

        def flip(key: tuple[str, str]) -> None:
            self._api.merge(run.path(run.BG, *key), {"spec": {"routeTo": route}})

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(flip, keys))

    def _settle(self, team: Sequence[Replica], watched: Watched) -> None:
        """Wait until each namespace is served, and nobody takes CPU any more."""
        eventually(lambda: self._served(watched), CURRENT_TIMEOUT)
        quiet = 0
        while quiet < 3:
            before = sum(one.cpu for one in team)
            time.sleep(2)
            quiet = quiet + 1 if sum(one.cpu for one in team) - before < 0.1 * len(team) else 0

    def _served(self, watched: Watched) -> bool:
        """Return whether a change in each tenth namespace is answered."""
        self._changes += 1
        for number in range(0, NAMESPACES, 10):
            path = self._run.path(self._run.BG, f"team-{number:03}", "bg-0")
            self._api.merge(path, {"spec": {"replicas": 1 + self._changes % 2}})
        return watched.are_current() or not eventually(watched.are_current, CURRENT_TIMEOUT)

    def _replica(self, *options: str) -> Replica:
        self._number += 1
        command = [*self._command, *self._chosen, *options]
        return Replica(command, self._sandbox, self._folder, f"replica-{self._number}")

    def _server_cpu(self) -> float:
        """Return the CPU seconds of this API server."""
        place = str(self._sandbox.directory).encode()
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                told = path.read_bytes()
                if b"kube-apiserver" in told.split(b"\0")[0] and place in told:
                    fields = path.with_name("stat").read_text("ascii").rpartition(")")[2].split()
                    return (int(fields[11]) + int(fields[12])) / TICK
        raise RuntimeError("the API server is not found")


def flags(shards: int) -> list[tuple[str, ...]]:
    """Return the options of each of so many shards; 0 is one operator that does all."""
    return [("--shard", f"{number}/{shards}") for number in range(shards)] or [("--leader-elect",)]


def divided(command: str, numbers: Sequence[int], kubernetes: str) -> list[Figures]:
    """Measure these numbers of shards beside one operator; print each as it comes."""
    found = list[Figures]()
    if not numbers:
        return found
    with tempfile.TemporaryDirectory(prefix="hedgerow-shards-") as name:
        folder = Path(name)
        with running(folder / "cluster", Options(kubernetes=kubernetes)) as sandbox:
            measured = Divided(command, sandbox, folder)
            measured.install()
            bare = measured.empty(), measured.empty(*flags(2)[0])
            measured.fill(RESOURCES, NAMESPACES)
            # The first one creates all children before it is measured.
            for number in (0, *numbers):
                row = measured.measure(number, going=number == GOING)
                found.append(row | {"bare_mib": bare[number > 0]})
                print(json.dumps(found[-1]), file=sys.stderr)
    return found


def table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of the table; each figure beside that of one operator without shards."""
    if not rows:
        return
    yield f"| {' | '.join(COLUMNS)} |"
    yield "|---|" + "--:|" * (len(COLUMNS) - 1)
    alone = rows[0]
    for row in rows:
        cells = [str(row["shards"] or "one operator, no shards")]
        for name in PARTS:
            parts = _parts(row, alone, name)
            cells += [f"{100 * max(parts):.0f}", f"{sum(parts):.2f}"]
        cells.append(f"{row['server_cpu_s'] / alone['server_cpu_s']:.2f}")
        cells.append(f"{row['killed_s']:.1f}" if "killed_s" in row else "")
        yield f"| {' | '.join(cells)} |"


def over(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each bound that three shards do not keep."""
    for row in rows:
        if row["shards"] != GOING:
            continue
        for name, most in MOST.items():
            worst = max(_parts(row, rows[0], name))
            if worst > most:
                yield f"{name} of one of {GOING} shards: {worst:.2f}, more than {most}"
        if row.get("killed_s", 0) > TAKEN_OVER:
            yield f"served again after {row['killed_s']} s, more than {TAKEN_OVER}"


def _parts(row: Mapping[str, Any], alone: Mapping[str, Any], name: str) -> list[float]:
    """Return what each shard takes of what one operator takes, above their empty processes."""
    less, least = (row["bare_mib"], alone["bare_mib"]) if name == "rss_mib" else (0.0, 0.0)
    return [(each - less) / (alone[name][0] - least) for each in row[name]]
