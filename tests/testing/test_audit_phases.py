"""A whole audit in memory: what each phase finds in an operator, and what it leaves undone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from httpx import HTTPError

from hedgerow_testing.api import Reply
from hedgerow_testing.audit import engine
from hedgerow_testing.audit.inputs import Inputs
from hedgerow_testing.audit.judging.access import GrantedRights, Role
from hedgerow_testing.audit.judging.findings import AuditReport
from hedgerow_testing.audit.machine import AuditEnd
from support.code.sources import ROOT
from support.objects import widgets
from support.operator.audited import LoggedApi, Machine, inputs
from support.programs.tutorial import blocks

Object = dict[str, Any]
DEMO, CONFIG = "Widget.example.org/demo", "ConfigMap/demo-config"
WEB, IMAGE = "Deployment.apps/demo-web", '.spec.template.spec.containers[name="web"].image'


def identity(obj: Object) -> Object:
    names = {name: obj["metadata"][name] for name in ("name", "namespace")}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": names}


def config(widget: Object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "demo-config", "namespace": "shop"},
        "data": {"message": widget["spec"]["message"]},
    }


def web(widget: Object, **spec: Any) -> Object:
    labels = {"app": "web"}
    pod = {"containers": [{"name": "web", "image": f"web:{widget['spec']['size']}"}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "demo-web", "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        }
        | spec,
    }


def report_status(api: LoggedApi, widget: Object, **status: Any) -> None:
    if widget.get("status", {}) != status:
        api.apply({**identity(widget), "status": status}, "widgets", subresource="status")


def contains(live: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(contains(live.get(k), v) for k, v in wanted.items())
    if isinstance(wanted, list):
        return isinstance(live, list) and all(any(contains(i, w) for i in live) for w in wanted)
    return live == wanted


def clean(api: LoggedApi, widget: Object) -> None:
    """Apply what differs, unforced, and report the conflicts."""
    conflict = ""
    for child in (config(widget), web(widget)):
        live = api.get(child)
        if not (live.ok and contains(live.body, child)):
            reply = api.apply(child, "widgets")
            conflict = conflict if reply.ok else reply.body["message"]
    report_status(api, widget, conflict=conflict)


def replaces(api: LoggedApi, widget: Object) -> None:
    """Replace a child that differs, by an update of the whole of it."""
    live = api.get(config(widget))
    if not live.ok:
        api.create(config(widget), "widgets")
    elif not contains(live.body, config(widget)):
        version = {"resourceVersion": live.version}
        child = config(widget)
        api.put({**child, "metadata": {**child["metadata"], **version}}, "widgets")


def silent(api: LoggedApi, widget: Object) -> None:
    """Make the child once, and never look at it again."""
    if widget["metadata"].get("labels", {}).get("done") != "x" and not widget.get("status"):
        api.create(config(widget), "widgets")
        report_status(api, widget, made="yes")


def counts(api: LoggedApi, widget: Object) -> None:
    """Have its own number of replicas always."""
    live = api.get(web(widget))
    if not live.ok:
        api.create(web(widget, replicas=2), "widgets")
    elif live.body["spec"]["replicas"] != 2:
        api.merge(live.body, {"spec": {"replicas": 2}}, "widgets")


def respells(api: LoggedApi, widget: Object) -> None:
    if widget["spec"].get("interval") == "60s":
        api.merge(widget, {"spec": {"interval": "1m0s"}}, "widgets")


def reverts(api: LoggedApi, widget: Object) -> None:
    if widget["spec"]["size"] != 2:
        api.put({**widget, "spec": {**widget["spec"], "size": 2}}, "widgets")


def keeps(api: LoggedApi, widget: Object) -> None:
    """Apply a field of the author's once more, with the value that it has."""
    held = [entry["manager"] for entry in widget["metadata"]["managedFields"]]
    if "widgets" not in held:
        api.apply({**identity(widget), "spec": {**widget["spec"]}}, "widgets")


def fills_in(api: LoggedApi, widget: Object) -> None:
    if "paused" not in widget["spec"]:
        api.put({**widget, "spec": {**widget["spec"], "paused": False}}, "widgets")


def writes_on(api: LoggedApi, widget: Object) -> None:
    seen = widget.get("status", {}).get("seen", 0)
    api.apply({**identity(widget), "status": {"seen": seen + 1}}, "widgets", subresource="status")


def idle(_api: LoggedApi, _widget: Object) -> None:
    pass


def keys(report: AuditReport) -> list[str]:
    return [one.key for one in report.findings]


FAULTS = {
    "clean": (clean, []),
    "whole updates": (
        replaces,
        [
            *(
                f"foreign-field-lost {CONFIG} {place}"
                for place in (
                    ".data.audit-applied",
                    ".metadata.annotations.audit.hedgerow.dev/applied",
                    ".metadata.annotations.audit.hedgerow.dev/edited",
                    ".metadata.labels.audit.hedgerow.dev/applied",
                    ".metadata.labels.audit.hedgerow.dev/edited",
                )
            ),
            f"child-fight {CONFIG} .data.message",
            f"child-forced {CONFIG} .data.message",
        ],
    ),
    "spelling": (respells, [f"reapply-conflict {DEMO} .spec.interval"]),
    "a default": (fills_in, [f"change-conflict {DEMO} .spec.paused"]),
    "a value of its own": (
        reverts,
        [f"reapply-conflict {DEMO} .spec.size", f"change-reverted {DEMO} .spec.size"],
    ),
    "replicas": (
        counts,
        [
            f"replicas-taken {WEB} .spec.replicas",
            *(f"child-silent {WEB} {IMAGE} {how}" for how in ("apply", "edit")),
        ],
    ),
    "silence": (
        silent,
        [
            f"child-silent {CONFIG} .data.message apply",
            f"child-silent {CONFIG} .data.message edit",
            f"child-not-restored {CONFIG}",
        ],
    ),
    "the author's fields": (
        keeps,
        [
            f"{rule} {DEMO} .spec.{name}"
            for rule, names in (
                ("change-conflict", ("interval", "message", "mode", "size")),
                ("removal-kept", ("mode",)),
            )
            for name in names
        ],
    ),
}


@pytest.mark.parametrize(("reconcile", "told"), FAULTS.values(), ids=list(FAULTS))
def test_what_an_operator_does_is_found(tmp_path, reconcile, told):
    report = Machine(tmp_path, reconcile, inputs()).audited()

    assert report.partial == ""
    assert sorted(key for key in keys(report) if not key.startswith("empty")) == sorted(told)


def test_what_a_child_owns_goes_with_it_and_is_not_missed(tmp_path):
    def nests(api: LoggedApi, widget: Object) -> None:
        if not widget.get("status"):
            owner = api.create(config(widget), "widgets").must()
            named = {key: owner[key] for key in ("apiVersion", "kind")}
            meta = {key: owner["metadata"][key] for key in ("name", "uid")}
            child = web(widget)
            child["metadata"]["ownerReferences"] = [{**named, **meta}]
            api.create(child, "widgets")
            report_status(api, widget, made="yes")

    report = Machine(tmp_path, nests, inputs()).audited()

    assert [one.key for one in report.of("child-not-restored")] == [f"child-not-restored {CONFIG}"]
    assert report.result("child-not-restored").checked == "1 child"


def test_a_clean_operator_passes_and_its_figures_are_told(tmp_path):
    machine = Machine(tmp_path, clean, inputs(setup="make certificates"))

    report = machine.audited(environment=type("Box", (), {"environment": lambda _: {"A": "b"}})())

    unchecked = [one.rule.name for one in report.results if one.verdict == "not checked"]
    assert unchecked == ["unused-rights", "wildcard-rights"]
    assert report.failing() == ()
    assert report.figures.children == 2
    assert report.figures.fields_tried == 5
    assert report.figures.fields_changed == 5
    assert machine.happened == ["setup {'A': 'b'}", "start", "start", "kill", "start"]
    (sample,) = report.samples
    assert [one.path for one in sample.fields][:2] == [".metadata.labels.team", ".spec.interval"]
    assert str(sample.fields[0].after[0]) == "helm (Apply)"


def test_one_that_is_never_quiet_is_looked_at_as_far_as_that_goes(tmp_path):
    report = Machine(tmp_path, writes_on, inputs()).audited()

    assert report.partial.startswith("the operator did not become quiet in 45 seconds")
    assert keys(report) == [f"never-quiet {DEMO}"]
    assert report.result("change-conflict").verdict == "passed"
    assert report.result("writes-at-rest").why == report.partial


def test_one_that_becomes_restless_later_is_found(tmp_path):
    machine = Machine(tmp_path, idle, inputs())

    def wakes(api: LoggedApi, widget: Object) -> None:
        if machine.starts > 1:
            writes_on(api, widget)

    machine.reconcile = wakes

    assert {"never-quiet", "writes-at-restart"} <= {one.rule for one in machine.audited().findings}


def test_without_children_and_connections_nothing_is_said_of_them(tmp_path):
    machine = Machine(tmp_path, idle, inputs())
    machine.connections, machine.ends_at_once = 0, False

    report = machine.audited(GrantedRights((Role("r", "", ()),)))

    assert report.result("child-fight").why == "it made no object that is still there"
    assert report.result("writes-after-watch-cut").why == "it had no connection open"
    assert report.result("unused-rights").verdict == "not checked"
    assert report.notes == ("it did not end in 30 seconds after SIGTERM, and was killed",)


def test_the_rights_that_it_used_are_told(tmp_path):
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}
    access = GrantedRights((Role("r", "", (rule,)),))

    report = Machine(tmp_path, clean, inputs(), access).audited(access)

    assert keys(report) == ["unused-rights configmaps/* list"]


def test_a_force_that_the_server_refuses_is_no_fight(tmp_path):
    machine = Machine(tmp_path, clean, inputs())
    apply = machine.api.apply

    def refusing(manifest: Object, manager: str, **how: Any) -> Any:
        real = how.get("force") and not how.get("dry_run")
        return Reply(422, {"message": "immutable"}) if real else apply(manifest, manager, **how)

    machine.api.apply = refusing
    machine.api.put = lambda *_: Reply(422, {"message": "immutable"})

    rules = {one.rule for one in machine.audited().findings}
    assert rules.isdisjoint({"child-fight", "child-forced"})


def test_a_kind_without_a_sample_is_named(tmp_path):
    names = {"kind": "Gadget", "plural": "gadgets", "singular": "gadget"}
    gadgets = {
        **widgets.DEFINITION,
        "metadata": {"name": "gadgets.example.org"},
        "spec": {**widgets.DEFINITION["spec"], "names": names},
    }
    more = replace(inputs(), definitions=(widgets.DEFINITION, gadgets))

    report = Machine(tmp_path, clean, more).audited()

    assert "there is no sample of Gadget: nothing of it was tried" in report.notes


def test_what_a_kill_leaves_twice_is_found(tmp_path):
    machine = Machine(tmp_path, idle, inputs())

    def makes(api: LoggedApi, widget: Object) -> None:
        killed = machine.happened.count("kill")
        for number in range(3 * killed):
            named = {"name": f"x-{number}", "namespace": "shop", "generateName": "x-"}
            child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named}
            if not api.get(child).ok:
                api.create(child, "widgets")

    machine.reconcile = makes

    assert keys(machine.audited()) == ["writes-after-kill ConfigMap/x-*"]


def test_a_child_that_a_kill_leaves_as_it_should_not_be_is_found(tmp_path):
    machine = Machine(tmp_path, clean, inputs())

    def tears(api: LoggedApi, widget: Object) -> None:
        torn = {**widget["spec"], "message": "torn"}
        clean(api, {**widget, "spec": torn} if "kill" in machine.happened else widget)

    machine.reconcile = tears

    found = [one for one in machine.audited().findings if one.rule == "writes-after-kill"]
    assert [(one.key, one.detail) for one in found] == [
        (
            f"writes-after-kill {CONFIG}",
            "after SIGKILL in the middle of a change it differs from what it is without",
        )
    ]


def test_an_object_with_a_finalizer_stays_and_is_noted(tmp_path):
    def holds(api: LoggedApi, widget: Object) -> None:
        if not widget["metadata"].get("finalizers"):
            body = identity(widget)
            body["metadata"]["finalizers"] = ["example.org/x"]
            api.apply(body, "widgets")

    report = Machine(tmp_path, holds, inputs()).audited()

    assert report.notes == ("Widget shop/demo did not go when deleted",)
    assert keys(report) == []


def test_what_another_program_does_is_noted_and_not_held_against_the_operator(tmp_path):
    machine = Machine(tmp_path, idle, inputs())

    def meddles(_api: LoggedApi, widget: Object) -> None:
        clean(_api, widget)
        other = LoggedApi(machine, "somebody")
        if widget["spec"]["interval"] == "60s":
            other.merge(widget, {"spec": {"interval": "1m0s"}}, "somebody")
        child = other.get(config(widget))
        if child.ok and child.body["metadata"].get("labels"):
            other.merge(child.body, {"metadata": {"labels": None}}, "somebody")

    machine.reconcile = meddles
    report = machine.audited()

    assert keys(report) == []
    assert report.notes == (".spec.interval of Widget shop/demo was taken by somebody (Update)",)


ODD = {
    "a kind that is not served": (
        {**widgets.SAMPLE, "kind": "Gadget"},
        "the API server does not know the sample's kind: Gadget of example.org/v1",
    ),
    "a sample that is not valid": (
        {**widgets.SAMPLE, "spec": {"size": 99}},
        "the API server refused the sample Widget demo: ",
    ),
}


@pytest.mark.parametrize(("sample", "told"), ODD.values(), ids=list(ODD))
def test_a_sample_that_cannot_be_applied_ends_the_audit(tmp_path, sample, told):
    report = Machine(tmp_path, clean, inputs(sample)).audited()

    assert report.partial.startswith(told)
    assert {one.verdict for one in report.results} == {"not checked"}


def test_a_definition_that_is_refused_or_not_established_ends_it(tmp_path):
    machine = Machine(tmp_path, clean, inputs())
    machine.said_of_definitions = "it is too long"
    assert machine.audited().partial.endswith("definition widgets.example.org: it is too long")

    machine.said_of_definitions, machine.established = "", []
    assert machine.audited().partial.endswith("not established: no reason is given")

    machine.established = [{"type": "NamesAccepted", "status": "False", "message": "taken"}]
    assert machine.audited().partial.endswith("not established: NamesAccepted: taken")


def test_an_interrupted_audit_tells_what_it_found(tmp_path):
    machine = Machine(tmp_path, respells, inputs())

    def stops(api: LoggedApi, widget: Object) -> None:
        respells(api, widget)
        if widget["spec"]["size"] != 2:
            machine.attendant.stop.set()

    machine.reconcile = stops
    report = machine.audited()

    assert report.partial == "it was interrupted"
    assert keys(report) == [f"reapply-conflict {DEMO} .spec.interval"]
    with pytest.raises(AuditEnd):
        machine.look()


def test_values_of_secrets_are_hidden(tmp_path):
    password = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "demo"},
        "data": {"password": "c2VjcmV0"},
    }

    def rotates(api: LoggedApi, widget: Object) -> None:
        live = api.get({**identity(widget), "apiVersion": "v1", "kind": "Secret"})
        if live.ok and live.body["data"]["password"] == "c2VjcmV0":
            api.merge(live.body, {"data": {"password": "b3RoZXI="}}, "widgets")

    report = Machine(tmp_path, rotates, inputs(password, widgets.SAMPLE)).audited()

    (found,) = report.findings
    assert found.key == "reapply-conflict Secret/demo .data.password"
    assert (found.before, found.after) == ("(hidden)", "(hidden)")
    assert "c2Vj" not in str(report)
    assert "b3Ro" not in str(report)


class TestAudit:
    """From the files to the report, with the cluster and the machine replaced."""

    @pytest.fixture
    def replaced(self, monkeypatch, tmp_path):
        def replace_by(made: Callable[..., Any], early: Exception | None = None) -> None:
            @contextmanager
            def raised(*_: Any) -> Iterator[tuple[str, str]]:
                if early:
                    raise early
                yield "sandbox", "log"

            monkeypatch.setattr(engine, "raised", raised)
            monkeypatch.setattr(engine, "machine", contextmanager(made))

        return replace_by

    @pytest.fixture
    def run(self, replaced, tmp_path):
        files = widgets.put(tmp_path)

        def run(fails: Exception | None = None, *, early: Exception | None = None) -> AuditReport:
            def machine(given: Inputs, *_: Any, access: Any, **__: Any) -> Iterator[Machine]:
                if fails:
                    raise fails
                samples = [{**one, "metadata": {**one["metadata"]}} for one in given.samples]
                yield Machine(tmp_path, clean, inputs(*samples), access)

            replaced(machine, early)
            names = [str(files / f"{name}.yaml") for name in ("crds", "samples", "rights")]
            return engine.run_audit(["true"], names[0], names[1], rights=names[2])

        return run

    def test_the_guides_test_passes_with_the_fixture(self, audit, replaced, tmp_path, monkeypatch):
        page = {block.file: block for block in blocks(ROOT / "docs/guides/helm-4.md")}
        for name in ("crds.yaml", "samples.yaml"):
            page[name].write(tmp_path)
        given: list[Inputs] = []

        def machine(its: Inputs, *_: Any, **__: Any) -> Iterator[Machine]:
            given.append(its)
            yield Machine(tmp_path, clean, inputs())

        replaced(machine)
        monkeypatch.chdir(tmp_path)
        text = page["test_audit.py"].text
        exec(text, test := {})  # noqa: S102 - our own page

        test["test_it_leaves_its_authors_fields_alone"](audit)

        assert given[0].command == (sys.executable, "careful.py")
        assert [one["kind"] for one in given[0].samples] == ["Backup"]
        assert len(text.splitlines()) <= 10

    def test_an_operator_is_audited_by_its_files(self, run):
        report = run()

        assert report.partial == ""
        assert report.kubernetes == "1.37.2"
        assert {one.rule for one in report.findings} == {"unused-rights"}

    def test_an_end_before_the_beginning_is_told(self, run):
        assert run(early=AuditEnd("it was interrupted")).partial == "it was interrupted"

    @pytest.mark.parametrize("error", [AssertionError("not within 60 s"), HTTPError("no route")])
    def test_a_cluster_that_fails_leaves_a_partial_report(self, run, error):
        report = run(error)

        assert report.partial == f"the cluster did not answer as it should: {error}"
        assert {one.verdict for one in report.results} == {"not checked"}
