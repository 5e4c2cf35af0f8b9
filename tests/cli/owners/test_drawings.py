"""The owners of an object as SVG and HTML: one file each, whatever the object holds."""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from html import escape, unescape
from xml.dom.minidom import parseString

import pytest

from cli.owned import LIVE, entry, told
from hedgerow.cli.owners import page_html as owners_html
from hedgerow.cli.owners import page_svg as owners_svg
from hedgerow.cli.widths import Note

NASTY = copy.deepcopy(LIVE)
NASTY["spec"]['<b>&"</b>'] = "<script>alert(1)</script>\x00\x1b"
NASTY["spec"]["long"] = "日本" * 400
NASTY["spec"]["deep"] = {"x": {"x": {"x": {"x": {"x": {"x": {"y" * 90: 1}}}}}}}
NASTY["metadata"]["managedFields"] += [
    entry(f"<i>manager {number}</i>", {"f:spec": {"f:paused": {}}}) for number in range(12)
]


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, by WCAG 2.2."""
    lights = []
    for colour in (one, other):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        lights.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)
    return max(lights) / min(lights)


class TestDrawings:
    def test_the_svg_is_well_formed_and_refers_to_nothing_outside(self):
        picture = owners_svg.draw(told(NASTY))
        parsed = parseString(picture)  # noqa: S318 - our own
        tags = {element.tagName for element in parsed.getElementsByTagName("*")}

        assert tags == {"svg", "title", "style", "rect", "g", "text", "tspan", "path"}
        assert re.findall(r"https?:", picture) == ["http:"]  # the name of SVG itself
        assert not re.search(r"href|url\(|@import|<script", picture)

    def test_the_html_refers_to_nothing_outside_and_escapes_everything(self):
        document = owners_html.draw(told(NASTY))

        assert not re.search(r"https?:|href|src=|url\(|@import|<script|<i>manager|<b>", document)
        assert document.count("<details") == document.count("</details>") > 0
        assert document.count("<div") == document.count("</div>")

    @pytest.mark.parametrize("draw", [owners_svg.draw, owners_html.draw])
    def test_it_has_a_legend_both_papers_and_every_row(self, draw):
        shown = draw(told(NASTY))

        assert "prefers-color-scheme:dark" in shown
        assert "kubectl-set (2)" in shown
        assert "contested: BlueGreen/demo" in shown
        assert "Not in the object" in shown
        assert ".spec.lost" in shown
        for row in told(NASTY).rows:
            assert escape(row.path) in shown

    @pytest.mark.parametrize("draw", [owners_svg.draw, owners_html.draw])
    def test_ages_are_those_of_a_time_that_is_told_and_lead_to_times_that_stay_true(self, draw):
        page = told(LIVE)
        shown = draw(page)

        assert page.asof == "2026-01-01T12:00:00Z"
        assert f"; as of {page.asof}" in shown
        times = {holding.since for row in page.rows for holding in row.holdings} - {""}
        assert times
        for time in times:
            assert f"<title>{time}</title>" in shown or f'title="{time}"' in shown

    def test_the_lines_that_lead_to_a_name_are_seen(self):
        picture = owners_svg.draw(told(LIVE))

        assert re.search(r'<path class="guide" d="M\d+ 0', picture)
        assert ".guide{fill:none;shape-rendering:crispEdges}" in picture
        for paper, stroke in (("#ffffff", "#8d949e"), ("#16181d", "#7d8590")):
            assert f".guide{{stroke:{stroke}}}" in picture
            assert contrast(paper, stroke) > 3  # WCAG 2.2, 1.4.11: graphical objects

    @pytest.mark.parametrize("draw", [owners_svg.draw, owners_html.draw])
    def test_managers_are_told_apart_and_colours_come_again_when_there_are_no_more(self, draw):
        few = draw(told(LIVE))
        classes = set(re.findall(r'class="(m\d)"', few))

        assert classes == {"m0", "m1", "m2", "m3"}
        assert set(re.findall(r'class="(m\d)"', draw(told(NASTY)))) == {f"m{i}" for i in range(8)}

    @pytest.mark.parametrize("draw", [owners_svg.draw, owners_html.draw])
    def test_an_object_without_anything_is_drawn_too(self, draw):
        bare = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}}

        assert "Node x" in draw(told(bare, {}))

    @pytest.mark.parametrize("draw", [owners_svg.draw, owners_html.draw])
    def test_a_command_is_whole_and_one_text_so_that_it_can_be_copied(self, draw):
        command = f"kubectl annotate x 'hedgerow.dev/yield={'Deployment/web: spec.a.b.c; ' * 20}'"
        shown = draw(replace(told(LIVE), notes=(Note(f"  {command}", is_command=True),)))
        (text,) = re.findall(r"<(?:text|p)[^>]*>(?:(?!</text>|</p>).)*kubectl annotate.*", shown)

        assert unescape(re.sub(r"<[^>]*>", "", text.partition("</p>")[0])) == command

    def test_the_lines_of_a_command_are_no_wider_than_the_picture(self):
        command = "kubectl annotate " + "spec.template.spec.containers.image; " * 20
        shown = owners_svg.draw(replace(told(LIVE), notes=(Note(command, is_command=True),)))
        lines = re.findall(r"<tspan x[^>]*>([^<]*)", shown)

        assert "".join(lines) == command.strip()
        assert max(map(len, lines)) <= 135

    def test_a_narrow_page_breaks_texts_rather_than_run_off(self):
        shown = owners_html.draw(told(LIVE))

        assert "h1,p,li{overflow-wrap:anywhere}" in shown
        assert ".row>.name{white-space:pre-wrap;overflow-wrap:anywhere}" in shown
