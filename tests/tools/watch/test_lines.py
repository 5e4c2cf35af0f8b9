"""The lines of a watch: as sentences and as JSON; all bounded."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from hedgerow.fields.managed_fields import Holder
from hedgerow_schemas.base import ApiResource
from hedgerow_tools.fields.changes import FieldChange
from hedgerow_tools.watch.lines import JsonLines, Scope, Sentences, WatchNotice
from support.code.sources import ROOT
from tools.watch.configs import CONFIG_MAP

NOW = datetime(2026, 11, 22, 21, 0, 5, tzinfo=UTC)
AT = "2026-11-22T21:00:05Z"
SCOPE = Scope(CONFIG_MAP, "ns")
NODES = Scope(ApiResource("v1", "Node", "nodes", namespaced=False), "")


def kept(name: str = "web", namespace: str = "ns", phase: str = "Running") -> dict[str, Any]:
    meta = {"name": name, "namespace": namespace, "uid": "u", "resourceVersion": "7"}
    return {"metadata": meta, "phase": phase, "state": b""}


def change(
    path: str, *managers: str, kind: Any = "changed", record: Any = "wrote", item: str = ""
) -> FieldChange:
    """Return a change of a field, or of an item of it."""
    place = (*(f"f:{name}" for name in path.split(".")), *([item] if item else []))
    return FieldChange(kind, place, record, tuple(Holder(m, "Update", "status") for m in managers))


def nobody(path: str, item: str = "") -> FieldChange:
    return change(path, kind="added", record="nobody", item=item)


ADDED_BY_NOBODY = nobody("c")
UPDATED = WatchNotice("UPDATED", kept(), kept())


class TestSentences:
    @pytest.mark.parametrize(
        ("notice", "line"),
        [
            (WatchNotice("ADDED", None, kept()), f"{AT} added ns/web  Running"),
            (WatchNotice("DELETED", kept(), None), f"{AT} deleted ns/web  Running"),
            (WatchNotice("ADDED", None, kept(phase="")), f"{AT} added ns/web  -"),
            (WatchNotice("ADDED", None, kept("n", "")), f"{AT} added n  Running"),
            (
                WatchNotice("DELETED", kept(), None, listed=True),
                f"{AT} deleted ns/web  Running  (during a gap of the watch)",
            ),
        ],
    )
    def test_a_notice_is_time_type_key_and_phase(self, notice, line):
        assert Sentences(SCOPE).notice(notice, (), NOW) == line

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            (None, "what changed is unknown: its fields were not kept"),
            ((), "no field changed"),
            ((change("a.b", "kubelet"),), "changed by kubelet: .a.b"),
            (
                (change("a", "x", "y"), change("b", "x", "y"), ADDED_BY_NOBODY),
                "changed by x, y: .a, .b; added by nobody on record: .c",
            ),
            ((change("a", "x", record="holds"),), "changed, held by x: .a"),
            (
                (change("a", "x", kind="removed", record="held"),),
                "removed by unknown, held before by x: .a",
            ),
            ((change("a", "x", kind="taken"),), "taken by x: .a"),
            ((change("a", ""),), "changed by ?: .a"),
        ],
    )  # fmt: skip
    def test_an_update_says_what_changed_and_by_whom(self, changes, said):
        line = Sentences(SCOPE).notice(UPDATED, changes, NOW)

        assert line == f"{AT} updated ns/web  Running  {said}"

    def test_many_fields_are_counted(self):
        line = Sentences(SCOPE).notice(
            UPDATED, tuple(change(f"f{n}", "x") for n in range(100)), NOW
        )

        assert line.endswith("changed by x: .f0, .f1, .f2, .f3, 96 more")

    def test_many_managers_are_counted(self):
        changes = tuple(change(f"f{n}", f"m{n}") for n in range(20))
        crowd = (change("a", *(f"m{n}" for n in range(20))),)

        line = Sentences(SCOPE).notice(UPDATED, changes, NOW)
        other = Sentences(SCOPE).notice(UPDATED, crowd, NOW)

        assert line.endswith("changed by m5: .f5; 14 more fields by others")
        assert other.endswith("changed by m0, m1, m2, m3, m4, 15 more: .a")

    def test_nothing_that_somebody_else_wrote_can_break_a_line_or_make_it_endless(self):
        long = change("x\x1b[2J\n" + "y" * 10_000, "m\n" + "z" * 10_000)

        line = Sentences(SCOPE).notice(
            WatchNotice("UPDATED", kept(), kept(phase="a\nb")), (long,), NOW
        )

        assert line.isprintable()
        assert len(line) < 500

    @pytest.mark.parametrize(
        ("scope", "again", "said"),
        [
            (SCOPE, False, "synced: 3 configmaps in namespace ns"),
            (Scope(CONFIG_MAP, ""), False, "synced: 3 configmaps in all namespaces"),
            (NODES, True, "synced again after a gap: 3 nodes"),
        ],
    )
    def test_it_says_when_all_is_read(self, scope, again, said):
        assert Sentences(scope).synced(3, NOW, again=again) == f"{AT} {said}"


class TestJson:
    def test_every_key_is_there_in_every_line(self):
        form = JsonLines(SCOPE)
        found = json.loads(form.notice(UPDATED, (change("a.b", "kubelet"),), NOW))

        assert found == {
            "type": "UPDATED",
            "time": AT,
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "namespace": "ns",
            "name": "web",
            "key": "ns/web",
            "uid": "u",
            "resourceVersion": "7",
            "phase": "Running",
            "duringGap": False,
            "changes": [
                {
                    "path": ".a.b",
                    "change": "changed",
                    "record": "wrote",
                    "managers": [
                        {"manager": "kubelet", "operation": "Update", "subresource": "status"}
                    ],
                }
            ],
            "moreChanges": 0,
        }
        for notice in (WatchNotice("ADDED", None, kept()), WatchNotice("DELETED", kept(), None)):
            assert json.loads(form.notice(notice, (), NOW)).keys() == found.keys()

    def test_what_is_unknown_is_null(self):
        found = json.loads(
            JsonLines(SCOPE).notice(WatchNotice("UPDATED", kept(), kept(phase=""), True), None, NOW)
        )

        assert (found["phase"], found["changes"], found["moreChanges"]) == (None, None, 0)
        assert found["duringGap"] is True

    def test_it_is_bounded(self):
        crowd = tuple(f"m{n}" for n in range(100))
        many = tuple(change(f"f{n}" + "x" * 1000, *crowd) for n in range(1000))

        line = JsonLines(SCOPE).notice(UPDATED, many, NOW)

        found = json.loads(line)
        assert (len(found["changes"]), found["moreChanges"]) == (50, 950)
        assert len(line) < 50_000

    def test_synced_has_the_number(self):
        line = JsonLines(SCOPE).synced(3, NOW, again=True)

        assert json.loads(line) == {
            "type": "SYNCED",
            "time": AT,
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "namespace": "ns",
            "count": 3,
            "again": True,
        }


class TestGuide:
    """docs/guides/watch.md shows lines as they are printed, and explains each key."""

    GUIDE = (ROOT / "docs/guides/watch.md").read_text("utf-8")

    def test_its_json_is_what_is_printed(self):
        documented = [line for line in self.GUIDE.splitlines() if line.startswith('{"')]
        synced, updated = map(json.loads, documented)
        (holder,) = updated["changes"][0]["managers"]
        meta = {key: updated[key] for key in ("name", "namespace", "uid", "resourceVersion")}
        state = {"metadata": meta, "phase": "", "state": b""}
        place = tuple(f"f:{name}" for name in updated["changes"][0]["path"][1:].split("."))
        changes = (FieldChange("changed", place, "wrote", (Holder(**holder),)),)
        form = JsonLines(Scope(CONFIG_MAP, synced["namespace"]))

        notice = WatchNotice("UPDATED", state, state)
        printed = [
            form.synced(synced["count"], datetime.fromisoformat(synced["time"]), again=False),
            form.notice(notice, changes, datetime.fromisoformat(updated["time"])),
        ]

        assert printed == documented

    def test_it_explains_every_key(self):
        rows = "\n".join(re.findall(r"^\| (`.*?) \|", self.GUIDE, re.MULTILINE))
        explained = set(re.findall(r"`(\w+)`", rows))
        line = JsonLines(SCOPE).notice(UPDATED, (change("a", "m"),), NOW)
        found = json.loads(line)

        assert found.keys() - explained == set()
        assert found["changes"][0].keys() - explained == set()

    def test_its_lines_are_those_of_the_command(self):
        form = Sentences(Scope(ApiResource("v1", "Pod", "pods"), "demo"))
        name = "web-5d88c5c7fb-z7thl"
        pending, running = (kept(name, "demo", phase) for phase in ("Pending", "Running"))
        bound = nobody("spec.nodeName"), nobody("status.conditions", item="i:0")
        kwok = (
            change("status.phase", "kwok"),
            *(
                change("status.conditions", "kwok", kind="added", item=f'k:{{"type":"{name}"}}')
                for name in ("Initialized", "ContainersReady", "Ready")
            ),
            *(change("status.hostIP", "kwok", kind="added") for _ in range(6)),
        )
        marks = ("deletionTimestamp", "deletionGracePeriodSeconds")
        ending = tuple(nobody(f"metadata.{mark}") for mark in marks)
        printed = [
            form.synced(0, NOW, again=False),
            form.notice(WatchNotice("ADDED", None, pending), (), NOW),
            form.notice(WatchNotice("UPDATED", pending, pending), bound, NOW),
            form.notice(WatchNotice("UPDATED", pending, running), kwok, NOW),
            form.notice(WatchNotice("UPDATED", running, running), ending, NOW),
            form.notice(WatchNotice("DELETED", running, None), (), NOW),
        ]
        shown = re.findall(r"^2026-\S+ (.*)$", self.GUIDE, re.MULTILINE)

        assert len(shown) == 6
        assert set(shown) == {line.partition(" ")[2] for line in printed}
