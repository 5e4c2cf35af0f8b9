"""What surrounds an audited operator: its files, its process, and its way to the API server."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import yaml

from hedgerow.deploy.manifest import ManifestError
from hedgerow.encoding import encode
from hedgerow_testing.api import Reply
from hedgerow_testing.audit import machine as module
from hedgerow_testing.audit.engine import audit
from hedgerow_testing.audit.inputs import OPERATOR, AuditError, look_for_program, read_inputs
from hedgerow_testing.audit.judging.quiet import Pace
from hedgerow_testing.audit.log import Log
from hedgerow_testing.audit.machine import Attendant, AuditEnd, Machine
from hedgerow_testing.waiting import eventually
from support.objects import widgets
from support.objects.audited import entry, widget

SOON = Pace(settle=0.1, first=0.1, limit=0.5, start=0.3, watch=0.1)


class Unasked:
    """An API server that is asked for its version, and takes what is applied."""

    def __init__(self, code: int = 200) -> None:
        self.applied: list[dict[str, Any]] = []
        self._code = code

    def raw(self, _method: str, _path: str) -> Reply:
        return Reply(200, {"gitVersion": "v1.37.2"})

    def namespace(self, name: str) -> str:
        return name

    def apply(self, manifest: dict[str, Any], _manager: str) -> Reply:
        self.applied.append(manifest)
        refused = manifest["kind"].endswith("Role")
        return Reply(self._code if refused else 200, {"message": "escalation"})


def files(directory: Path, **texts: str) -> dict[str, Path]:
    widgets.put(directory)
    found = {name: directory / f"{name}.yaml" for name in ("crds", "samples", "rights")}
    for name, text in texts.items():
        found[name].write_text(text)
    return found


class TestInputs:
    def test_files_and_directories_are_read(self, tmp_path):
        found = files(tmp_path)
        more = tmp_path / "more"
        more.mkdir()
        listed = {"apiVersion": "v1", "kind": "List", "items": [widgets.SAMPLE]}
        texts = {
            "b.yaml": yaml.safe_dump(listed) + "---\n",
            "a.yml": "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: own}}",
            "c.json": '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "own"}}',
            "kustomization.yaml": "resources: [a.yml]",
            "other.yaml": "{apiVersion: x/v1, kind: Kustomization}",
            "below/d.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}",
            "notes.txt": "{{ }}",
        }
        (more / "below").mkdir()
        for name, text in texts.items():
            (more / name).write_text(text)

        inputs = read_inputs(["run"], found["crds"], more, found["rights"], setup="make")

        kinds = [(o["kind"], o["metadata"].get("namespace")) for o in inputs.samples]
        assert kinds == [
            ("Namespace", None),
            ("Secret", "own"),
            ("ConfigMap", "audit-samples"),
            ("Widget", "audit-samples"),
        ]
        assert [Path(name).name for name in inputs.files] == ["c.json", "a.yml", "d.yaml", "b.yaml"]
        assert inputs.schema("example.org/v1", "Widget")["required"] == ["spec"]
        assert inputs.schema("example.org/v2", "Widget") == {}
        assert inputs.schema("v1", "Secret") == {}
        assert inputs.roles
        assert inputs.roles[0].title == "ClusterRole widgets"
        assert inputs.setup == "make"
        assert inputs.untried == ()

    def test_what_is_given_several_times_counts_together(self, tmp_path):
        found = files(tmp_path)
        other = tmp_path / "other.yaml"
        other.write_text("{apiVersion: v1, kind: Secret, metadata: {name: s}}")

        both = read_inputs(["run"], [found["crds"]], [found["samples"], other], [found["rights"]])
        one = read_inputs(["run"], found["crds"], other)

        assert {sample["kind"] for sample in both.samples} >= {"Secret", "Widget"}
        assert (both.untried, one.untried) == ((), ("Widget",))

    def test_a_role_is_in_its_namespace_or_in_the_operators(self, tmp_path):
        roles = [
            {"apiVersion": "x/v1", "kind": "Role", "metadata": {"name": "r", **meta}}
            for meta in ({}, {"namespace": "shop"})
        ]
        found = files(tmp_path, rights=yaml.safe_dump_all(roles))

        inputs = read_inputs(["run"], found["crds"], found["samples"], found["rights"])

        assert inputs.roles
        assert [one.namespace for one in inputs.roles] == [OPERATOR, "shop"]

    def test_of_roles_and_bindings_those_of_an_account_count(self, tmp_path):
        def bound(kind: str, role: str, subject: str, **meta: str) -> dict[str, Any]:
            ref = {"kind": "ClusterRole", "name": role}
            meta = {"name": "b", **meta}
            subjects = [{"kind": subject, "name": "x"}]
            return {"apiVersion": "x/v1", "kind": kind, "metadata": meta, "roleRef": ref} | {
                "subjects": subjects
            }

        person = {"apiVersion": "x/v1", "kind": "ClusterRole", "metadata": {"name": "editor"}}
        objects = [
            widgets.role(),
            person,
            bound("ClusterRoleBinding", "widgets", "ServiceAccount"),
            bound("RoleBinding", "widgets", "ServiceAccount", namespace="shop"),
            bound("ClusterRoleBinding", "editor", "Group"),
        ]
        found = files(tmp_path, rights=yaml.safe_dump_all(objects))

        inputs = read_inputs(["run"], found["crds"], found["samples"], found["rights"])

        assert inputs.roles
        assert [one.title for one in inputs.roles] == [
            "ClusterRole widgets",
            "Role shop/widgets",
        ]
        found["rights"].write_text(yaml.safe_dump_all(objects[1:]))
        with pytest.raises(AuditError, match="binds the ClusterRole widgets, which is not in it"):
            read_inputs(["run"], found["crds"], found["samples"], found["rights"])

    ROLE = "{apiVersion: v1, kind: ClusterRole, metadata: {name: r}, aggregationRule: {a: b}}"
    ODD = {
        "no definition": ({"crds": yaml.safe_dump(widgets.SAMPLE)}, "has no CustomResourceDef"),
        "no sample": ({"samples": "---\n"}, "has no object"),
        "a template": ({"samples": "a: {{ .Values.a }}"}, "samples.yaml: line 1"),
        "no object": ({"samples": "[1]"}, "holds no Kubernetes object"),
        "no kind": ({"samples": "{apiVersion: v1}"}, "without apiVersion and kind"),
        "no name": ({"samples": "{apiVersion: v1, kind: A}"}, "a A has no metadata.name"),
        "no role": ({"rights": yaml.safe_dump(widgets.SAMPLE)}, "has no ClusterRole and no Role"),
        "a role of others": ({"rights": ROLE}, "is put together from others"),
    }

    @pytest.mark.parametrize(("texts", "told"), ODD.values(), ids=list(ODD))
    def test_what_is_missing_is_said(self, tmp_path, texts, told):
        found = files(tmp_path, **texts)

        with pytest.raises((AuditError, ManifestError), match=told):
            read_inputs(["run"], found["crds"], found["samples"], found["rights"])

    def test_without_a_command_and_without_text_nothing_begins(self, tmp_path):
        found = files(tmp_path)
        with pytest.raises(AuditError, match="no command is given"):
            read_inputs([], found["crds"], found["samples"])

        found["samples"].write_bytes(b"\xff")
        with pytest.raises(ManifestError, match="no text in UTF-8"):
            read_inputs(["run"], found["crds"], found["samples"])


class TestLog:
    def test_it_begins_at_its_end_and_reads_whole_lines(self, tmp_path):
        path = tmp_path / "log"
        path.write_bytes(b'{"before": ')
        log = Log(path, "operator")

        made = entry("create", widget(), user="operator", code=201, name="")
        lines = [
            b"1}",
            encode({**entry("watch", user="operator"), "stage": "ResponseStarted"}),
            encode({**entry("watch", user="other"), "stage": "ResponseStarted"}),
            encode(made),
            encode(entry("patch", {"type": "Warning"}, user="operator", resource="events")),
            encode(entry("patch", {"type": "Normal"}, user="operator", resource="events")),
            encode(entry("patch", widget(), user="other")),
            b'{"half": ',
        ]
        with path.open("ab") as file:
            file.write(b"\n".join(lines))

        assert log.poll() == 1
        assert (log.watches, log.warnings, log.changes, log.traffic.requests) == (1, 1, 1, 3)
        assert list(log.children) == [("example.org", "widgets", "shop", "demo")]
        assert [one.request.verb for one in log.since(0)] == ["create"]
        assert log.since(1) == []
        assert log.poll() == 0

    @pytest.mark.parametrize(
        ("requests", "changes", "seconds", "is_flooded"),
        [
            (100_001, 0, 10, True),
            (0, 5001, 10, True),
            (90_000, 4900, 10, False),
            (400_001, 0, 1000, True),
            (130_000, 0, 1000, False),
        ],
    )
    def test_a_flood_is_a_rate(self, tmp_path, requests, changes, seconds, is_flooded):
        (tmp_path / "log").touch()
        log = Log(tmp_path / "log", "operator")
        log.traffic.requests, log.changes = requests, changes

        assert log.is_flooded(seconds) is is_flooded


@pytest.fixture
def started(tmp_path) -> Any:
    """Return what makes a machine with this command, which ends with the test."""
    made: list[Machine] = []

    def start(*command: str, setup: str = "") -> Machine:
        found = files(tmp_path)
        inputs = read_inputs(command, found["crds"], found["samples"], setup=setup)
        (tmp_path / "audit.log").touch()
        one = Machine(
            inputs,
            Unasked(),  # type: ignore[arg-type]
            Log(tmp_path / "audit.log", "operator"),
            attendant=Attendant(),
            pace=SOON,
            directory=tmp_path,
            kubeconfig=tmp_path / "kubeconfig",
        )
        made.append(one)
        return one

    yield start
    for one in made:
        one.end()


class TestMachine:
    def test_the_operator_gets_its_kubeconfig(self, started, tmp_path):
        machine = started("sh", "-c", 'echo "$KUBECONFIG {kubeconfig}"; exec sleep 60')
        machine.start()
        eventually(lambda: machine.output.exists() and machine.output.read_text().strip())

        assert machine.output.read_text().split() == [str(tmp_path / "kubeconfig")] * 2
        assert machine.version == "1.37.2"

    ENDS = {
        "a crash": ("echo tls.crt is missing; exit 3", "exit code 3; it seems to want a webhook's"),
        "no namespace": ("echo namespace x not found; exit 1", "it seems to want a namespace"),
        "no kubeconfig": ("echo KUBERNETES_SERVICE_HOST; exit 1", "does not read KUBECONFIG"),
        "no word": ("exit 1", "ended with exit code 1; it printed nothing"),
        "other words": ("echo sorry; exit 1", "exit code 1; it printed last: sorry"),
        "a daemon": ("sleep 60 & exit 0", "left processes behind; start the operator in the fore"),
    }

    @pytest.mark.parametrize(("script", "told"), ENDS.values(), ids=list(ENDS))
    def test_why_it_ended_is_told(self, started, script, told):
        machine = started("sh", "-c", script)
        machine.start()

        with pytest.raises(AuditEnd, match=told):
            machine.until(20, lambda: False)

    def test_what_cannot_be_run_is_told(self, started):
        with pytest.raises(AuditEnd, match="the command does not start: /no/such: No such file"):
            started("/no/such").start()

    def test_bounds_are_kept(self, started, monkeypatch):
        machine = started("sleep", "60")
        machine.start()
        for bound, told in (("MOST_PROCESSES", "forks without end"), ("MOST_OUTPUT", "printed")):
            monkeypatch.setattr(module, bound, -1)
            machine.looked = 0.0
            with pytest.raises(AuditEnd, match=told):
                machine.until(5, lambda: False)
        machine.log.changes = 10_000
        with pytest.raises(AuditEnd, match="floods"):
            machine.look()

    def test_it_is_ready_when_it_watches_or_has_asked_for_long(self, started):
        machine = started("sleep", "60")
        machine.start()
        with pytest.raises(AuditEnd, match="made no request in 0 seconds"):
            machine.ready()

        machine.log.traffic.requests = 1
        machine.ready()
        machine.log.watches = 1
        machine.ready()

    def test_it_is_quiet_when_nothing_was_changed_for_a_while(self, started, tmp_path):
        machine = started("sh", "-c", "while :; do :; done")
        over = Event()

        def write() -> None:
            while not over.wait(0.02):
                with (tmp_path / "audit.log").open("ab") as file:
                    file.write(encode(entry("patch", widget(), user="operator")) + b"\n")

        writer = Thread(target=write)
        writer.start()
        try:
            assert machine.settle() is None
        finally:
            over.set()
            writer.join()
        assert machine.settle() is not None

    def test_a_pause_before_an_object_counts_in_any_wait(self, started, tmp_path):
        machine = started("sleep", "60")
        assert machine.settle() is not None

        machine.until(1, lambda: False)
        line = encode(entry("create", widget(), user="operator", code=201)) + b"\n"
        (tmp_path / "audit.log").write_bytes(line)
        machine.until(20, lambda: machine.log.made)

        assert machine.settle() is None  # twice the pause is longer than its limit

    def test_a_wait_that_is_over_reads_what_has_come(self, started, tmp_path):
        machine = started("true")
        line = encode(entry("create", widget(), user="operator", code=201)) + b"\n"
        (tmp_path / "audit.log").write_bytes(line)

        assert machine.until(-1, lambda: machine.log.made)

    def test_errors_in_its_output_are_told(self, started):
        machine = started("true")
        assert machine.errors() == ""
        lines = [
            "INFO all is well, 0 errors",
            *(f"time=1 level=error msg={n}" for n in range(9)),
            "Traceback (most recent call last):",
            '  File "x", line 1',
            "KeyError: 'spec'\x1b[2J",
            'E1129 05:00:00.0 1 x.go:1] "failed"',
            '{"level":"error","ts":1}',
        ]
        machine.output.write_text("\n".join(lines))

        told = machine.errors()
        assert told.startswith("its output has 13 lines of errors, the last: time=1 level=error")
        assert "KeyError: 'spec'\\u001b[2J" in told
        assert "well" not in told

    def test_what_a_report_comes_from_is_kept(self, started, tmp_path):
        machine = started("true")
        machine.output.write_text("hello\n")
        secret = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"password": "c2VjcmV0"}}
        with (tmp_path / "audit.log").open("ab") as file:
            file.write(encode(entry("create", secret, user="operator")) + b"\n")
        machine.log.poll()
        folder = tmp_path / "kept"
        folder.mkdir()

        machine.keep(folder)

        assert (folder / "operator.log").read_text() == "hello\n"
        assert (folder / "audit.log").read_bytes() == (tmp_path / "audit.log").read_bytes()
        assert "password: (hidden)" in (folder / "objects.yaml").read_text()
        assert {one.stat().st_mode & 0o777 for one in folder.iterdir()} == {0o600}

    def test_setup_is_run_to_its_end_and_its_failure_told(self, started, monkeypatch):
        started("true", setup="test -n $A").setup({"A": "b"})
        with pytest.raises(AuditEnd, match="--setup failed with exit code 7; it printed last: no"):
            started("true", setup="echo no; exit 7").setup({})
        monkeypatch.setattr(module, "SETUP", 0.1)
        with pytest.raises(AuditEnd, match="--setup did not end"):
            started("true", setup="sleep 60").setup({})

    def test_an_attendant_ends_it_at_any_moment(self, started):
        machine = started("sleep", "60")
        machine.attendant.stop.set()
        began = time.monotonic()

        with pytest.raises(AuditEnd, match="it was interrupted"):
            machine.settle(60)
        assert time.monotonic() - began < 30


class TestRights:
    def test_without_a_file_it_may_do_everything(self, tmp_path):
        found, api = files(tmp_path), Unasked()

        module.authorize(api, read_inputs(["run"], found["crds"], found["samples"]), "x")  # type: ignore[arg-type]

        assert [one["kind"] for one in api.applied] == ["ServiceAccount", "ClusterRoleBinding"]
        assert api.applied[1]["roleRef"]["name"] == "cluster-admin"

    def test_with_one_it_has_these_rights_and_no_others(self, tmp_path):
        role = {"apiVersion": "x/v1", "kind": "Role", "metadata": {"name": "r"}, "rules": []}
        found = files(tmp_path, rights=yaml.safe_dump_all([role, widgets.role()]))
        inputs = read_inputs(["run"], found["crds"], found["samples"], found["rights"])
        api = Unasked()

        module.authorize(api, inputs, "x")  # type: ignore[arg-type]

        kinds = [one["kind"] for one in api.applied[1:]]
        assert kinds == ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"]
        assert api.applied[2]["metadata"]["namespace"] == OPERATOR
        with pytest.raises(AuditError, match="refused Role audited-operator/r: escalation"):
            module.authorize(Unasked(422), inputs, "x")  # type: ignore[arg-type]

    def test_the_kubeconfig_has_the_operators_namespace(self, tmp_path):
        given = tmp_path / "given"
        given.write_text(
            yaml.safe_dump(
                {
                    "contexts": [{"context": {}}],
                }
            )
        )

        made = module.placed(given, tmp_path / "made")

        config = yaml.safe_load(made.read_text())
        assert config["contexts"][0]["context"]["namespace"] == OPERATOR
        assert made.stat().st_mode & 0o777 == 0o600


class TestProgram:
    """It is looked for before anything starts: a cluster takes a minute."""

    @pytest.fixture
    def found(self, tmp_path):
        return files(tmp_path)

    def inputs(self, found, *command: str, **more: Any):
        return read_inputs(command, found["crds"], found["samples"], **more)

    @pytest.mark.parametrize("program", ["./nope", "/no/such", "no-such-program"])
    def test_one_that_is_not_there_is_told(self, found, program):
        with pytest.raises(AuditError, match=f"does not start: {program} is not there"):
            audit(self.inputs(found, program))

    def test_neither_is_one_that_may_not_be_run(self, found, tmp_path):
        (tmp_path / "manager").write_text("#!/bin/sh\n", encoding="utf-8")
        with pytest.raises(AuditError, match="may not be run"):
            look_for_program(self.inputs(found, "./manager", directory=tmp_path))

        (tmp_path / "manager").chmod(0o700)
        look_for_program(self.inputs(found, "./manager", directory=tmp_path))

    @pytest.mark.parametrize("program", ["sh", sys.executable, "{kubeconfig}.sh"])
    def test_one_that_may_be_there_is_started(self, found, program):
        look_for_program(self.inputs(found, program))

    def test_one_that_the_setup_may_make_is_started(self, found):
        look_for_program(self.inputs(found, "./nope", setup="make"))
