"""Machine: the sandbox, the operator in it, and waiting for it; all ends with the audit."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final

import yaml
from anyio.from_thread import start_blocking_portal

from hedgerow.deploy.manifest import to_yaml
from hedgerow.fields.redaction import HIDDEN
from hedgerow.files import opened, overwrite
from hedgerow.texts import numbered, printable
from hedgerow_testing.api import Api
from hedgerow_testing.audit.inputs import KUBECONFIG, OPERATOR, AuditError
from hedgerow_testing.audit.judging.quiet import Quiet
from hedgerow_testing.audit.log import Log
from hedgerow_testing.sandbox.cluster import Options, Sandbox
from hedgerow_testing.sandboxes import bind, grant
from hedgerow_testing.supervisor import Supervised, work
from hedgerow_tools.fields.concealing import concealed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from hedgerow_testing.audit.inputs import Inputs
    from hedgerow_testing.audit.judging.quiet import Pace

_STEP: Final = 0.05
MOST_OUTPUT: Final = 100 * 2**20
MOST_PROCESSES: Final = 300
SETUP: Final = 300.0
_TAIL: Final = 4000
_LINES: Final = 6
_BUSY: Final = 0.5
"""The part of the time from which on it is at work: a thread of it runs, or waits for a CPU."""
_ERROR: Final = re.compile(
    r"Traceback|^panic:|\b(?:ERROR|FATAL|CRITICAL|SEVERE)\b|\blevel=(?:error|fatal)"
    r"|\"level\":\s*\"(?:error|fatal)|^[EF]\d{4} |^\w[\w.]*(?:Error|Exception)\b"
)
"""A line of an operator's output that reports an error, as logging in most languages spells it."""
_TOKEN_SECONDS: Final = 24 * 3600
_HINTS: Final = (
    (
        ("tls.crt", "serving-certs", "webhook", "x509"),
        "it seems to want a webhook's certificate: let --setup make one, or switch webhooks off",
    ),
    (
        ("namespace", "POD_NAMESPACE"),
        "it seems to want a namespace: let --setup make it, or start `env POD_NAMESPACE=… COMMAND`",
    ),
    (
        ("in-cluster", "incluster", "KUBERNETES_SERVICE_HOST"),
        "it does not read KUBECONFIG: put `{kubeconfig}` into the command where it takes one",
    ),
)


class AuditEnd(Exception):  # noqa: N818 - it need be no error
    """Why an audit ends before it is whole, in one sentence."""


@dataclass(slots=True)
class Attendant:
    """Who started the audit: is told of progress, and may end it at any moment."""

    progress: Callable[[str], None] = lambda _: None
    stop: Event = field(default_factory=Event)

    def check(self) -> None:
        """Raise AuditEnd if the audit is to end."""
        if self.stop.is_set():
            raise AuditEnd("it was interrupted")

    def wait(self, seconds: float = _STEP) -> None:
        """Wait so long. Raises AuditEnd."""
        self.stop.wait(seconds)
        self.check()


@contextmanager
def raised(attendant: Attendant, kubernetes: str = "") -> Generator[tuple[Sandbox, Path]]:
    """Run a cluster of its own for one audit, and yield it with the file of its audit log."""
    root = Path(tempfile.mkdtemp(prefix="hedgerow-audit-"))
    sandbox, log = Sandbox(root / "cluster"), root / "audit.log"
    options = Options(kubernetes=kubernetes, nodes=1, audit=log, responses=True)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, root, ignore_errors=True)
        portal = stack.enter_context(start_blocking_portal())
        raising = portal.start_task_soon(sandbox.up, options, attendant.progress)
        try:
            while not raising.done():
                attendant.stop.wait(_STEP)
                if attendant.stop.is_set():
                    raising.cancel()
                    break
            raising.result()
        except CancelledError:
            raise AuditEnd("it was interrupted before the sandbox was up") from None
        stack.callback(sandbox.leash().release)
        stack.callback(portal.call, sandbox.down)
        yield sandbox, log


class Machine:
    """One operator, started and ended at will, with the administrator's connection beside it."""

    def __init__(
        self,
        inputs: Inputs,
        api: Api,
        log: Log,
        *,
        attendant: Attendant,
        pace: Pace,
        directory: Path,
        kubeconfig: Path,
    ) -> None:
        self.inputs, self.api, self.log = inputs, api, log
        self.attendant, self.pace = attendant, pace
        self.output = directory / "operator.log"
        self._kubeconfig = kubeconfig
        self._setup: Supervised | None = None
        self._process: Supervised | None = None
        self.looked, self._worked, self._asked = 0.0, dict[int, float](), 0
        self.began = time.monotonic()
        self._wait = Quiet(pace, self.began, pace.settle)
        self.version = str(api.raw("GET", "/version").body.get("gitVersion", "")).removeprefix("v")

    def setup(self, environment: Mapping[str, str]) -> None:
        """Run the command that prepares the cluster. Raises AuditEnd if it fails.

        What it leaves running runs until the end of the audit.
        """
        self.attendant.progress(f"setting up: {self.inputs.setup}")
        shell = ["/bin/sh", "-c", self.inputs.setup]
        self._setup = process = self._run(shell, environment)
        deadline = time.monotonic() + SETUP
        while (code := process.code()) is None:
            self.attendant.wait()
            if time.monotonic() > deadline:
                raise AuditEnd(f"--setup did not end in {SETUP:.0f} seconds{self.tail()}")
        if code:
            raise AuditEnd(f"--setup failed with exit code {code}{self.tail()}")

    def start(self) -> None:
        """Start the operator. Raises AuditEnd if its command cannot be run."""
        command = [part.replace(KUBECONFIG, str(self._kubeconfig)) for part in self.inputs.command]
        variables = {"KUBECONFIG": str(self._kubeconfig), "PYTHONUNBUFFERED": "1"}
        self._process = self._run(command, variables)

    def _run(self, command: Sequence[str], environment: Mapping[str, str]) -> Supervised:
        try:
            return Supervised(
                command, {**os.environ, **environment}, self.inputs.directory, self.output
            )
        except OSError as error:
            raise AuditEnd(
                f"the command does not start: {printable(command[0])}: {error.strerror}"
            ) from None

    def ready(self) -> None:
        """Wait until it watches, or, if it never watches, for its first requests."""
        began = time.monotonic()
        self._wait = wait = self._wait.next(began, self.pace.settle)
        while not self.log.watches:
            self.look()
            waited = time.monotonic() - began
            if self.log.traffic.requests and waited > self.pace.watch:
                break
            if waited > self.pace.start and wait.is_missed(time.monotonic()):
                raise AuditEnd(
                    f"it made no request in {self.pace.start:.0f} seconds; does it read KUBECONFIG,"
                    f" or take `{{kubeconfig}}` as an argument?{self.tail()}"
                )
        self._wait = Quiet(self.pace, time.monotonic(), self.pace.settle)

    def settle(self, seconds: float = 0.0) -> float | None:
        """Wait until it is quiet, and return when it began to be, in seconds from now.

        None: it did not become quiet within the limit.
        """
        now, is_first = time.monotonic(), bool(seconds)
        self._wait = wait = self._wait.next(now, max(seconds, self.pace.settle))
        while not wait.is_reached(time.monotonic(), is_idle=is_first and not self.log.changes):
            if wait.is_missed(time.monotonic()):
                return None
            self.look()
        return wait.last - wait.began

    def until(self, seconds: float, done: Callable[[], object]) -> bool:
        """Wait until something is so, at most so long, and look once at least; return whether."""
        deadline = time.monotonic() + seconds
        while not done():
            self.look()
            if time.monotonic() > deadline:
                return bool(done())
        return True

    def look(self) -> int:
        """Wait a moment, and return how much the operator changed. Raises AuditEnd."""
        self.attendant.wait()
        made, count, now = self.log.made, self.log.poll(), time.monotonic()
        if count:
            self._wait.change(now, is_made=self.log.made > made)
        if self.log.is_flooded(now - self.began):
            asked, wrote = self.log.traffic.requests, self.log.changes
            last = "".join(f", the last of {write.object}" for write in self.log.since(wrote - 1))
            raise AuditEnd(f"it floods the API server: {asked} requests, {wrote} changes{last}")
        if now - self.looked > 1:
            self._watch_over(now - self.looked)
            self.looked = now
        return count

    def _watch_over(self, seconds: float) -> None:
        """Raise AuditEnd if the operator ended, forks without end, or fills the disk."""
        if self.output.exists() and self.output.stat().st_size > MOST_OUTPUT:
            raise AuditEnd(f"it printed more than {MOST_OUTPUT // 2**20} MiB")
        process = self._process
        if process is None:
            return
        running, before = process.processes(), self._worked
        self._worked, asked = work(running), self.log.traffic.requests
        if any(now - before.get(tid, 0) > _BUSY * seconds for tid, now in self._worked.items()):
            self._wait.work(time.monotonic(), asks=asked > self._asked)
        self._asked = asked
        if len(running) > MOST_PROCESSES:
            raise AuditEnd(f"it forks without end: it runs {len(running)} processes")
        code = process.code()
        if code is None:
            return
        if running:
            raise AuditEnd(
                f"the command ended with exit code {code} and left processes behind;"
                " start the operator in the foreground"
            )
        raise AuditEnd(f"the operator ended with exit code {code}{self.tail()}")

    def errors(self) -> str:
        """Return how many lines of its output report an error, and the last of them."""
        count, last = 0, list[str]()
        if self.output.exists():
            with self.output.open(errors="replace") as lines:
                for line in lines:
                    if _ERROR.search(line):
                        count, last = count + 1, [*last[1 - _LINES :], printable(line.strip(), 300)]
        words = " | ".join(last)
        return (
            f"its output has {numbered(count, 'line')} of errors, the last: {words}" if last else ""
        )

    def keep(self, directory: Path) -> None:
        """Copy its output and the audit log, and write the objects as they are now."""
        for path, name in ((self.output, self.output.name), (self.log.path, "audit.log")):
            if path.exists():
                with path.open("rb") as source, opened(directory / name, "wb", 0o600) as target:
                    shutil.copyfileobj(source, target)
        objects = (concealed(state, lambda _: HIDDEN) for state in self.log.history.states())
        overwrite(directory / "objects.yaml", to_yaml(*objects), 0o600)

    def tail(self) -> str:
        """Return the last lines of its output, and what they hint at."""
        text = ""
        if self.output.exists():
            with self.output.open("rb") as file:
                file.seek(max(self.output.stat().st_size - _TAIL, 0))
                text = file.read().decode(errors="replace")
        lines = [printable(line, 300) for line in text.splitlines() if line.strip()][-_LINES:]
        if not lines:
            return "; it printed nothing"
        hint = next((h for words, h in _HINTS if any(word in text for word in words)), "")
        return f"{f'; {hint}' if hint else ''}; it printed last: {' | '.join(lines)}"

    def end(self) -> None:
        """End all that was started."""
        for process in (self._process, self._setup):
            if process is not None:
                process.end()


def account_of(name: str) -> str:
    """Return the user name of the operator's ServiceAccount."""
    return f"system:serviceaccount:{OPERATOR}:{name}"


@contextmanager
def machine(
    inputs: Inputs,
    sandbox: Sandbox,
    log: Path,
    *,
    attendant: Attendant,
    pace: Pace,
    account: str = "operator",
) -> Generator[Machine]:
    """Make the operator's account with its rights, and what is around it; start nothing yet."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hedgerow-audit-")))
        api = Api(sandbox.kubeconfig)
        stack.callback(api.close)
        authorize(api, inputs, account)
        with start_blocking_portal() as portal:
            token = portal.call(_token, sandbox, account)
        kubeconfig = placed(token, directory / "kubeconfig")
        made = Machine(
            inputs,
            api,
            Log(log, account_of(account)),
            attendant=attendant,
            pace=pace,
            directory=directory,
            kubeconfig=kubeconfig,
        )
        stack.callback(made.end)
        yield made


async def _token(sandbox: Sandbox, account: str) -> Path:
    return await sandbox.kubeconfig_for_service_account(OPERATOR, account, seconds=_TOKEN_SECONDS)


def placed(kubeconfig: Path, path: Path) -> Path:
    """Write a kubeconfig whose namespace is the operator's."""
    config: dict[str, Any] = yaml.safe_load(kubeconfig.read_text("utf-8"))
    config["contexts"][0]["context"]["namespace"] = OPERATOR
    overwrite(path, yaml.safe_dump(config), 0o600)
    return path


def authorize(api: Api, inputs: Inputs, account: str) -> None:
    """Make the operator's ServiceAccount, with its own rights, or with all there are."""
    api.namespace(OPERATOR)
    meta, manager = {"name": account, "namespace": OPERATOR}, "audit"
    api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}, manager).must()
    subject = {"kind": "ServiceAccount", **meta}
    if inputs.roles is None:
        bind(api, subject, "cluster-admin", f"audited-{account}", manager=manager)
        return
    for number, role in enumerate(inputs.roles):
        place = api.namespace(role.namespace) if role.namespace else ""
        name = f"audited-{account}-{number}"
        reply = grant(api, subject, role.rules, name, namespace=place, manager=manager)
        if not reply.ok:
            raise AuditError(f"the API server refused {role.title}: {reply.body.get('message')}")
