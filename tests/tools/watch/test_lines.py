"""The lines of a watch: as sentences, which are bounded, and as JSON."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from hedgerow.encoding import json_text
from hedgerow.fields.managed_fields import Holder
from hedgerow_schemas.base import ApiResource
from hedgerow_tools.fields.changes import FieldChange
from hedgerow_tools.watch.lines import (
    ObjectLine,
    Printer,
    Scope,
    WatchNotice,
    line_of,
    phase_of,
    sentence,
)
from support.code.sources import ROOT
from tools.watch.configs import CONFIG_MAP, config

NOW = datetime(2026, 11, 22, 21, 0, 5, tzinfo=UTC)
AT = "2026-11-22T21:00:05Z"
SCOPE = Scope(CONFIG_MAP, "ns")
NODES = Scope(ApiResource("v1", "Node", "nodes", namespaced=False), "")


class Fixed:
    """A clock that stands still."""

    def __init__(self, at: datetime = NOW) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at


def live(name: str = "web", namespace: str = "ns", phase: str = "Running") -> dict[str, Any]:
    meta = {"name": name, "namespace": namespace, "uid": "u", "resourceVersion": "7"}
    return {"metadata": meta, "status": {"phase": phase}}


def line(*changes: FieldChange, **more: Any) -> ObjectLine:
    """Return the line of an update with these changes."""
    found = line_of(WatchNotice("UPDATED", live(), live()), CONFIG_MAP, NOW)
    return replace(found, changes=changes, **more)


def change(path: str, *managers: str, kind: Any = "changed", record: Any = "wrote") -> FieldChange:
    return FieldChange(
        f".{path}", kind, record, tuple(Holder(m, "Update", "status") for m in managers)
    )


def nobody(path: str) -> FieldChange:
    return change(path, kind="added", record="nobody")


class TestSentences:
    @pytest.mark.parametrize(
        ("notice", "said"),
        [
            (WatchNotice("ADDED", None, live()), "added ns/web  Running"),
            (WatchNotice("DELETED", live(), None), "deleted ns/web  Running"),
            (WatchNotice("ADDED", None, live(phase="")), "added ns/web  -"),
            (WatchNotice("ADDED", None, live("n", "")), "added n  Running"),
            (
                WatchNotice("DELETED", live(), None, listed=True),
                "deleted ns/web  Running  (during a gap of the watch)",
            ),
        ],
    )
    def test_a_notice_is_time_type_key_and_phase(self, notice, said):
        assert sentence(line_of(notice, CONFIG_MAP, NOW)) == f"{AT} {said}"

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ((), "no field changed"),
            ((change("a.b", "kubelet"),), "changed by kubelet: .a.b"),
            (
                (change("a", "x", "y"), change("b", "x", "y"), nobody("c")),
                "changed by x, y: .a, .b; added by nobody on record: .c",
            ),
            ((change("a", "x", record="holds"),), "changed, held by x: .a"),
            (
                (change("a", "x", kind="removed", record="held"),),
                "removed by unknown, held before by x: .a",
            ),
            ((change("a", "x", kind="taken"),), "taken by x: .a"),
            ((change("a", ""),), "changed by ?: .a"),
            (
                tuple(change(f"f{n}", "x") for n in range(100)),
                "changed by x: .f0, .f1, .f2, .f3, 96 more",
            ),
            (
                (change("a", *(f"m{n}" for n in range(20))),),
                "changed by m0, m1, m2, m3, m4, 15 more: .a",
            ),
        ],
    )
    def test_an_update_says_what_changed_and_by_whom(self, changes, said):
        assert sentence(line(*changes)) == f"{AT} updated ns/web  Running  {said}"

    def test_many_groups_are_counted(self):
        told = sentence(line(*(change(f"f{n}", f"m{n}") for n in range(20))))

        assert told.endswith("changed by m5: .f5; 14 more fields by others")

    def test_nothing_that_somebody_else_wrote_can_break_a_line_or_make_it_endless(self):
        long = change("x\x1b[2J\n" + "y" * 10_000, "m\n" + "z" * 10_000)

        told = sentence(line(long, phase="a\nb" + "é" * 9999))

        assert told.isprintable()
        assert len(told) < 700

    @pytest.mark.parametrize(
        ("scope", "again", "said"),
        [
            (SCOPE, False, "synced: 3 configmaps in namespace ns"),
            (Scope(CONFIG_MAP, ""), False, "synced: 3 configmaps in all namespaces"),
            (NODES, True, "synced again after a gap: 3 nodes"),
        ],
    )
    def test_it_says_when_all_is_read(self, capsys, scope, again, said):
        Printer(scope, Fixed()).synced(3, again=again)

        assert capsys.readouterr().out == f"{AT} {said}\n"


class TestPhase:
    @pytest.mark.parametrize(
        ("status", "phase"),
        [
            ({"phase": "Pending"}, "Pending"),
            ({"phase": "", "conditions": [{"type": "Ready", "status": "True"}]}, "Ready"),
            ({"conditions": [{"type": "Ready", "status": "False", "reason": "R"}]}, "not Ready: R"),
            ({"phase": 3}, ""),
            ({}, ""),
            (None, ""),
        ],
    )
    def test_it_is_status_phase_or_else_what_the_status_says(self, status, phase):
        assert phase_of({**config("c"), "status": status}) == phase

    def test_a_kind_without_a_phase_has_its_readiness(self):
        live = {"apiVersion": "apps/v1", "kind": "Deployment", "status": {"availableReplicas": 1}}

        assert phase_of({**live, "spec": {"replicas": 2}}) == "available 1/2, 0 updated"


class TestGuide:
    """docs/guides/watch.md shows lines as they are printed, and explains each key."""

    GUIDE = (ROOT / "docs/guides/watch.md").read_text("utf-8")

    def test_its_json_is_what_is_printed(self, capsys):
        documented = [line for line in self.GUIDE.splitlines() if line.startswith('{"')]
        synced, updated = map(json.loads, documented)
        clock = Fixed(datetime.fromisoformat(synced["time"]))
        printer = Printer(Scope(CONFIG_MAP, synced["namespace"]), clock, for_programs=True)
        printer.synced(synced["count"], again=False)
        changes = tuple(
            FieldChange(path, kind, record, tuple(Holder(**each) for each in managers))
            for path, kind, record, managers in (one.values() for one in updated["changes"])
        )
        meta = {key: updated[key] for key in ("name", "namespace", "uid", "resourceVersion")}
        state, at = {"metadata": meta}, datetime.fromisoformat(updated["time"])
        found = line_of(WatchNotice("UPDATED", state, state), CONFIG_MAP, at)
        printed = json_text(replace(found, changes=changes))

        assert [capsys.readouterr().out.rstrip(), printed] == documented

    def test_it_explains_every_key(self):
        rows = "\n".join(re.findall(r"^\| (`.*?) \|", self.GUIDE, re.MULTILINE))
        explained = set(re.findall(r"`(\w+)`", rows))
        found = json.loads(json_text(line(change("a", "m"))))

        assert found.keys() - explained == set()
        assert found["changes"][0].keys() - explained == set()

    def test_its_lines_are_those_of_the_command(self, capsys):
        name = "web-5d88c5c7fb-z7thl"
        pending, running = (live(name, "demo", phase) for phase in ("Pending", "Running"))
        kinds = ("Initialized", "ContainersReady", "Ready")
        kwok = (
            change("status.phase", "kwok"),
            *(change(f'status.conditions[type="{k}"]', "kwok", kind="added") for k in kinds),
            *(change("status.hostIP", "kwok", kind="added") for _ in range(6)),
        )
        marks = ("deletionTimestamp", "deletionGracePeriodSeconds")
        Printer(Scope(ApiResource("v1", "Pod", "pods"), "demo"), Fixed()).synced(0, again=False)
        lines = [
            line_of(WatchNotice("ADDED", None, pending), CONFIG_MAP, NOW),
            line(nobody("spec.nodeName"), nobody("status.conditions[0]"), phase="Pending"),
            line(*kwok),
            line(*(nobody(f"metadata.{mark}") for mark in marks)),
            line_of(WatchNotice("DELETED", running, None), CONFIG_MAP, NOW),
        ]
        told = [sentence(replace(one, key=f"demo/{name}")) for one in lines]
        printed = {one.partition(" ")[2] for one in (capsys.readouterr().out.rstrip(), *told)}
        shown = re.findall(r"^2026-\S+ (.*)$", self.GUIDE, re.MULTILINE)

        assert len(shown) == 6
        assert set(shown) == printed
