"""A whole audit in memory: what each phase finds in an operator, and what it leaves undone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from httpx import HTTPError

from hedgerow_testing.api import Reply
from hedgerow_testing.audit import engine
from hedgerow_testing.audit.inputs import Inputs
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


def forces(api: LoggedApi, widget: Object) -> None:
    """Take a field inside a list back by force, at once and from anybody."""
    live = api.get(web(widget))
    if not (live.ok and contains(live.body, web(widget))):
        api.apply(web(widget), "widgets", force=True)


def forces_late(api: LoggedApi, widget: Object) -> None:
    """Be too slow to see an edit, and take the field back from whoever applies it."""
    live = api.get(web(widget))
    entries = live.body["metadata"]["managedFields"] if live.ok else []
    if not any("edit" in e["manager"] and "f:image" in str(e["fieldsV1"]) for e in entries):
        forces(api, widget)


def labels(api: LoggedApi, widget: Object) -> None:
    """Note in an annotation what was looked at, and have pods that come and go."""
    silent(api, widget)
    live = api.get(config(widget))
    seen = live.ok and live.body["data"].get("message", "")
    if seen and widget["metadata"].get("annotations", {}).get("seen") != seen:
        api.merge(widget, {"metadata": {"annotations": {"seen": seen}}}, "widgets")
        status = {"ready": f"{len(seen)}/9", "pods": [f"demo-{len(seen)}f"], "made": "yes"}
        api.apply({**identity(widget), "status": status}, "widgets", subresource="status")


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


def defaults(api: LoggedApi, widget: Object) -> None:
    """Fill in what the author has removed."""
    if "mode" not in widget["spec"]:
        api.merge(widget, {"spec": {"mode": "Slow"}}, "widgets")


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
    "force in a list": (
        forces,
        [
            f"child-fight {WEB} {IMAGE}",
            f"child-forced {WEB} {IMAGE}",
        ],
    ),
    "force on a slow machine": (
        forces_late,
        [f"child-fight {WEB} {IMAGE}", f"child-forced {WEB} {IMAGE}"],
    ),
    "silence with an annotation": (
        labels,
        [
            f"child-silent {CONFIG} .data.message apply",
            f"child-silent {CONFIG} .data.message edit",
            f"child-not-restored {CONFIG}",
        ],
    ),
    "spelling": (respells, [f"reapply-conflict {DEMO} .spec.interval"]),
    "a default": (fills_in, [f"change-conflict {DEMO} .spec.paused"]),
    "a default after a removal": (defaults, [f"change-conflict {DEMO} .spec.mode"]),
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

    assert [one.key for one in report.findings_of("child-not-restored")] == [
        f"child-not-restored {CONFIG}"
    ]
    assert report.result("child-not-restored").checked == "1 child"


def test_children_that_are_made_again_one_after_another_are_waited_for(tmp_path):
    looks = count(1)

    def slowly(api: LoggedApi, widget: Object) -> None:
        missing = [child for child in (config(widget), web(widget)) if not api.get(child).ok]
        if not widget.get("status"):
            for child in missing:
                api.create(child, "widgets")
            report_status(api, widget, made="yes")
        elif missing and next(looks) % 3 == 0:
            api.create(missing[0], "widgets")

    report = Machine(tmp_path, slowly, inputs()).audited()

    assert report.findings_of("child-not-restored") == ()
    assert report.result("child-not-restored").checked == "2 children"


def test_a_clean_operator_passes_and_its_figures_are_told(tmp_path):
    machine = Machine(tmp_path, clean, inputs(setup="make certificates"))

    report = machine.audited(environment=type("Box", (), {"environment": lambda _: {"A": "b"}})())

    assert {one.verdict for one in report.results} == {"passed"}
    assert report.failing() == ()
    assert report.figures.children == 2
    assert report.figures.fields_tried == 5
    assert report.figures.fields_changed == 5
    assert machine.happened == ["setup {'A': 'b'}", "start"]
    (sample,) = report.samples
    assert [one.path for one in sample.fields][:2] == [".metadata.labels.team", ".spec.interval"]
    assert str(sample.fields[0].after[0]) == "helm (Apply)"


def test_one_that_is_never_quiet_is_looked_at_as_far_as_that_goes(tmp_path):
    report = Machine(tmp_path, writes_on, inputs()).audited()

    assert report.partial.startswith("the operator did not become quiet in 45 seconds")
    assert keys(report) == [f"writes-at-rest {DEMO}"]
    assert report.result("change-conflict").verdict == "passed"
    assert report.result("removal-kept").verdict == "passed"
    assert report.result("change-reverted").why == report.partial


def test_without_children_nothing_is_said_of_them(tmp_path):
    report = Machine(tmp_path, respells, inputs()).audited()

    assert report.partial == ""
    assert report.result("child-fight").why == "it made no object that is still there"


def test_one_that_does_nothing_has_not_passed(tmp_path):
    report = Machine(tmp_path, idle, inputs()).audited()

    assert report.partial == ("the operator wrote nothing that could be judged; it printed nothing")
    assert report.result("empty-writes").verdict == "not checked"


def test_one_that_fails_at_its_work_has_not_passed(tmp_path):
    machine = Machine(tmp_path, respells, inputs())
    machine.printed = "its output has 1 line of errors, the last: KeyError: 'spec'"
    assert machine.audited().partial == f"the operator made no object, and {machine.printed}"

    machine = Machine(tmp_path, clean, inputs())
    machine.printed = "its output has 1 line of errors, the last: KeyError: 'spec'"
    report = machine.audited()
    assert (report.partial, report.notes) == ("", (machine.printed,))


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


def test_where_no_change_of_a_child_takes_place_nothing_is_said_of_it(tmp_path):
    machine = Machine(tmp_path, clean, inputs())
    apply, put = machine.api.apply, machine.api.put

    def old(reply: Reply, child: Object) -> Reply:
        """Accept what is sent, and keep what is there, as admission may do."""
        return Reply(200, machine.api.get(child).body) if reply.ok else reply

    def applied(manifest: Object, manager: str, **how: Any) -> Reply:
        if not how.get("force") or how.get("dry_run"):
            return apply(manifest, manager, **how)
        return old(Reply(200, {}), manifest)

    machine.api.apply = applied
    machine.api.put = lambda body, manager: old(Reply(200, {}), body)
    report = machine.audited()

    for rule in ("child-fight", "child-forced", "child-silent"):
        assert report.result(rule).verdict == "not checked"
        assert report.result(rule).why == "the API server took no change of a child"
    assert put is not machine.api.put


def test_what_was_changed_is_undone_with_its_holders(tmp_path):
    machine = Machine(tmp_path, clean, inputs())
    before = dict[str, Any]()
    others = set[str]()
    delete = machine.api.delete

    def deleted(target: Object, **how: Any) -> Reply:
        if target["kind"] in {"ConfigMap", "Deployment"}:
            before[target["kind"]] = target
            others.update(one["manager"] for one in target["metadata"]["managedFields"])
        return delete(target, **how)

    machine.api.delete = deleted
    machine.audited()

    assert before["ConfigMap"]["data"]["message"] == "hello"
    held = {
        one["manager"]: one["fieldsV1"] for one in before["ConfigMap"]["metadata"]["managedFields"]
    }
    assert "f:message" in held["widgets"]["f:data"]
    assert "f:data" not in held["kubectl-edit"]
    assert held["platform"]["f:data"] == {"f:audit-applied": {}}


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


def test_fields_that_are_too_many_to_try_are_noted(tmp_path):
    data = {f"k{number}": "x" for number in range(201)}
    many = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "many"}, "data": data}

    machine = Machine(tmp_path, idle, inputs(many, widgets.SAMPLE))
    machine.reconcile = lambda *_: machine.attendant.stop.set()

    assert "ConfigMap many has 1 field more than are tried" in machine.audited().notes


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
        "the API server refused 1 sample: Gadget demo: it does not know the kind Gadget of",
    ),
    "a sample that is not valid": (
        {**widgets.SAMPLE, "spec": {"size": 99}},
        "the API server refused 1 sample: Widget demo: spec.message: Required value",
    ),
}


@pytest.mark.parametrize(("sample", "told"), ODD.values(), ids=list(ODD))
def test_a_sample_that_cannot_be_applied_ends_the_audit(tmp_path, sample, told):
    report = Machine(tmp_path, clean, inputs(sample)).audited()

    assert report.partial.startswith(told)
    assert {one.verdict for one in report.results} == {"not checked"}


def test_all_samples_that_are_refused_are_told_with_their_files(tmp_path):
    bad = {**widgets.SAMPLE, "spec": {"size": 99}}
    given = replace(inputs(bad, {**widgets.SAMPLE, "kind": "Gadget"}), files=("a.yaml", "b.yaml"))

    told = Machine(tmp_path, clean, given).audited().partial

    assert told.startswith("the API server refused 2 samples: a.yaml: Widget demo: spec.message")
    assert "; b.yaml: Gadget demo: it does not know the kind" in told


def test_a_sample_waits_for_the_operators_webhook(tmp_path):
    machine = Machine(tmp_path, clean, inputs())
    apply, is_up = machine.api.apply, [True]

    def admitted(manifest: Object, manager: str, **how: Any) -> Reply:
        if manifest["kind"] == "Widget" and not (machine.runs and is_up[0]):
            return Reply(500, {"message": 'failed calling webhook "w": connection refused'})
        return apply(manifest, manager, **how)

    machine.api.apply = admitted
    report = machine.audited()
    assert report.partial == ""
    assert {one.verdict for one in report.results} == {"passed"}

    is_up[0] = False
    machine.runs = False
    told = Machine(tmp_path / "", clean, inputs())
    told.api.apply = admitted
    assert told.audited().partial.startswith(
        'the sample Widget demo waited in vain: failed calling webhook "w"'
    )


def test_a_sample_that_is_refused_later_has_not_passed(tmp_path):
    machine = Machine(tmp_path, clean, inputs())
    apply = machine.api.apply

    def admitted(manifest: Object, manager: str, **how: Any) -> Reply:
        if machine.runs and manifest["kind"] == "Widget":
            return Reply(500, {"message": "the webhook is broken"})
        return apply(manifest, manager, **how)

    machine.api.apply = admitted

    assert machine.audited().result("reapply-conflict").verdict == "not checked"


def test_the_author_may_have_another_name(tmp_path):
    report = Machine(tmp_path, fills_in, replace(inputs(), manager="argocd")).audited()

    (sample,) = report.samples
    assert str(sample.fields[0].before[0]) == "argocd (Apply)"
    assert keys(report) == [f"change-conflict {DEMO} .spec.paused"]


def test_what_it_makes_late_is_waited_for_and_no_unrest(tmp_path):
    machine = Machine(tmp_path, idle, inputs())
    looks = [0]

    def makes_late(api: LoggedApi, widget: Object) -> None:
        looks[0] += 1
        for number in range(3):
            child = config({**widget, "spec": {**widget["spec"], "message": "x"}})
            child["metadata"]["name"] = f"part-{number}"
            if looks[0] > 3 * number and not api.get(child).ok:
                api.create(child, "widgets")

    machine.reconcile = makes_late
    report = machine.audited()

    assert report.findings_of("writes-at-rest") == ()
    assert report.figures.children == 3


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
            def machine(given: Inputs, *_: Any, **__: Any) -> Iterator[Machine]:
                if fails:
                    raise fails
                samples = [{**one, "metadata": {**one["metadata"]}} for one in given.samples]
                yield Machine(tmp_path, clean, inputs(*samples))

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
        assert report.findings == ()

    def test_an_end_before_the_beginning_is_told(self, run):
        assert run(early=AuditEnd("it was interrupted")).partial == "it was interrupted"

    @pytest.mark.parametrize("error", [AssertionError("not within 60 s"), HTTPError("no route")])
    def test_a_cluster_that_fails_leaves_a_partial_report(self, run, error):
        report = run(error)

        assert report.partial == f"the cluster did not answer as it should: {error}"
        assert {one.verdict for one in report.results} == {"not checked"}
