"""What is told of an object's owners, in words and on a terminal."""

from __future__ import annotations

import copy
from io import StringIO

import pytest
from rich.console import Console

from hedgerow.fields.redaction import worded
from hedgerow.texts import printable
from hedgerow_tools.fields.selection import nothing
from hedgerow_tools.owners import terminal
from hedgerow_tools.owners.report import absent, notes, title, value_of, visible
from hedgerow_tools.owners.view import OwnersView
from hedgerow_tools.render.tables import guides
from hedgerow_tools.render.times import age
from hedgerow_tools.render.widths import PIPED, Note
from tools.owners.owned import LIVE, NOW, told


def show(view: OwnersView, *more: Note, console: Console | None = None) -> None:
    shown = (*notes(view, "no field is held", all_told=False), *more)
    terminal.show(view, shown, NOW, console)


def drawn(width: int, view: OwnersView, *more: Note) -> list[str]:
    out = StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None)
    show(view, *more, console=console)
    return [line.rstrip() for line in out.getvalue().splitlines()]


EXPECTED = """\
Deployment shop/web  apps/v1: 10 fields, 7 unowned, 1 contested

FIELD                                    MANAGER             OPERATION     AGE
metadata
└ ownerReferences
  └ [0]
    ├ apiVersion: app.demo.kakao.com/v1  unowned
    ├ kind: BlueGreen                    unowned
    ├ name: demo                         unowned
    ├ uid: owner                         unowned
    └ controller: true                   unowned
spec
├ containers
│ └ [name="main"]                        hedgerow-bluegreen  Apply         5m
│   │                                    kubectl-set         Update        3d
│   ├ name: main                         hedgerow-bluegreen  Apply         5m
│   │                                    kubectl-set         Update        3d
│   └ image: app:1                       hedgerow-bluegreen  Apply         5m
│                                        kubectl-set         Update        3d
│                                        ✗ contested
├ replicas: 3                            kubectl             Update scale  ?
├ paused: false                          unowned
└ empty: {}                              unowned

Not in the object:
FIELD                                MANAGER  OPERATION  AGE
.spec.lost: written as apps/v1beta1  old      Update     5m

contested: BlueGreen/demo declares another value, and forces nothing
a list item shown as a number has no key that a manager holds; in a field path,
write [*] for it
"""


class TestTerminal:
    def test_fields_are_on_the_left_and_managers_on_the_right(self):
        assert drawn(80, told()) == EXPECTED.splitlines()

    @pytest.mark.parametrize("width", [40, 60, 80, 140, 200])
    def test_no_line_is_longer_than_the_terminal(self, width):
        long = copy.deepcopy(LIVE)
        long["spec"]["note"] = "x" * 300
        long["metadata"]["managedFields"][0]["manager"] = "m" * 100
        lines = drawn(width, told(long))

        assert max(map(len, lines)) <= width
        assert any("…" in line for line in lines)

    def test_no_word_is_broken_below_the_fields_and_no_command(self):
        command = ("x y " * 40).rstrip()
        lines = drawn(60, told(), Note("word " * 20), Note(command, is_command=True))

        assert lines[-3:] == [("word " * 12).rstrip(), ("word " * 8).rstrip(), command]

    @pytest.mark.parametrize(("columns", "width"), [("", PIPED), ("70", 70)])
    def test_what_is_piped_is_wide_unless_columns_tells(self, monkeypatch, capsys, columns, width):
        long = copy.deepcopy(LIVE)
        long["spec"]["note"] = "x" * 300
        monkeypatch.setenv("COLUMNS", columns)
        show(told(long))
        shown = capsys.readouterr().out.splitlines()

        assert max(map(len, shown[2:-2])) <= width
        assert all(line == line.rstrip() for line in shown)
        assert any("note: xxxx" in line for line in shown)

    def test_nothing_found_is_said(self):
        assert drawn(80, told(manager="nobody"))[-1] == "no field is held"

    @pytest.mark.parametrize(
        ("asked", "said"),
        [
            ({}, "no field is held"),
            ({"contested": True}, "no field is contested"),
            ({"manager": "kube*"}, "no field is held by kube*"),
            ({"manager": "kube*", "contested": True}, "no field of kube* is contested"),
        ],
    )
    def test_what_was_asked_for_is_said(self, asked, said):
        assert nothing(**asked) == said

    def test_emptied_managed_fields_are_said(self):
        bare = {**LIVE, "metadata": {"name": "web"}}

        assert drawn(80, told(bare, {}))[-2:] == [
            "the object has no managed fields: somebody emptied them, or the API server keeps",
            "none for this kind",
        ]


class TestPage:
    def test_the_title_has_no_namespace_where_there_is_none(self):
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}}

        assert title(told(node, {})) == "Node x"

    def test_managers_are_counted_by_leaf(self):
        assert told().managers == {
            "hedgerow-bluegreen": 2,
            "kubectl-set": 2,
            "kubectl": 1,
            "old": 0,
        }

    def test_identity_is_left_out_and_with_it_a_branch_of_nothing_else(self):
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}, "spec": {"a": 1}}

        assert [row.path for row in visible(told(node, {}).fields)] == [".spec", ".spec.a"]

    def test_a_contested_field_that_is_not_there_is_absent(self):
        view = told(LIVE, {".spec.x": "BlueGreen/demo"})
        gone, missing = absent(view)

        assert (gone.path, value_of(gone, view)) == (".spec.lost", "written as apps/v1beta1")
        assert (missing.path, missing.contested) == (".spec.x", "BlueGreen/demo")

    def test_a_holder_without_a_name_is_a_question_mark(self):
        odd = copy.deepcopy(LIVE)
        odd["metadata"]["managedFields"][2]["manager"] = ""
        (line,) = [line for line in drawn(80, told(odd)) if "replicas" in line]

        assert line.split() == ["├", "replicas:", "3", "?", "Update", "scale", "?"]


class TestGuides:
    def test_each_level_is_drawn_as_long_as_it_goes_on(self):
        depths = [0, 1, 2, 2, 1, 0, 1]

        assert ["".join(guide) for guide, _ in guides(depths)] == [
            "", "├ ", "│ ├ ", "│ └ ", "└ ", "", "└ ",
        ]  # fmt: skip
        assert [below for _, below in guides(depths)] == [
            "│ ", "│ │ ", "│ │   ", "│     ", "    ", "│ ", "    ",
        ]  # fmt: skip


class TestAge:
    @pytest.mark.parametrize(
        ("since", "expected"),
        [
            ("2026-01-01T12:00:00Z", "0s"),
            ("2026-01-01T12:00:02Z", "0s"),
            ("2026-01-01T12:00:03Z", "?"),
            ("2026-01-01T11:58:01Z", "119s"),
            ("2026-01-01T11:58:00Z", "2m"),
            ("2026-01-01T11:54:30Z", "5m30s"),
            ("2026-01-01T11:50:00Z", "10m"),
            ("2026-01-01T09:00:01Z", "179m"),
            ("2026-01-01T08:55:00Z", "3h5m"),
            ("2026-01-01T04:00:00Z", "8h"),
            ("2025-12-30T12:00:01Z", "47h"),
            ("2025-12-29T10:00:00Z", "3d2h"),
            ("2025-12-24T12:00:00Z", "8d"),
            ("2024-01-02T12:00:00Z", "2y"),
            ("2023-11-01T12:00:00Z", "2y62d"),
            ("2010-01-01T12:00:00Z", "16y"),
            ("", "?"),
            ("soon", "?"),
            ("2026-01-01", "?"),
        ],
    )
    def test_it_is_as_kubectl_writes_it(self, since, expected):
        assert age(since, NOW) == expected


class TestWords:
    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ("plain", "plain"),
            ("a: b", "a: b"),
            ("", '""'),
            (" x", '" x"'),
            ("8", '"8"'),
            ("1.5e3", '"1.5e3"'),
            ("10.0.0.1", "10.0.0.1"),
            ("True", '"True"'),
            ("null", '"null"'),
            ("{x", '"{x"'),
            ('say "x"', '"say \\"x\\""'),
            ("a\nb", '"a\\nb"'),
            (8, "8"),
            (True, "true"),
            (None, "null"),
            ({"a": [1]}, '{"a": [1]}'),
            ("ä", "ä"),
        ],
    )
    def test_a_string_is_bare_only_where_it_can_be_nothing_else(self, value, expected):
        assert worded(value) == expected

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("\x1b[31m", "\\u001b[31m"),
            ("a\u202eb", "a\\u202eb"),
            ("\ud800", "\\ud800"),
            ("\uffff", "\\uffff"),
            ("x" * 600, "x" * 499 + "…"),
        ],
    )
    def test_nothing_steers_the_terminal_or_breaks_xml(self, text, expected):
        assert printable(text) == expected
