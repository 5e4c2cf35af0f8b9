"""The pictures of docs/pictures: what is drawn is what there is, in one file, in light and dark.

What the demo's pictures say is compared with a run of the demo in tests/cluster/test_demo.py.
"""

from __future__ import annotations

import configparser
import re
from importlib.util import find_spec
from itertools import pairwise

import pytest

from pictures import architecture, conflict
from pictures.__main__ import PICTURES
from pictures.drawing import PAPERS, SVG, lines, parsed
from pictures.recording import FRAMES, STILL, blocks, chosen, kinds, plain, told
from support.code.sources import ROOT

FILES = sorted(PICTURES.glob("*.svg"))
DEMOS = [(PICTURES / f"demo-{paper}.svg").read_text("utf-8") for paper in PAPERS]
PRINTED = """
 6  Somebody else
    It says so.
    $ kubectl get a \\
        -n demo
    NAME   AGE
    a      3s
    ✓ so it is, even if it
      takes two lines

 7  After it
    $ kubectl get b
"""


def contract(name: str) -> configparser.SectionProxy:
    found = configparser.ConfigParser()
    found.read(ROOT / ".importlinter", encoding="utf-8")
    return found[f"importlinter:contract:{name}"]


class TestEveryPicture:
    def test_there_are_these(self):
        assert [path.stem for path in FILES] == [
            "architecture",
            "conflict",
            *(f"demo-{paper}" for paper in sorted(PAPERS)),
        ]

    @pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
    def test_it_is_one_file_without_scripts_that_asks_for_nothing(self, path):
        svg = path.read_text("utf-8")
        elements = {element.tag.removeprefix(SVG) for element in parsed(svg).iter()}

        assert elements.isdisjoint({"script", "image", "a", "use", "foreignObject"})
        assert re.findall(r"[^\"' (]*//[^\"' )]+", svg) == ["http://www.w3.org/2000/svg"]
        assert "@import" not in svg
        assert set(re.findall(r"url\((.)", svg)) <= {"#"}

    @pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
    def test_it_tells_its_title_and_what_is_on_it_to_those_who_do_not_see_it(self, path):
        root = parsed(path.read_text("utf-8"))

        assert root.get("role") == "img"
        assert root.findtext(f"{SVG}title")
        assert root.findtext(f"{SVG}desc")


class TestDemo:
    def test_both_papers_say_the_same(self):
        light, dark = (lines(svg) for svg in DEMOS)

        assert light == dark

    def test_every_frame_is_there_and_where_nothing_is_to_move_one_is_shown(self):
        for svg in DEMOS:
            said = told(svg)

            assert [frame.act for frame in FRAMES if frame.act not in said] == []
            assert "FieldConflict" in " ".join(said)
            still, moving = svg.split("@media (prefers-reduced-motion:no-preference)")
            assert f"#f{STILL}{{opacity:1}}" in still
            assert "animation" not in still
            assert moving.count("@keyframes") > len(FRAMES)

    def test_it_can_be_read_in_half_a_minute_or_a_little_more(self):
        assert 20 <= sum(frame.seconds for frame in FRAMES) <= 35


class TestTranscript:
    def test_an_act_is_made_of_commands_with_their_output_and_of_claims(self):
        said, typed, claim = blocks(PRINTED, "Somebody else")

        assert said == ["    It says so."]
        assert kinds(typed) == [
            ("typed", "    $ kubectl get a \\"),
            ("typed", "        -n demo"),
            ("output", "    NAME   AGE"),
            ("output", "    a      3s"),
        ]
        assert {kind for kind, _ in kinds(claim)} == {"claim"}

    def test_an_act_or_a_block_that_is_not_there_fails(self):
        frame = FRAMES[0]._replace(act="Somebody else", blocks=("$ kubectl get b",))

        with pytest.raises(AssertionError, match="nothing begins with"):
            chosen(PRINTED, frame)
        with pytest.raises(AssertionError, match="no act"):
            chosen(PRINTED, frame._replace(act="Nobody"))

    def test_a_command_too_long_for_a_line_goes_on_below_and_is_still_one(self):
        words = " ".join(f"word{number}" for number in range(30))
        frame = FRAMES[0]._replace(act="Long", blocks=("$",))
        [block] = chosen(f"\n 1  Long\n    $ {words}\n    done\n", frame)

        assert len(block) > 2
        assert [kind for kind, _ in kinds(block)] == ["typed"] * (len(block) - 1) + ["output"]

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("Pod/…-jb22r   ✓ Ready   3s", "Pod/…-x9qqd ✓ Ready 1m10s"),
            ("✓ ClusterIP 10.0.49.117", "✓ ClusterIP 10.0.128.42"),
            ("the operator wrote 23 times: events 4", "the operator wrote 22 times: events 3"),
        ],
    )
    def test_what_differs_from_run_to_run_is_left_out(self, one, other):
        assert plain(one) == plain(other)
        assert plain(one) != plain(other.replace("✓", "✗").replace("wrote", "read"))


class TestConflict:
    def test_it_is_drawn_from_what_the_demo_does(self):
        assert (PICTURES / "conflict.svg").read_text("utf-8") == conflict.draw()


class TestArchitecture:
    PARTS = [part for row in architecture.ROWS for part in row]

    def test_it_is_drawn_from_these_layers(self):
        assert (PICTURES / "architecture.svg").read_text("utf-8") == architecture.draw()

    def test_every_name_on_it_is_a_module(self):
        named = re.findall(r"\bhedgerow[._]\w+", "\n".join(lines(architecture.draw())))

        assert sorted(named) == sorted(part.name for part in self.PARTS)
        assert [name for name in named if find_spec(name) is None] == []

    def test_its_rows_are_in_the_order_of_the_layers(self):
        layers = [re.split(r" [:|] ", row) for row in contract("layers")["layers"].split("\n")[1:]]
        depth = {name: number for number, names in enumerate(layers) for name in names}
        rows = [[depth[part.name] for part in row] for row in architecture.ROWS]

        assert all(max(above) < min(below) for above, below in pairwise(rows))

    def test_what_it_calls_pure_is_held_pure(self):
        held = contract("pure")["source_modules"].split()

        assert [part.name for part in self.PARTS if part.pure] == [
            part.name for part in self.PARTS if part.name in held
        ]
