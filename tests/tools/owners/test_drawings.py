"""The owners of an object as HTML: one file, whatever the object holds."""

from __future__ import annotations

import copy
import re
from html import escape, unescape

from hedgerow_tools.owners import page_html
from hedgerow_tools.owners.report import notes, visible
from hedgerow_tools.owners.view import OwnersView
from hedgerow_tools.render.widths import Note
from tools.owners.owned import LIVE, NOW, entry, told

NASTY = copy.deepcopy(LIVE)
NASTY["spec"]['<b>&"</b>'] = "<script>alert(1)</script>\x00\x1b"
NASTY["spec"]["long"] = "日本" * 400
NASTY["spec"]["deep"] = {"x": {"x": {"x": {"x": {"x": {"x": {"y" * 90: 1}}}}}}}
NASTY["metadata"]["managedFields"] += [
    entry(f"<i>manager {number}</i>", {"f:spec": {"f:paused": {}}}) for number in range(12)
]


def draw(view: OwnersView, *more: Note) -> str:
    return page_html.draw(view, (*notes(view, "no field is held", all_told=False), *more), NOW)


class TestDrawings:
    def test_the_html_refers_to_nothing_outside_and_escapes_everything(self):
        document = draw(told(NASTY))

        assert not re.search(r"https?:|href|src=|url\(|@import|<script|<i>manager|<b>", document)
        assert document.count("<details") == document.count("</details>") > 0
        assert document.count("<div") == document.count("</div>")

    def test_a_long_value_such_as_the_last_applied_manifest_is_folded(self):
        live = copy.deepcopy(LIVE)
        copied = "x" * 500
        live["metadata"]["annotations"] = {"last-applied": copied, "short": "y" * 50}
        shown = draw(told(live))

        assert '<details class="value"><summary><span class="faint">last-applied</span> …' in shown
        assert shown.count('<details class="value">') == 1

    def test_managers_are_indented_below_their_field_where_there_is_one_column(self):
        shown = draw(told(LIVE))

        assert "margin-left:calc(var(--indent,0rem) + 2rem)" in shown
        assert 'class="row rule" style="--indent:1.1rem"' in shown

    def test_it_has_a_legend_both_papers_and_every_row(self):
        shown = draw(told(NASTY))

        assert "prefers-color-scheme:dark" in shown
        assert "kubectl-set (2)" in shown
        assert "contested: BlueGreen/demo" in shown
        assert "Not in the object" in shown
        assert ".spec.lost" in shown
        for row in visible(told(NASTY).fields):
            assert escape(row.path) in shown

    def test_ages_are_those_of_a_time_that_is_told_and_lead_to_times_that_stay_true(self):
        shown = draw(told(LIVE))

        assert "; as of 2026-01-01T12:00:00Z" in shown
        times = {one.time for row in told(LIVE).fields for one in row.managers} - {""}
        assert times
        for time in times:
            assert f'title="{time}"' in shown

    def test_managers_are_told_apart_and_colours_come_again_when_there_are_no_more(self):
        few = draw(told(LIVE))
        classes = set(re.findall(r'class="(m\d)"', few))

        assert classes == {"m0", "m1", "m2", "m3"}
        assert set(re.findall(r'class="(m\d)"', draw(told(NASTY)))) == {f"m{i}" for i in range(8)}

    def test_an_object_without_anything_is_drawn_too(self):
        bare = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}}

        assert "Node x" in draw(told(bare, {}))

    def test_a_command_is_whole_and_one_text_so_that_it_can_be_copied(self):
        command = f"kubectl annotate x 'hedgerow.dev/yield={'Deployment/web: spec.a.b.c; ' * 20}'"
        shown = draw(told(LIVE), Note(f"  {command}", is_command=True))
        (text,) = re.findall(r"<p[^>]*>([^<]*kubectl annotate[^<]*)</p>", shown)

        assert unescape(text) == command

    def test_a_narrow_page_breaks_texts_rather_than_run_off(self):
        shown = draw(told(LIVE))

        assert "h1,p,li{overflow-wrap:anywhere}" in shown
        assert ".row>.name{white-space:pre-wrap;overflow-wrap:anywhere}" in shown
