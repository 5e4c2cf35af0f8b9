"""Engine: one audit from the first request to the report."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from httpx import HTTPError

from hedgerow.texts import printable
from hedgerow_testing.audit.author import Author
from hedgerow_testing.audit.inputs import look_for_program, read_inputs
from hedgerow_testing.audit.judging.findings import Figures
from hedgerow_testing.audit.judging.quiet import Pace
from hedgerow_testing.audit.judging.recorder import FindingRecorder
from hedgerow_testing.audit.judging.rules import BY_NAME
from hedgerow_testing.audit.judging.traffic import at_rest
from hedgerow_testing.audit.machine import Attendant, AuditEnd, machine, raised
from hedgerow_testing.audit.others import Others

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hedgerow_testing.audit.inputs import Inputs
    from hedgerow_testing.audit.judging.findings import AuditReport
    from hedgerow_testing.audit.machine import Machine
    from hedgerow_testing.sandbox.cluster import Sandbox

_CALM: Final = Pace()
_LATE: Final = 5
"""How often it may make something while it is watched at rest, and is waited for again."""


def audit(
    inputs: Inputs,
    attendant: Attendant | None = None,
    *,
    pace: Pace = _CALM,
    kubernetes: str = "",
    sandbox: tuple[Sandbox, Path] | None = None,
    account: str = "operator",
    keep: Path | None = None,
) -> AuditReport:
    """Audit an operator, on a cluster of its own or on the given one with its audit log.

    Whatever happens, a report is returned, and nothing that was started lives on; `partial` says
    why the report is not whole. `keep` is a directory that takes what the report comes from: the
    operator's output, the audit log and the objects. Raises AuditError for rights that the server
    refuses, and for a program that is not there, before anything starts; SandboxError if there can
    be no cluster.
    """
    look_for_program(inputs)
    attendant, recorder = attendant or Attendant(), FindingRecorder()
    version = ""
    try:
        with ExitStack() as stack:
            attendant.progress("starting a cluster")
            where, log = sandbox or stack.enter_context(raised(attendant, kubernetes))
            made = stack.enter_context(
                machine(inputs, where, log, attendant=attendant, pace=pace, account=account)
            )
            version = made.version
            if keep:
                stack.callback(made.keep, keep)
            if inputs.setup:
                recorder.notes[f"--setup was run before the samples: {inputs.setup}"] = None
            Phases(made, recorder, where).run()
    except AuditEnd as end:
        recorder.partial = str(end)
    except (AssertionError, HTTPError, OSError) as error:
        # Of the API server, or of what the operator made of it; or the machine cannot do more.
        recorder.partial = f"the cluster did not answer as it should: {printable(str(error))}"
    return recorder.report(inputs.command, version)


class RunAudit(Protocol):
    """The type of the fixture `audit`."""

    def __call__(
        self,
        command: Sequence[str | Path],
        crds: str | Path,
        samples: str | Path,
        *,
        rights: str | Path | None = None,
        setup: str = "",
        fields: int = 6,
        cwd: Path | None = None,
    ) -> AuditReport:
        """Audit an operator on a cluster of its own, as `hedgerow audit` does; it takes minutes.

        `report.findings` are what was found, `report.failing()` those that fail an audit. Raises
        AuditError for files that are no definitions or samples, ManifestError for files that cannot
        be read.
        """
        ...


def run_audit(
    command: Sequence[str | Path],
    crds: str | Path,
    samples: str | Path,
    *,
    rights: str | Path | None = None,
    setup: str = "",
    fields: int = 6,
    cwd: Path | None = None,
    kubernetes: str = "",
) -> AuditReport:
    """Read the files, and audit the operator: what the fixture `audit` does."""
    inputs = read_inputs(
        [str(part) for part in command],
        Path(crds),
        Path(samples),
        None if rights is None else Path(rights),
        setup=setup,
        fields=fields,
        directory=cwd,
    )
    return audit(inputs, kubernetes=kubernetes)


class Phases:
    """The phases of an audit, in the order in which they disturb the operator least."""

    def __init__(self, made: Machine, recorder: FindingRecorder, sandbox: Sandbox) -> None:
        self._machine, self._recorder = made, recorder
        self._sandbox = sandbox
        self._author = Author(made, recorder)
        self._others = Others(made, recorder, self._author)
        self._quiet_after: float | None = None
        self._children: int | None = None

    def run(self) -> None:
        """Go through all phases. Raises AuditEnd; what was found by then is recorded."""
        try:
            self._phases()
        finally:
            self._end()

    def _phases(self) -> None:
        progress, log = self._machine.attendant.progress, self._machine.log
        progress("applying definitions and samples")
        if untried := ", ".join(self._machine.inputs.untried):
            self._recorder.notes[f"there is no sample of {untried}: nothing of it was tried"] = None
        self._author.define()
        if self._machine.inputs.setup:
            self._machine.setup(self._sandbox.environment())
        log.poll()
        self._author.begin()
        progress("starting the operator")
        if not self._started():
            return self._of_a_restless_one()
        progress(f"it is quiet; watching it at rest for {self._machine.pace.rest:.0f} seconds")
        self._at_rest()
        self._children = self._others.find()
        self._recorder.samples = self._author.views()
        progress("adding labels, annotations and keys of others to its objects")
        self._others.add()
        self._author.change()
        self._author.remove()
        self._others.look_for_lost()
        self._others.change()
        self._others.scale()
        self._others.delete()
        self._author.restore()
        self._at_deletion()
        return self._refuse_idleness()

    def _refuse_idleness(self) -> None:
        """Raise AuditEnd if the operator did nothing that could be judged, or fails at its work."""
        errors = self._machine.errors()
        if not self._machine.log.changes:
            raise AuditEnd(f"the operator wrote nothing that could be judged{self._machine.tail()}")
        if errors and not self._children:
            raise AuditEnd(f"the operator made no object, and {errors}")

    def _started(self) -> bool:
        """Start the operator, and return whether it became quiet."""
        began = time.monotonic()
        self._machine.start()
        self._machine.ready()
        self._author.begin_rest()
        ready = time.monotonic()
        settled = self._machine.settle(self._machine.pace.first)
        if settled is not None:
            self._quiet_after = ready - began + settled
        return settled is not None

    def _of_a_restless_one(self) -> None:
        """Look at what can be looked at while an operator writes on and on."""
        limit, written = self._machine.pace.limit, self._machine.log.since(0)
        begin = written[-1].request.at - limit / 2 if written else 0.0
        recent = (write for write in written if write.request.at > begin)
        when = f"in {limit / 2:.0f} seconds, and so on"
        self._recorder.add(*at_rest(recent, when))
        self._author.reapply()
        self._author.try_changes()
        self._recorder.samples = self._author.views()
        raise AuditEnd(
            f"the operator did not become quiet in {limit:.0f} seconds, so nothing was checked that"
            " needs to know when it is done"
        )

    def _at_rest(self) -> None:
        """Look whether it writes while nothing happens; dry runs are tried meanwhile.

        What it makes meanwhile it had not made yet: it is waited for, and watched again.
        """
        log, pace = self._machine.log, self._machine.pace
        began, mark, made = time.monotonic(), log.changes, log.made
        self._author.reapply()
        self._author.try_changes()
        for _ in range(_LATE):
            left = pace.rest - (time.monotonic() - began)
            if not self._machine.until(left, lambda made=made: log.made > made):
                break
            self._machine.settle(pace.first)
            began, mark, made = time.monotonic(), log.changes, log.made
        if log.changes > mark or time.monotonic() - began < pace.rest:
            self._machine.until(pace.rest, lambda: False)  # what is done once is not told
        took = time.monotonic() - began
        when = f"in {took:.0f} seconds in which nothing happened"
        self._recorder.add(*at_rest(log.since(mark), when))
        self._recorder.checked("writes-at-rest", f"{took:.0f} seconds")

    def _at_deletion(self) -> None:
        """Delete the samples, so that the operator cleans up while it is looked at."""
        self._machine.attendant.progress("deleting the samples")
        left = self._author.delete()
        if left:
            self._recorder.notes[f"{', '.join(left)} did not go when deleted"] = None

    def _end(self) -> None:
        """Record what the audit log tells by itself, whatever ended the audit."""
        log, recorder = self._machine.log, self._recorder
        log.poll()
        traffic = log.traffic
        recorder.add(*traffic.findings())
        if traffic.requests:
            recorder.checked("refused-requests", f"{traffic.requests} requests")
        if traffic.writes:
            recorder.checked("empty-writes", f"{traffic.writes} writes")
        if errors := self._machine.errors():
            recorder.notes[errors] = None
        if self._children == 0:
            for rule in BY_NAME:
                if BY_NAME[rule].group == "others":
                    recorder.unchecked(rule, "it made no object that is still there")
        recorder.figures = Figures(
            seconds=round(time.monotonic() - self._machine.began, 1),
            requests=traffic.requests,
            writes=traffic.writes,
            quiet_after=None if self._quiet_after is None else round(self._quiet_after, 1),
            children=self._children or 0,
            fields_tried=self._author.tried,
            fields_changed=self._author.changed,
        )
