"""The pictures of docs/pictures: one file each, for everybody, with names that exist.

What the demo's pictures say is compared with a run of the demo in tests/cluster/test_demo.py.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from hedgerow.plan.yield_and_claim import CLAIM, YIELD
from hedgerow_testing.demo import acts, samples
from pictures.__main__ import PICTURES
from pictures.drawing import PAPERS, SVG, lines, parsed
from pictures.recording import FRAMES, STILL, told

FILES = sorted(PICTURES.glob("*.svg"))


def picture(name: str) -> str:
    return (PICTURES / f"{name}.svg").read_text("utf-8")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
class TestEveryPicture:
    def test_it_is_one_file_without_scripts_that_asks_for_nothing(self, path: Path):
        svg = path.read_text("utf-8")
        elements = {element.tag.removeprefix(SVG) for element in parsed(svg).iter()}

        assert elements.isdisjoint({"script", "image", "a", "use", "foreignObject"})
        assert re.findall(r"[^\"' (]*//[^\"' )]+", svg) == ["http://www.w3.org/2000/svg"]
        assert "@import" not in svg
        assert set(re.findall(r"url\((.)", svg)) <= {"#"}

    def test_it_tells_its_title_and_what_is_on_it_to_those_who_do_not_see_it(self, path: Path):
        root = parsed(path.read_text("utf-8"))

        assert root.get("role") == "img"
        assert root.findtext(f"{SVG}title")
        assert root.findtext(f"{SVG}desc")


class TestDemo:
    def test_both_papers_say_the_same(self):
        assert len({tuple(lines(picture(f"demo-{paper}"))) for paper in PAPERS}) == 1

    @pytest.mark.parametrize("paper", PAPERS)
    def test_every_frame_is_there_and_where_nothing_is_to_move_one_is_shown(self, paper):
        svg = picture(f"demo-{paper}")
        still, moving = svg.split("@media (prefers-reduced-motion:no-preference)")

        assert {frame.act for frame in FRAMES} <= set(told(svg))
        assert f"#f{STILL}{{opacity:1}}" in still
        assert "animation" not in still
        assert moving.count("@keyframes") > len(FRAMES)


class TestDrawn:
    def test_every_part_of_the_architecture_is_a_module(self):
        named = re.findall(r"\bhedgerow[._]\w+", "\n".join(lines(picture("architecture"))))

        assert len(named) > 10
        assert [name for name in named if find_spec(name) is None] == []

    def test_the_conflict_is_the_one_of_the_demo_with_the_annotations_that_settle_it(self):
        said = "\n".join(lines(picture("conflict")))
        names = (acts.MANAGER, acts.TAKER, acts.GREEN, samples.IMAGE, YIELD, CLAIM)

        assert [name for name in names if name not in said] == []
