"""Audits on a real API server: each planted fault is found with its cause, and none is invented."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from hedgerow_testing.audit.engine import audit
from hedgerow_testing.audit.inputs import read_inputs
from hedgerow_testing.audit.judging.findings import AuditReport
from hedgerow_testing.audit.judging.quiet import Pace
from hedgerow_testing.audit_log import AuditLog
from hedgerow_testing.sandbox.cluster import Options
from hedgerow_testing.sandboxes import running
from support.objects import widgets

DEMO = "Widget.example.org/demo"
CONFIG, DEPLOYMENT = "ConfigMap/demo-widget", "Deployment.apps/demo-widget"
IMAGE = '.spec.template.spec.containers[name="main"].image'
FOREIGN = (
    ".data.audit-applied",
    *(
        f".metadata.{where}.audit.hedgerow.dev/{how}"
        for where in ("annotations", "labels")
        for how in ("applied", "edited")
    ),
)
REST = 3.0


OWN = ("bluegreen", "memcached", "cronjob", "guestbook")
OPERATOR = (sys.executable, "-m", "hedgerow", "run", "--controllers", ",".join(OWN))
MANIFESTS = Path("manifests")


class Case(NamedTuple):
    """An audit, by its fault: the findings by key, and the causes of the first."""

    keys: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    rest: float = REST
    settle: float = 1.2
    is_limited: bool = False
    """Whether it has no rights but those that it needs."""


CASES = {
    "forced-apply": Case(
        (f"reapply-conflict {DEMO} .spec.size",),
        ("forced-apply",),
    ),
    "drops-labels": Case(
        (
            *(f"foreign-field-lost {CONFIG} {path}" for path in FOREIGN),
            f"child-fight {CONFIG} .data.message",
            f"child-forced {CONFIG} .data.message",
        ),
        ("whole-object-update",),
    ),
    "takes-back": Case(
        tuple(
            f"{rule} {child}"
            for rule in ("child-fight", "child-forced")
            for child in (f"{CONFIG} .data.interval", f"{DEPLOYMENT} {IMAGE}")
        ),
        ("forced-apply",),
    ),
    "looks-away": Case(
        (
            *(
                f"child-silent {child} {how}"
                for how in ("apply", "edit")
                for child in (f"{CONFIG} .data.interval", f"{DEPLOYMENT} {IMAGE}")
            ),
            f"child-silent {CONFIG} .data.message removal",
            f"child-silent {DEPLOYMENT} .metadata.labels.widget removal",
        ),
    ),
    "heartbeat": Case(
        (f"writes-at-rest {DEMO}",),
        rest=30.0,
        is_limited=True,
    ),
    "hedgerow": Case(command=OPERATOR, settle=3.0),
}


def put_own(directory: Path) -> None:
    """Write hedgerow's own definitions and samples, with a schedule that is not due meanwhile."""
    names = sorted(MANIFESTS.joinpath("chart/definitions").glob("*_*.yaml"))
    definitions = "---\n".join(path.read_text("utf-8") for path in names)
    samples = [
        yaml.safe_load((MANIFESTS / f"samples/{name}.yaml").read_text("utf-8")) for name in OWN
    ]
    for sample in samples:
        if "schedule" in sample["spec"]:
            sample["spec"]["schedule"] = "@yearly"
    (directory / "crds.yaml").write_text(definitions)
    (directory / "samples.yaml").write_text(yaml.safe_dump_all(samples))


@pytest.fixture(scope="module")
def found(
    kubernetes: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[dict[str, AuditReport], AuditLog]]:
    """Audit all of them on one API server at the same time, each in a namespace of its own."""
    root = tmp_path_factory.mktemp("audits")
    log = root / "audit.log"
    options = Options(kubernetes=kubernetes, nodes=1, audit=log, responses=True)

    def audited(name: str) -> AuditReport:
        case, account = CASES[name], name.replace(" ", "-")
        directory = root / account
        directory.mkdir()
        files = widgets.put(directory)
        if name == "hedgerow":
            put_own(files)
        program = [sys.executable, widgets.PROGRAM, f"shop-{account}", name]
        inputs = read_inputs(
            case.command or list(map(str, program)),
            files / "crds.yaml",
            files / "samples.yaml",
            files / "rights.yaml" if case.is_limited else None,
            fields=2,
            namespace=f"shop-{account}",
        )
        pace = Pace(settle=case.settle, first=case.settle + 1, limit=60, rest=case.rest)
        return audit(inputs, pace=pace, sandbox=(sandbox, log), account=account)

    with running(root / "cluster", options) as sandbox, ThreadPoolExecutor(len(CASES)) as pool:
        reports = dict(zip(CASES, pool.map(audited, CASES), strict=True))
        yield reports, AuditLog(log)


@pytest.mark.parametrize("name", CASES)
def test_each_fault_is_found_with_its_cause_and_none_is_invented(
    found: tuple[dict[str, AuditReport], AuditLog], name: str
) -> None:
    """Fact: what each bad habit of a real process leaves in a real server's audit log."""
    report, case = found[0][name], CASES[name]

    assert report.partial == ""
    assert sorted(one.key for one in report.findings) == sorted(case.keys)
    if case.causes:
        first = next(one for one in report.findings if one.key == case.keys[0])
        assert first.causes == case.causes


def at(entry: dict[str, str]) -> str:
    received = datetime.fromisoformat(entry["requestReceivedTimestamp"])
    return received.isoformat(timespec="milliseconds")


def test_the_request_of_each_finding_is_in_the_audit_log(
    found: tuple[dict[str, AuditReport], AuditLog],
) -> None:
    """Fact: the server's audit log spells a request as the audit names it."""
    reports, log = found
    told = [
        (one.request.verb, one.request.uri, one.request.at)
        for report in reports.values()
        for one in report.findings
        if one.request
    ]
    logged = {(e["verb"], e["requestURI"], at(e)) for e in log.since()}

    assert told
    assert set(told) <= logged


def test_nothing_is_left_of_what_was_started(
    found: tuple[dict[str, AuditReport], AuditLog],
) -> None:
    """Fact: processes of operators end with the audit that began them."""
    left = [
        path
        for path in Path("/proc").glob("[1-9]*/cmdline")
        if str(widgets.PROGRAM).encode() in _read(path)
    ]

    assert len(found[0]) == len(CASES)
    assert left == []


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
