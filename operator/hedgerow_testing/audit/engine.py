"""Engine: one audit from the first request to the report."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from httpx import HTTPError

from hedgerow.fields.canonical import identical
from hedgerow.texts import numbered, printable
from hedgerow_testing.audit.author import Author
from hedgerow_testing.audit.inputs import look_for_program, read_inputs
from hedgerow_testing.audit.judging.access import GrantedRights
from hedgerow_testing.audit.judging.findings import Figures, Finding
from hedgerow_testing.audit.judging.history import identified
from hedgerow_testing.audit.judging.recorder import FindingRecorder
from hedgerow_testing.audit.judging.rules import BY_NAME
from hedgerow_testing.audit.judging.traffic import by_object
from hedgerow_testing.audit.machine import Attendant, AuditEnd, Pace, machine, raised
from hedgerow_testing.audit.others import Others

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hedgerow_testing.audit.inputs import Inputs
    from hedgerow_testing.audit.judging.findings import AuditedObject, AuditReport
    from hedgerow_testing.audit.machine import Machine
    from hedgerow_testing.sandbox.cluster import Sandbox

_CALM: Final = Pace()
_AFTER_CUT: Final = 6.0


def audit(
    inputs: Inputs,
    attendant: Attendant | None = None,
    *,
    pace: Pace = _CALM,
    kubernetes: str = "",
    sandbox: tuple[Sandbox, Path] | None = None,
    account: str = "operator",
) -> AuditReport:
    """Audit an operator, on a cluster of its own or on the given one with its audit log.

    Whatever happens, a report is returned, and nothing that was started lives on; `partial` says
    why the report is not whole. Raises AuditError for rights that the server refuses, and for a
    program that is not there, before anything starts; SandboxError if there can be no cluster.
    """
    look_for_program(inputs)
    attendant, recorder = attendant or Attendant(), FindingRecorder()
    version = ""
    with ExitStack() as stack:
        try:
            attendant.progress("starting a cluster")
            where, log = sandbox or stack.enter_context(raised(attendant, kubernetes))
            access = None if inputs.roles is None else GrantedRights(inputs.roles)
            made = stack.enter_context(
                machine(
                    inputs,
                    where,
                    log,
                    attendant=attendant,
                    pace=pace,
                    access=access,
                    account=account,
                )
            )
            version = made.version
            if inputs.setup:
                recorder.notes[f"--setup was run before the samples: {inputs.setup}"] = None
            Phases(made, recorder, access, where).run()
        except AuditEnd as end:
            recorder.partial = str(end)
        except (AssertionError, HTTPError) as error:
            # Of the API server, or of what the operator made of it.
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

    def __init__(
        self,
        made: Machine,
        recorder: FindingRecorder,
        access: GrantedRights | None,
        sandbox: Sandbox,
    ) -> None:
        self._machine, self._recorder, self._access = made, recorder, access
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
        self._children = self._others.find()
        progress(f"it is quiet; watching it at rest for {self._machine.pace.rest:.0f} seconds")
        self._at_rest()
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
        self._at_restart()
        self._at_cut()
        self._at_kill()
        return self._at_deletion()

    def _started(self) -> bool:
        """Start the operator, and return whether it became quiet."""
        log, began = self._machine.log, time.monotonic()
        watches, requests = log.watches, log.traffic.requests
        self._machine.start()
        self._machine.ready(watches, requests)
        settled = self._machine.settle(self._machine.pace.first)
        self._recorder.checked("never-quiet", f"{self._machine.pace.limit:.0f} seconds at most")
        if settled is None:
            return False
        if self._quiet_after is None:
            self._quiet_after = time.monotonic() - began - self._machine.pace.first
        return True

    def _of_a_restless_one(self) -> None:
        """Look at what can be looked at while an operator writes on and on."""
        limit = self._machine.pace.limit
        self._restless(f"within {limit:.0f} seconds after its start")
        self._author.reapply()
        self._author.try_changes()
        self._recorder.samples = self._author.views()
        raise AuditEnd(
            f"the operator did not become quiet in {limit:.0f} seconds, so nothing was checked that"
            " needs to know when it is done"
        )

    def _restless(self, when: str) -> None:
        """Record what an operator writes on and on."""
        written = self._machine.log.since(0)
        begin = written[-1].request.at - self._machine.pace.limit / 2 if written else 0.0
        recent = [write for write in written if write.request.at > begin]
        self._recorder.add(by_object("never-quiet", recent, f"without an end {when}"))

    def _at_rest(self) -> None:
        """Look whether it writes while nothing happens; dry runs are tried meanwhile."""
        traffic, rest = self._machine.log.traffic, self._machine.pace.rest
        traffic.rest(begins=True)
        began = time.monotonic()
        mark = self._machine.log.writes
        self._author.reapply()
        self._author.try_changes()
        self._machine.until(rest - (time.monotonic() - began), lambda: False)
        if self._machine.log.writes > mark:
            # It may have been late with what it was at: only what goes on is told.
            began, mark = time.monotonic(), self._machine.log.writes
            self._machine.until(rest, lambda: False)
        took = time.monotonic() - began
        traffic.rest(begins=False)
        written = self._machine.log.since(mark)
        when = f"in {took:.0f} seconds in which nothing happened"
        self._recorder.add(by_object("writes-at-rest", written, when, took))
        self._recorder.checked("writes-at-rest", f"{took:.0f} seconds")

    def _at_restart(self) -> None:
        self._machine.attendant.progress("restarting it")
        if self._machine.terminate() is None:
            self._recorder.notes["it did not end in 30 seconds after SIGTERM, and was killed"] = (
                None
            )
        mark = self._machine.log.writes
        if not self._started():
            self._restless("after a restart")
        written = self._machine.log.since(mark)
        self._recorder.add(by_object("writes-at-restart", written, "by a restart"))
        self._recorder.checked("writes-at-restart", "1 restart")

    def _at_cut(self) -> None:
        self._machine.attendant.progress("cutting its watches")
        log = self._machine.log
        mark, watches = log.writes, log.watches
        cut = self._machine.cut()
        if not cut:
            return self._recorder.unchecked("writes-after-watch-cut", "it had no connection open")
        self._machine.until(_AFTER_CUT, lambda: log.watches > watches)
        self._machine.settle()
        written = log.since(mark)
        self._recorder.add(
            by_object("writes-after-watch-cut", written, "after its watches were cut")
        )
        return self._recorder.checked("writes-after-watch-cut", numbered(cut, "connection"))

    def _at_kill(self) -> None:
        """Kill it at its first write after a change, and look where it ends after a start.

        The same change without a kill comes first: where that does not lead back to what was there,
        nothing can be told of the child.
        """
        was = self._others.contents()
        if not self._author.change_something():
            return self._recorder.unchecked(
                "writes-after-kill", "there was no change that the author could make"
            )
        self._machine.settle()
        self._author.change_back()
        self._machine.settle()
        whole = self._others.contents()
        self._machine.attendant.progress("killing it in the middle of a change")
        self._author.change_something()
        self._machine.settle()
        before = self._generated()
        log = self._machine.log
        mark = log.writes
        self._author.change_back()
        self._machine.until(_FIRST_WRITE, lambda: log.writes > mark)
        self._machine.kill()
        if not self._started():
            self._restless("after it was killed in the middle of a change")
        for about, count in (self._generated() - before).items():
            if count > 1:
                detail = f"SIGKILL in the middle of one change left {count} more of them"
                self._recorder.add((Finding("writes-after-kill", about, detail, count=count),))
        now = self._others.contents()
        for about, content in whole.items():
            if identical(was.get(about), content) and not identical(now.get(about), content):
                how = "is gone" if now.get(about) is None else "differs from what it is without"
                detail = f"after SIGKILL in the middle of a change it {how}"
                self._recorder.add((Finding("writes-after-kill", about, detail),))
        return self._recorder.checked("writes-after-kill", "1 change")

    def _generated(self) -> Counter[AuditedObject]:
        """Count the objects with generated names: only of them can there be more than is meant."""
        self._machine.log.poll()
        history = self._machine.log.history
        found = (
            replace(identified(state, key), name="")
            for key in self._machine.log.children
            if (state := history.state(key)) is not None
        )
        return Counter(one for one in found if one.generated)

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
        if log.is_flooded:
            self._restless("until the audit was given up")
        recorder.add(traffic.findings())
        if traffic.requests:
            for rule in _OF_THE_LOG:
                recorder.checked(rule, f"{traffic.requests} requests")
        self._judge_rights()
        if self._children == 0:
            for rule in BY_NAME:
                if BY_NAME[rule].group == "others":
                    recorder.unchecked(rule, "it made no object that is still there")
        tried, changed = self._author.figures
        recorder.figures = Figures(
            seconds=round(time.monotonic() - self._machine.began, 1),
            requests=traffic.requests,
            writes=traffic.writes,
            most_per_second=traffic.most_per_second,
            quiet_after=None if self._quiet_after is None else round(self._quiet_after, 1),
            children=self._children or 0,
            fields_tried=tried,
            fields_changed=changed,
        )

    def _judge_rights(self) -> None:
        if self._access is None:
            why = "without --rights it may do everything"
            for rule in ("unused-rights", "wildcard-rights"):
                self._recorder.unchecked(rule, why)
        elif self._machine.log.traffic.requests:
            self._recorder.add(self._access.findings())
            for rule in ("unused-rights", "wildcard-rights"):
                self._recorder.checked(rule, f"{self._access.count} rights")


_FIRST_WRITE: Final = 2.0
_OF_THE_LOG: Final = (
    "empty-writes",
    "repeated-requests",
    "request-burst",
    "refused-requests",
    "delete-without-uid",
    "update-without-version",
    "forced-writes",
)
