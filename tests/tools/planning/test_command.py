"""`hedgerow plan`, as typed: what is printed of a forecast, and the exit code."""

from __future__ import annotations

import io
import json
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from msgspec import UNSET
from msgspec.structs import replace
from rich.console import Console

from hedgerow.cli import main
from hedgerow.encoding import decode, encode
from hedgerow.fields.managed_fields import Holder
from hedgerow.kube import client
from hedgerow.objects import PLACEHOLDER, ObjectRef
from hedgerow.plan.conditions import condition, ready
from hedgerow.plan.conflict_messages import OTHER_VALUE
from hedgerow_schemas.base import ApiResource, ContestedField, instant
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.builtin import Deployment
from hedgerow_tools.fields.diff import Line
from hedgerow_tools.fields.forecast import (
    Forecast,
    ObjectForecast,
    Planned,
    PlannedEvent,
    PlanReport,
    WriteRefusal,
    judged,
    worst,
)
from hedgerow_tools.fields.identity import named
from hedgerow_tools.fields.relabelling import CLIENT_SIDE
from hedgerow_tools.fields.selection import Dispute, settled
from hedgerow_tools.planning import command
from hedgerow_tools.planning.terminal import sections, show, summary
from model import ours
from runtime.world import World, pods
from support.server.apiserver import Reply, unserved
from support.server.connected import connect
from tools.planning.asked import asked

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
OWNER = ObjectRef(BlueGreen.api, "shop", "demo")
CHILD = ObjectRef(Deployment.api, "shop", "web")
OURS = Holder("hedgerow-bluegreen", "Apply")
SCALE = Holder("kubectl", "Update", "scale", "2026-01-01T11:55:00Z")
NOTHING = Forecast(**named(OWNER), controller="bluegreen", field_manager="hedgerow-bluegreen")


def field(
    target: str,
    path: str,
    manager: str,
    operation: str | None = None,
    subresource: str | None = None,
    since: str | None = None,
    **more: Any,
) -> ContestedField:
    at = instant(since or "")
    by = {"manager": manager, "operation": operation, "subresource": subresource, "since": at}
    return ContestedField(object=target, path=path, **{"reason": OTHER_VALUE, **by, **more})


def but(held: ContestedField, **changes: Any) -> ContestedField:
    return held.model_copy(update=changes)


def line(kind: Any, old: Any, new: Any, *holders: Holder, after: Any = (OURS,)) -> Line:
    return Line(".spec.x", kind, old, new, holders, after)


def the(ref: ObjectRef, action: Any, *lines: Line, **more: Any) -> ObjectForecast:
    return ObjectForecast(**named(ref), action=action, lines=lines, **more)


def contested(*held: ContestedField) -> Forecast:
    found = settled(held, {}, OWNER)
    return replace(NOTHING, contested=found.all, together=found.together)


def encoded(*found: Forecast) -> Any:
    forecasts = tuple(map(judged, found))
    return decode(encode(PlanReport(worst(forecasts), forecasts)))


def of(action: Any, *lines: Line, **more: Any) -> Forecast:
    return replace(NOTHING, objects=(the(CHILD, action, *lines, **more),))


def printed(*forecasts: Forecast, width: int = 120) -> str:
    out = Console(file=io.StringIO(), width=width, color_system=None)
    show(forecasts, NOW, out)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


class TestObjects:
    @pytest.mark.parametrize(
        ("told", "said"),
        [
            (line("added", None, 1), "+ .spec.x: 1"),
            (line("added", None, 1, after=()), "+ .spec.x: 1  by the server"),
            (line("changed", 1, 2, OURS), "~ .spec.x: 1 -> 2  hedgerow-bluegreen"),
            (line("changed", 1, 2, SCALE), "~ .spec.x: 1 -> 2  kubectl (Update scale)"),
            (line("changed", 1, 2), "~ .spec.x: 1 -> 2  unowned"),
            (line("changed", 1, 2, after=()), "~ .spec.x: 1 -> 2  unowned; by the server"),
            (line("removed", 1, None, OURS), "- .spec.x: 1  hedgerow-bluegreen"),
            (line("moved", ["a", "b"], ["b", "a"], OURS), "↕ .spec.x: b moves before a  hedgerow"),
            (line("moved", [1, 2, 3], [2, 3, 1], OURS), "↕ .spec.x: 1 moves to the end  hedgerow"),
            (line("moved", [{"a": 1}, []], [[], {"a": 1}]), "↕ .spec.x: [1] moves before [0]"),
            (
                line("moved", list("abcde"), list("edcba")),
                "↕ .spec.x: e moves before d, d moves before c, c moves before b, 1 more move  un",
            ),
            (line("moved", "(hidden)", "(hidden)"), "↕ .spec.x: (hidden) -> (hidden)"),
            (line("released", 1, 1, OURS, SCALE), "< .spec.x: 1, given up  hedgerow-bluegreen,"),
            (line("shared", 1, 1, SCALE), "= 1 would be held as well, unchanged: .spec.x"),
        ],
    )
    def test_a_field_is_a_line_that_says_who_holds_it_now(self, told, said):
        assert said in printed(of("configured", told))

    def test_an_atomic_map_is_told_by_what_differs_in_it(self):
        old, new = {"a": 1, "b": 2, "d": {"e": 1}}, {"a": 1, "c": 3, "d": {"e": 2}}
        out = printed(of("configured", line("changed", old, new, OURS)))

        for said in ("- .spec.x.b: 2", "+ .spec.x.c: 3", "~ .spec.x.d.e: 1 -> 2"):
            assert f"{said} hedgerow-bluegreen" in " ".join(out.split())
        assert ".spec.x.a" not in out

    def test_so_is_a_list_in_it_of_which_only_the_order_differs(self):
        old, new = {"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 2}, {"b": 1}]}

        assert "↕ .spec.x.a: [1] moves before [0]" in printed(
            of("configured", line("changed", old, new, OURS))
        )

    def test_defaults_of_something_new_are_counted(self):
        lines = [line("added", None, 1), line("added", None, 2, after=())]

        assert "and 1 default\n" in printed(of("created", *lines))
        assert "and 2 defaults\n" in printed(of("created", *lines, lines[1]))

    def test_an_owner_is_told_by_its_name_and_an_unknown_uid_as_such(self):
        owner = {"kind": "BlueGreen", "name": "demo", "uid": PLACEHOLDER, "controller": True}
        path = f'.metadata.ownerReferences[uid="{PLACEHOLDER}"]'
        other = {**owner, "controller": False}
        lines = [Line(path, "added", UNSET, some, (), (OURS,)) for some in (owner, other)]
        out = printed(of("created", *lines))

        assert '[uid="(known once applied)"]: BlueGreen/demo, its controller\n' in out
        assert '[uid="(known once applied)"]: BlueGreen/demo\n' in out
        assert PLACEHOLDER not in out

    def test_of_what_goes_it_is_told_who_holds_how_much(self):
        out = printed(of("deleted", line("removed", 1, None, OURS), line("removed", 1, None)))

        assert "- Deployment/web would be deleted" in out
        assert "fields held: 1 by hedgerow-bluegreen" in out
        assert "whether admission lets Deployment/web be deleted" in out
        assert "fields held: none" in printed(of("deleted"))

    def test_what_no_server_was_asked_for_is_marked(self):
        out = printed(of("configured", line("changed", 1, 2, OURS), merged="no rights"))

        assert "the server was not asked: no rights" in out
        assert "defaults, validation and admission of Deployment/web: no rights" in out

    def test_warnings_are_told_even_of_what_stays(self):
        told = printed(of("unchanged", warnings=("x is deprecated",)))
        assert "warning: x is deprecated" in told
        assert "✗" not in told
        assert "Deployment/web" not in printed(of("unchanged"))

    def test_more_than_three_shared_fields_are_counted(self):
        out = printed(of("configured", *[line("shared", 1, 1, SCALE)] * 4))

        assert "= 4 would be held as well, unchanged: .spec.x, .spec.x, .spec.x, …" in out


class TestSections:
    def told(self, **more: Any) -> str:
        return printed(replace(NOTHING, **more))

    def test_nothing_to_do_is_said(self):
        out = self.told()

        assert "nothing to do" in out
        assert out.endswith("0 to create, 0 to change, 0 to delete; nothing was written\n")

    def test_what_is_contested_comes_with_holder_age_and_remedy(self):
        held = field("Deployment/web", ".spec.x", "kubectl", "Update", "scale", SCALE.time)
        out = printed(contested(held, but(held, path=".spec.y", since=None)))

        assert "Deployment/web: .spec.x  kubectl (Update scale), 5m" in out
        assert "Deployment/web: .spec.y  kubectl (Update scale)\n" in out
        annotate = "        kubectl annotate bluegreens.app.demo.kakao.com demo"
        assert f"{annotate} 'hedgerow.dev/yield=Deployment/web: spec.x' -n shop\n" in out
        assert f"{annotate} 'hedgerow.dev/claim=Deployment/web: spec.y' -n shop\n" in out
        assert "2 contested" in out

    @pytest.mark.parametrize(
        ("held", "said"),
        [
            (
                field("BlueGreen/demo", ".spec.x", "x"),
                "leave it out of the manifest, or force the apply",
            ),
            (
                field("BlueGreen/demo", ".spec.x", CLIENT_SIDE),
                "kubectl applied it without --server-side",
            ),
            (
                field("Deployment/web", ".x", "before-first-apply"),
                "hedgerow adopt Deployment/web",
            ),
            (
                field("Deployment/web", ".x", "hedgerow-two-bluegreen", "Apply"),
                "hedgerow release --instance two",
            ),
        ],
    )
    def test_the_remedy_is_the_one_that_helps(self, held, said):
        assert said in printed(contested(held))

    def test_the_values_are_told(self):
        held = field("Deployment/web", ".spec.x", "kubectl", declared="2", live="3")

        told = printed(contested(held))

        assert "Deployment/web: .spec.x: you declare 2, it is 3  kubectl" in told

    def test_of_many_the_first_ten_come_with_what_settles_them(self):
        held = field("Deployment/web", ".spec.x", "kubectl")
        many = (but(held, path=f".spec.x{number}") for number in range(12))

        out = printed(contested(*many))

        assert out.count("'hedgerow.dev/claim=Deployment/web: spec.x") == 10 + 1  # that for all
        assert out.count("hedgerow owners Deployment/web --contested -n shop\n") == 1

    def test_one_command_settles_all_that_can_be(self):
        held = field("Deployment/web", ".spec.x", "kubectl")
        other = but(held, object="Service/demo", path=".spec.type")

        out = printed(contested(held, other))

        terms = "Deployment/web: spec.x; Service/demo: spec.type"
        for effect, word in (
            ("To leave all fields that can be yielded, in one command:", "yield"),
            (
                "To take back all fields that can be claimed, where the namespace allows claims,",
                "claim",
            ),
        ):
            after = out[out.index(effect) :].splitlines()[1].strip()
            annotate = "kubectl annotate bluegreens.app.demo.kakao.com demo"
            assert after == f"{annotate} 'hedgerow.dev/{word}={terms}' -n shop"
        assert "in one command" not in printed(contested(held))

    def test_a_taken_name_is_told(self):
        after = (condition("Stalled", True, "NameTaken", "Service/x is not ours"),)

        assert "Service/x is not ours" in self.told(conditions=Planned((), after))

    def test_claims_yields_and_refusals_are_told(self):
        held = field("Deployment/web", ".spec.x", "other", "Apply")
        out = self.told(
            claims=(held,), yields=(held,), refusals=(WriteRefusal("a/b", ("no\nway", "never")),)
        )

        assert "Taken by force, as hedgerow.dev/claim asks" in out
        assert "Left to others, as hedgerow.dev/yield asks" in out
        assert out.count("Deployment/web: .spec.x  other") == 2
        assert "a/b: no\n    a/b: |way\n" in out
        assert "1 refused" in out

    def test_conditions_are_told_before_and_after_and_messages_once(self):
        before = (ready(True, "Serving"), condition("Available", True, "Serving"))
        after = (
            ready(False, "Waits", "for pods"),
            condition("Reconciling", True, "Waits", "for pods"),
        )
        out = self.told(conditions=Planned(before, after))

        assert "Ready: True (Serving) -> False (Waits): for pods" in out
        assert "Reconciling: not set -> True (Waits)\n" in out
        assert "Available: True (Serving) -> not set" in out
        assert "Status" not in self.told(conditions=Planned(before, before))

    def test_what_else_the_status_says_is_told_if_it_changes(self):
        before = {"routeTo": "Blue", "phase": "Routed", "since": "then"}
        after = {"routeTo": "Blue", "phase": "Checking", "switch": {"steps": ["check\nit", "go"]}}
        out = self.told(status=Planned(before, after))

        assert "phase: Routed -> Checking\n" in out
        assert "switch.steps: not set -> check\\nit; go\n" in out
        assert "since: then -> not set\n" in out
        assert "routeTo" not in out

    def test_events_later_and_unchecked_are_told(self):
        later = (
            the(CHILD, "configured", line("changed", 1, 2, OURS)),
            the(OWNER, "deleted"),
        )
        events = (
            PlannedEvent("a/b", "Why", "because", "Warning"),
            PlannedEvent("a/b", "So", "it is", "Normal"),
        )
        out = self.told(events=events, later=later, looks_again_in_seconds=90, unchecked=("pods",))

        assert "Warning Why on a/b: because" in out
        assert "Normal So on a/b: it is" in out
        assert "once every Deployment has rolled out, Deployment/web would be changed" in out
        assert "  ~ .spec.x: 1 -> 2  hedgerow-bluegreen" in out
        assert "once every Deployment has rolled out, BlueGreen/demo would be deleted" in out
        assert "the operator looks again in 90 s" in out
        assert "Not checked\n    pods\n" in out

    def test_a_summary_counts_all_resources(self):
        assert summary([of("created"), of("configured"), of("created")]) == (
            "2 to create, 1 to change, 0 to delete"
        )


MAP = ObjectRef(ApiResource("v1", "ConfigMap", "configmaps"), "shop", "settings")
HELM = Holder("helm", "Apply")


def plain(action: Any, *lines: Line, ref: ObjectRef = MAP, **more: Any) -> Forecast:
    """Return the forecast of an object that is not hedgerow's own."""
    told = {k: more.pop(k) for k in ("merged", "forced", "warnings") if k in more}
    objects = (the(ref, action, *lines, **told),)
    return Forecast(**named(ref), field_manager="helm", objects=objects, **more)


class TestPlain:
    """Objects of any kind: one section each, below one heading."""

    def test_what_has_nothing_to_do_is_named_in_one_line(self):
        space = ObjectRef(
            ApiResource("v1", "Namespace", "namespaces", namespaced=False), "", "shop"
        )
        many = [replace(plain("unchanged"), name=f"m{number}") for number in range(10)]
        out = printed(
            plain("created", line("added", None, 1)),
            plain("unchanged", ref=space),
            *many,
            width=400,
        )

        assert "+ ConfigMap shop/settings would be created\n    + .spec.x: 1\n" in out
        assert "Nothing to do for 11 objects: Namespace shop, ConfigMap shop/m0, " in out
        assert "ConfigMap shop/m8, …\n" in out
        assert "controller" not in out

    def test_a_conflict_is_told_with_each_holder_and_what_helps(self):
        held = field("ConfigMap/settings", ".data.a", "argo", "Apply", since=SCALE.time)
        own = but(held, path=".data.b", manager="helm", operation="Update")
        held = but(held, declared="2", live="3")
        disputes = tuple(map(Dispute, (held, but(held, manager="flux"), own)))
        out = printed(plain("refused", contested=disputes))

        assert "✗ ConfigMap shop/settings would be refused, for conflicts over 2 fields" in out
        assert "    .data.a: you declare 2, it is 3  argo, 5m\n" in out
        assert "    .data.a: you declare 2, it is 3  flux, 5m\n" in out
        assert "or force the apply: --force shows what that takes" in out
        assert "`hedgerow adopt` moves it to the applies of helm" in " ".join(out.split())
        assert "2 contested" not in out
        assert "3 contested" in out

    def test_what_force_takes_is_told_beside_the_field(self):
        taken = field("ConfigMap/settings", ".spec.x", "kubectl", "Update", "scale")
        told = line("changed", 1, 2, SCALE, after=(HELM,))
        out = printed(plain("configured", told, forced=(".spec.x",), claims=(taken,)))

        assert "~ ConfigMap shop/settings would be changed, 1 field by force" in out
        assert "~ .spec.x: 1 -> 2  taken from kubectl (Update scale)" in out
        assert "1 to take by force" in out

    def test_other_holders_alone_are_told_as_that(self):
        out = printed(plain("configured", line("shared", 1, 1, SCALE)))

        assert "~ ConfigMap shop/settings would stay as it is, and be held otherwise" in out
        assert "= 1 would be held as well, unchanged: .spec.x" in out

    def test_what_is_refused_merged_or_not_checked_says_why(self):
        refused = (WriteRefusal("ConfigMap/settings", ("no", "never")),)
        out = printed(
            plain("refused", refusals=refused),
            plain("created", merged="its kind is not there"),
            plain("unchanged", unchecked=("it is being deleted",)),
        )

        assert "✗ ConfigMap shop/settings would be refused\n    no\n    never\n" in out
        assert "the server was not asked: its kind is not there" in out
        assert "= ConfigMap shop/settings would not be changed" in out
        assert "not checked: it is being deleted" in out
        assert "Nothing to do" not in out

    def test_an_atomic_list_of_maps_is_told_by_what_differs_in_it(self):
        old = [{"name": "v1", "served": True}, {"name": "v2"}]
        new = [{"name": "v1", "served": False}, {"name": "v2"}]
        out = printed(plain("configured", line("changed", old, new, HELM)))
        grown = printed(plain("configured", line("changed", old, [*new, {"name": "v3"}], HELM)))

        assert "~ .spec.x[0].served: true -> false  helm" in out
        assert "v2" not in out
        assert "~ .spec.x: [{" in grown


class TestLayout:
    LONG = line("changed", "a" * 70, "b " * 30, OURS)

    @pytest.mark.parametrize("width", [40, 80, 140])
    def test_no_line_is_wider_than_the_terminal_and_none_ends_in_blanks(self, width):
        held = field("Deployment/web", ".spec.template.spec", "kubectl", "Update", "", SCALE.time)
        out = printed(replace(of("configured", self.LONG), claims=(held,)), width=width)
        body = out.split("\n\n")[1:-1]

        assert max(len(text) for part in body for text in part.splitlines()[1:]) <= width
        assert [text for part in body for text in part.splitlines() if text != text.rstrip()] == []

    def test_on_a_narrow_one_the_holder_goes_below(self):
        out = printed(of("configured", line("changed", 1, 2, OURS)), width=80)

        assert "    ~ .spec.x: 1 -> 2\n        hedgerow-bluegreen\n" in out


class TestJson:
    def test_it_has_all_of_a_forecast(self):
        held = field("Deployment/web", ".b", "c", declared="1", live="2")
        full = replace(
            of("configured", line("changed", 1, 2, SCALE), line("added", UNSET, 1), forced=(".x",)),
            contested=contested(held).contested,
            later=(the(OWNER, "deleted", line("removed", 1, UNSET, OURS)),),
            conditions=Planned((), (ready(True, "Serving"),)),
            events=(PlannedEvent("a/b", "Why", "because", "Normal"),),
            looks_again_in_seconds=90,
        )
        told = encoded(full, NOTHING)
        first, second = told["resources"]

        assert told["verdict"] == first["verdict"] == "conflicts"
        assert second["verdict"] == "nothing"
        assert second["looksAgainInSeconds"] is None
        changed, added = first["objects"][0]["fields"]
        assert changed == {
            "path": ".spec.x", "change": "changed", "old": 1, "new": 2,
            "holders": [
                {
                    "manager": "kubectl", "operation": "Update", "subresource": "scale",
                    "time": SCALE.time,
                }
            ],
            "holdersAfter": [{"manager": "hedgerow-bluegreen", "operation": "Apply"}],
        }  # fmt: skip
        assert "old" not in added
        assert "new" not in first["later"][0]["fields"][0]
        assert first["objects"][0]["forced"] == [".x"]
        assert first["objects"][0]["merged"] is None
        [dispute] = first["contested"]
        assert dispute["field"] == held.wire()
        assert [remedy["effect"] for remedy in dispute["remedies"]] == [
            "To leave it as it is",
            "To take it back, where the namespace allows claims",
        ]
        assert first["together"] == []
        assert first["conditions"]["after"][0]["type"] == "Ready"
        assert first["status"] == {"before": {}, "after": {}}
        assert first["looksAgainInSeconds"] == 90

    def test_it_has_the_commands_that_settle_several_fields(self):
        held = field("Deployment/web", ".b", "c")
        [first] = encoded(contested(held, but(held, path=".d")))["resources"]

        assert [one["effect"] for one in first["together"]] == [
            "To leave all fields that can be yielded",
            "To take back all fields that can be claimed, where the namespace allows claims",
        ]
        assert "Deployment/web: b; Deployment/web: d" in first["together"][0]["command"]


@pytest.fixture
def world():
    yield World()
    structlog.reset_defaults()


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capsys, world: World, tmp_path: Path):
    """Type `hedgerow plan …` against the cluster in memory; BlueGreens given become a file."""
    server = asked(world.server)
    monkeypatch.setattr(client, "connect", connect(server))

    def run(*words: str, text: str = "") -> tuple[int, str, str]:
        path = tmp_path / "x.yaml"
        path.write_text(text, "utf-8")
        with pytest.raises(SystemExit) as ended:
            main(["plan", *words, *(("-f", str(path)) if text else ())])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    run.server = server  # type: ignore[attr-defined]
    return run


def text(name: str = "demo", **meta: Any) -> str:
    spec = {"routeTo": "Blue", "blueSpec": pods("blue"), "greenSpec": pods("green")}
    return json.dumps(
        {
            "apiVersion": BlueGreen.api.group_version,
            "kind": "BlueGreen",
            "metadata": {"name": name, **meta},
            "spec": spec,
        }
    )


class TestTyped:
    def test_changes_are_exit_code_2(self, typed):
        code, out, err = typed(text=text())

        assert (code, err) == (2, "")
        assert "+ BlueGreen/demo would be created" in out

    def test_a_file_that_cannot_be_read_does_not_stop_a_folder(self, typed, tmp_path):
        (tmp_path / "a.yaml").write_text("a: [", "utf-8")
        (tmp_path / "b.yaml").write_bytes(b"\xff")
        (tmp_path / "c.yaml").write_text(text(), "utf-8")
        code, out, _ = typed("-f", str(tmp_path), "--field-manager", "helm", "-o", "json")
        found = json.loads(out)["resources"]

        assert code == 1
        assert [(one["kind"], one["verdict"]) for one in found] == [
            ("BlueGreen", "changes"), ("a file", "failed"), ("a file", "failed"),
        ]  # fmt: skip
        assert [one["refusals"][0]["causes"][0] for one in found[1:]] == [
            f"{tmp_path}/a.yaml: line 2: did not find expected node content",
            f"{tmp_path}/b.yaml: it is no text in UTF-8; give YAML or JSON",
        ]

    def test_if_none_can_be_read_the_first_says_why(self, typed, tmp_path):
        (tmp_path / "a.yaml").write_text("a: [", "utf-8")
        code, out, err = typed("-f", str(tmp_path), "--field-manager", "helm")

        assert (code, out) == (1, "")
        assert "line 2: did not find expected node content" in err

    def test_json_is_the_same_in_full(self, typed):
        code, out, _ = typed("-o", "json", text=text())

        assert code == 2
        assert json.loads(out)["verdict"] == "changes"

    def test_a_name_is_looked_up_in_every_kind(self, typed, world):
        world.apply()
        for word in ("demo", "bg/demo"):
            code, out, _ = typed(word)

            assert code == 2
            assert "+ Service/demo would be created" in out
            assert "BlueGreen/demo would be" not in out

    def kustomizing(self, monkeypatch, tmp_path: Path, script: str) -> None:
        """Have a kubectl on the PATH that runs this script, and no other program."""
        kubectl = tmp_path / "bin" / "kubectl"
        kubectl.parent.mkdir()
        kubectl.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
        kubectl.chmod(0o755)
        monkeypatch.setenv("PATH", str(kubectl.parent))

    def test_what_kustomize_builds_is_planned(self, typed, monkeypatch, tmp_path):
        made = f"[ \"$1 $2 $3\" = 'kustomize -- an overlay' ] && echo '{text()}'"
        self.kustomizing(monkeypatch, tmp_path, made)
        code, out, err = typed("-k", "an overlay")

        assert (code, err) == (2, "")
        assert "BlueGreen default/demo" in out

    @pytest.mark.parametrize(
        ("script", "said"),
        [
            ("echo 'error: no'; exit 1", "`kubectl kustomize 'an overlay'` failed: \n"),
            ("echo 'error: no' >&2; echo why >&2; exit 1", "failed: error: no; why\n"),
            (
                'echo \'E1125 04:42:15.6 236 run.go:72] "command failed" err="no"\' >&2; exit 1',
                "failed: no\n",
            ),
            ("printf '\\033]52;c' >&2; exit 1", "failed: \\u001b]52;c\n"),
            ("echo '{'", "hedgerow: an overlay: "),
            ("true", "there is no object in the files given"),
        ],
    )
    def test_what_kustomize_refuses_is_told(self, typed, monkeypatch, tmp_path, script, said):
        self.kustomizing(monkeypatch, tmp_path, script)
        code, out, err = typed("-k", "an overlay")

        assert (code, out) == (1, "")
        assert said in err

    def test_without_kubectl_nothing_is_kustomized(self, typed, monkeypatch, tmp_path):
        monkeypatch.setenv("PATH", str(tmp_path))
        code, out, err = typed("-k", "overlay")

        assert (code, out) == (1, "")
        assert err.startswith("hedgerow: -k needs kubectl, and there is none on the PATH")

    def test_of_a_release_of_helm_hooks_are_left_out(self, typed):
        hook = text("hook", annotations={"helm.sh/hook": "test"})
        code, out, err = typed("--tool", "helm", "--release", "shop", text=f"{text()}\n---\n{hook}")

        assert code == 2
        assert out.startswith("Server-side apply as helm by Helm 4, release shop\n")
        assert "+ .metadata.annotations.meta.helm.sh/release-name: shop" in out
        assert "hooks at a time of their own: BlueGreen/hook" in err
        assert "BlueGreen/hook" not in out

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("--tool", "helm"), "none of these objects is in the cluster as one of a release"),
            (("--release", "shop"), "--release is that of Helm: give it with --tool helm"),
        ],
    )
    def test_helm_has_to_know_the_release(self, typed, words, said):
        code, out, err = typed(*words, text=text())

        assert (code, out) == (1, "")
        assert said in err

    def test_an_object_of_another_namespace_than_that_of_n_is_refused(self, typed):
        body = f"{text()}\n---\n{text('there', namespace='shop')}"
        assert typed(text=body)[0] == 1, "there is no such namespace"
        code, out, _ = typed("-n", "default", text=body)

        assert code == 1
        assert "+ BlueGreen/demo would be created" in out
        told_in_one_line = " ".join(out.split())
        assert "names the namespace shop, and -n names default: kubectl" in told_in_one_line
        cluster_wide = {"kind": "Namespace", "metadata": {"name": "x", "namespace": "shop"}}
        made = json.dumps({"apiVersion": "v1", **cluster_wide})
        assert "and -n names" not in typed("-n", "default", text=made)[1]
        helm = ("--tool", "helm", "--release", "shop")
        assert "and -n names" not in typed("-n", "default", *helm, text=body)[1]

    def test_a_conflict_is_exit_code_3(self, typed, world):
        world.apply()
        world.edit("BlueGreen", "demo", {"spec": {"routeTo": "Green"}})

        assert typed("--field-manager", "user", text=text())[0] == 3

    def test_what_is_refused_is_exit_code_1(self, typed):
        assert typed(text=text().replace('"blueSpec"', '"x"'))[0] == 1

    def test_nothing_of_the_passes_is_logged(self, typed, caplog):
        with caplog.at_level(logging.DEBUG):
            _, out, _ = typed(text=text())

        assert "[info" not in out
        assert [record for record in caplog.records if record.name != "asyncio"] == []

    @pytest.mark.parametrize(
        ("words", "body", "said"),
        [
            ((), "", "name either resources or, with -f, files"),
            (("demo",), text(), "name either resources or, with -f, files"),
            (("demo", "-k", "x"), "", "or, with -k, a directory; see `hedgerow plan --help`"),
            (("-k", "x"), text(), "or, with -k, a directory; see `hedgerow plan --help`"),
            (("demo",), "", "demo does not exist in namespace default; name another with -n"),
            (("qq/demo",), "", "qq is not one of hedgerow's kinds"),
            (("/demo",), "", "'/demo' is no [KIND/]NAME"),
            (("bg/",), "", "'bg/' is no [KIND/]NAME"),
            ((), "---", "there is no object in the files given"),
            (("--field-manager", "helm", "demo"), "", "are about the objects of files"),
            (("--force", "demo"), "", "are about the objects of files"),
            (("--field-manager", ""), text(), "takes the name of a field manager: 1 to"),
            (("--field-manager", "a\x1bb"), text(), "takes the name of a field manager"),
            (("--field-manager", "x" * 129), text(), "takes the name of a field manager"),
            (("-f", "/nowhere.yaml"), "", "/nowhere.yaml: No such file"),
            (("demo", "--instance", "No!"), "", "--instance takes a short name"),
        ],
    )
    def test_wrong_input_is_a_failure_and_says_why(self, typed, words, body, said):
        code, out, err = typed(*words, text=body)

        assert (code, out) == (1, "")
        assert said in err.splitlines()[-1]

    def test_a_cluster_that_does_not_answer_is_exit_code_4(self, typed):
        typed.server.refuse("BlueGreen", httpx.ConnectError("nobody there"))
        code, out, err = typed(text=text())

        assert (code, out) == (4, "")
        assert "nobody there" in err

    def test_kinds_that_are_not_installed_are_told(self, typed):
        for kind in ("BlueGreen", "CronJob", "Memcached"):
            typed.server.answers[f"read {kind}"] = Reply(404, unserved().status)
        code, _, err = typed("demo")

        assert code == 1
        assert "run `hedgerow install`" in err

    def test_a_kind_that_may_not_be_read_is_told_unless_it_is_not_installed(self, typed):
        typed.server.denied = {"get guestbooks"}
        assert "demo does not exist in namespace" in typed("demo")[2]
        typed.server.store.serve(ours.guestbook())
        assert "you cannot get guestbooks" in typed("demo")[2]

    def test_a_resource_that_is_there_twice_is_planned_once_and_that_is_said(self, typed):
        code, out, err = typed("-o", "json", text=f"{text()}\n---\n{text()}")

        assert code == 2
        assert len(json.loads(out)["resources"]) == 1
        assert "BlueGreen/demo is there twice; the last one is planned" in err

    def test_a_namespace_that_comes_before_counts_and_one_that_comes_after_does_not(self, typed):
        made = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}})
        both = [made, text(namespace="new")]

        assert typed(text="\n---\n".join(both))[0] == 2
        assert typed(text="\n---\n".join(reversed(both)))[0] == 1

    def test_every_object_is_planned(self, typed):
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {}}
        both = f"{json.dumps(made)}\n---\n{text()}"
        code, out, err = typed(text=both)

        assert (code, err) == (2, "")
        assert out.startswith(
            "Server-side apply as kubectl\n\n+ ConfigMap default/c would be created\n"
        )
        assert "BlueGreen default/demo  controller bluegreen" in out
        assert typed("--field-manager", "helm", "--force", text=both)[1].startswith(
            "Server-side apply as helm, forced\n"
        )

    def test_a_plain_object_that_is_there_twice_is_planned_once(self, typed):
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {}}
        both = "\n---\n".join(json.dumps({**made, "data": {"a": a}}) for a in "xy")
        _, out, err = typed("--field-manager", "helm", "-o", "json", text=both)
        [found] = json.loads(out)["resources"]

        assert "ConfigMap/c is there twice; the last one is planned" in err
        assert (found["controller"], found["fieldManager"]) == (None, "helm")
        assert found["objects"][0]["fields"][-1]["new"] == "y"

    def test_on_a_terminal_it_says_what_it_is_at(self, typed, monkeypatch):
        shown = io.StringIO()
        monkeypatch.setattr(
            command, "Terminal", lambda **_: Console(file=shown, force_terminal=True, width=200)
        )
        typed(text=f"{text()}\n---\n{text('other')}")
        typed("demo")

        assert "planning BlueGreen/other, 2 of 2" in shown.getvalue()
        assert "planning demo" in shown.getvalue()

    def test_the_help_tells_the_exit_codes(self, typed):
        code, out, _ = typed("--help")

        assert code == 0
        assert "0 nothing to do, 2 changes, 3" in " ".join(out.replace("│", "").split())


def test_sections_of_nothing_are_none():
    assert list(sections(NOTHING, NOW)) == []
