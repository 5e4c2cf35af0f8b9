"""Audit, as typed: `hedgerow audit --crds DIR --samples DIR -- COMMAND…`, any operator tried."""

from __future__ import annotations

from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import anyio.to_thread
import typer

from hedgerow.cli.exits import Exit
from hedgerow_testing.audit.cli.outputs import (
    FORMATS,
    TEXT,
    baselines,
    deliver,
    destinations,
    judged_by,
)
from hedgerow_testing.audit.engine import audit
from hedgerow_testing.audit.inputs import AUTHOR, read_inputs
from hedgerow_testing.audit.judging.baseline import varying
from hedgerow_testing.audit.judging.quiet import Pace
from hedgerow_testing.audit.judging.recorder import together
from hedgerow_testing.audit.judging.rules import BY_NAME
from hedgerow_testing.audit.machine import Attendant
from hedgerow_testing.progress import progress_shown
from hedgerow_tools import interrupts

if TYPE_CHECKING:
    from collections.abc import Callable

    from hedgerow_testing.audit.judging.baseline import AuditOutcome
    from hedgerow_testing.audit.judging.findings import AuditReport

ALL = "all"
PACE = Pace()

Command = Annotated[
    list[str],
    typer.Argument(
        metavar="-- COMMAND…",
        help="The operator, as it is started in the foreground. KUBECONFIG is set for it, and"
        " `{kubeconfig}` in a word stands for the file.",
        show_default=False,
    ),
]
Crds = Annotated[
    list[Path],
    typer.Option(
        metavar="DIR",
        exists=True,
        help="The operator's CustomResourceDefinitions: a directory or a file; may be repeated.",
    ),
]
Samples = Annotated[
    list[Path],
    typer.Option(
        metavar="DIR",
        exists=True,
        help="Resources as an author writes them, and what they need (Secrets, namespaces): a"
        " directory or a file; may be repeated. A finding appears only if a sample uses the feature"
        " behind it: a few that differ are best.",
    ),
]
Rights = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        exists=True,
        help="The operator's ClusterRoles and Roles; it gets exactly these rights; may be repeated."
        " If there are bindings too, only roles that are bound to a ServiceAccount count.",
        show_default="all rights",
    ),
]
Setup = Annotated[
    str,
    typer.Option(
        metavar="COMMAND",
        help="A shell's command line that prepares the cluster as its administrator, before the"
        " samples: certificates, namespaces, other definitions.",
        show_default="none",
    ),
]
Fields = Annotated[
    int,
    typer.Option(
        min=0,
        max=100,
        metavar="N",
        help="Fields of each sample that are really changed, each for some seconds; all are tried"
        " in dry runs.",
    ),
]
FailOn = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RULE,…",
        help="The rules whose findings fail the audit; commas or repeated, or `all`.",
        show_default="those marked with ✗",
    ),
]
Manager = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="The field manager of whoever applies the samples, as your deployment names it.",
    ),
]
Settle = Annotated[
    float,
    typer.Option(
        min=1,
        max=600,
        metavar="SECONDS",
        help="Without a change for so long the operator is taken to be quiet: more for one that"
        " waits for something that takes a while.",
    ),
]
Keep = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        file_okay=False,
        help="Keep what the report comes from: the operator's output, the objects, and the audit"
        " log, which has what Secrets hold.",
        show_default="none",
    ),
]
Repeat = Annotated[
    int,
    typer.Option(
        min=1,
        max=100,
        metavar="N",
        help="Audit so many times, and report what any of them finds; --write-baseline notes what"
        " varies.",
    ),
]
Kubernetes = Annotated[
    str,
    typer.Option(metavar="VERSION", help="A pinned version, such as 1.37.", show_default="newest"),
]
Baseline = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Findings that are known: they do not fail the audit; those that are gone are named.",
        show_default="none",
    ),
]
WriteBaseline = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write this audit's findings to a file for --baseline; from then on they are known.",
        show_default="none",
    ),
]
Output = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FORMAT[=FILE]",
        autocompletion=lambda: list(FORMATS),
        help="text, json or html, printed or, with `=FILE`, written to a file; may be repeated.",
        show_default=TEXT,
    ),
]


def audit_command(
    command: Command,
    *,
    crds: Crds,
    samples: Samples,
    rights: Rights = None,
    setup: Setup = "",
    fields: Fields = 6,
    manager: Manager = AUTHOR,
    settle: Settle = PACE.settle,
    repeat: Repeat = 1,
    keep: Keep = None,
    fail_on: FailOn = None,
    baseline: Baseline = None,
    write_baseline: WriteBaseline = None,
    kubernetes: Kubernetes = "",
    output: Output = None,
) -> None:
    """Try an operator, in any language, and tell how it treats the fields of others.

    The operator runs against a throwaway cluster of real servers on this machine. The samples are
    applied by a field manager, again unchanged, and with each field changed or removed;
    others write to the operator's objects; it is watched at rest. What the API server's audit log
    says of it is judged by rules. Takes some minutes. Nothing of it is left, Ctrl-C included.

    - `hedgerow audit --crds config/crd/bases --samples config/samples -- bin/manager`
    - `hedgerow audit --crds crds --samples samples --rights config/rbac/role.yaml -- kopf run
      operator.py`
    - `hedgerow audit --crds crds --samples samples --baseline known.txt -o html=audit.html --
      bin/manager`

    Exit codes: 0 no new finding of the rules that fail an audit, 3 some, 1 the report is partial,
    or nothing could be tried, 2 wrong usage, 130 interrupted.
    """
    chosen = _chosen(fail_on)
    wanted, files = destinations(output or ()), baselines(baseline, write_baseline)
    inputs = read_inputs(
        command, crds, samples, rights or None, setup=setup, fields=fields, manager=manager
    )
    reports: list[AuditReport] = []
    code = Exit.FAILED
    try:
        with progress_shown() as tell:
            for number in range(repeat):
                folder = keep / str(number + 1) if keep and repeat > 1 else keep
                if folder:
                    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                work = partial(
                    audit, inputs, pace=Pace.of(settle), kubernetes=kubernetes, keep=folder
                )
                interrupts.run(lambda work=work: _carried_out(work, tell, reports))
    finally:
        if reports:
            report = together(reports)
            outcome = judged_by(report, files, chosen, varying(reports))
            deliver(report, outcome, wanted)
            code = exit_code(report, outcome)
    raise typer.Exit(code)


async def _carried_out(
    work: Callable[..., AuditReport], tell: Callable[[str], None], reports: list[AuditReport]
) -> None:
    """Run an audit in a thread; if this is cancelled, it ends early, with a partial report."""
    attendant = Attendant(tell)
    async with anyio.create_task_group() as group:

        async def stop() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                attendant.stop.set()

        group.start_soon(stop)
        reports.append(await anyio.to_thread.run_sync(partial(work, attendant=attendant)))
        group.cancel_scope.cancel()


def exit_code(report: AuditReport, outcome: AuditOutcome) -> Exit:
    """Return the exit code: findings that fail it come before a report that is not whole."""
    if outcome.failing:
        return Exit.CONFLICT
    return Exit.FAILED if report.partial else Exit.DONE


def _chosen(fail_on: list[str] | None) -> tuple[str, ...] | None:
    """Return the rules that fail the audit; None: the usual ones. Raises BadParameter."""
    if fail_on is None:
        return None
    names = [name for part in fail_on for name in part.split(",") if name]
    for name in names:
        if name not in BY_NAME and name != ALL:
            near = get_close_matches(name, BY_NAME, 1)
            meant = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(BY_NAME)}"
            raise typer.BadParameter(f"there is no rule {name!r}{meant}", param_hint="--fail-on")
    return tuple(BY_NAME) if ALL in names else tuple(names)
